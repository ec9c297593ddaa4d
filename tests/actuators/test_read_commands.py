"""Command logs of BAM, SAGE, LeRobot and tables become runs in SI; odd files are refused in one sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_files import bam_document, write_bam, write_sage

from steelyard.actuators import CommandLog, Load
from steelyard.actuators.read_commands import read_command_logs
from steelyard.errors import LogError, SteelyardError

PENDULUM = Load.pendulum(0.5, 0.1)


def one(path: Path, **options: object) -> CommandLog:
    logs = read_command_logs(path, **options)  # type: ignore[arg-type]
    assert len(logs) == 1
    return logs[0]


def test_a_raw_log_of_bam(tmp_path: Path) -> None:
    duty = lambda k: int(np.uint16(np.int16(round(800 * np.sin(0.3 * k)))))  # noqa: E731
    log = one(write_bam(tmp_path / "a.json", bam_document(load=duty, arm_mass=0.06)))
    assert (log.kp, log.volts, log.trajectory, log.labels) == (400.0, 7.4, "sin_sin", {"motor": "xl330"})
    # A point mass on a rod: m l² + m_rod l² / 3.
    assert log.load.inertia == pytest.approx(0.5 * 0.01 + 0.06 * 0.01 / 3.0)
    assert log.goal - log.position == pytest.approx(0.1)
    assert log.duty == pytest.approx(np.round(800 * np.sin(0.3 * np.arange(60))) / 885.0)
    assert log.supply == pytest.approx(7.4)
    assert list(log.enabled) == [k < 30 for k in range(60)]


def test_the_register_that_bam_interpolated_across_its_wrap_is_not_used(tmp_path: Path) -> None:
    raw = [int(np.uint16(np.int16(v))) for v in (5, 3, 1, -1, -3, -5)]
    between = np.interp(np.linspace(0, 5, 60), range(6), raw)
    log = one(write_bam(tmp_path / "a.json", bam_document(load=lambda k: float(between[k]))))
    assert log.duty is None


def test_a_register_that_was_never_read_is_no_duty(tmp_path: Path) -> None:
    assert one(write_bam(tmp_path / "a.json", bam_document())).duty is None


def test_the_duty_of_an_unknown_motor_needs_its_full_scale(tmp_path: Path) -> None:
    path = write_bam(tmp_path / "a.json", bam_document(load=lambda k: 400 - k, motor="own"))
    assert one(path).duty is None
    assert one(path, duty_full_scale=400.0).duty == pytest.approx((400.0 - np.arange(60)) / 400.0)


def test_the_damping_of_bams_erob_is_scaled_by_the_root_of_its_gain(tmp_path: Path) -> None:
    erob = write_bam(tmp_path / "a.json", bam_document(motor="erob80_100", damping=2.0, kp=9))
    assert one(erob).kd == pytest.approx(6.0)
    assert one(write_bam(tmp_path / "b.json", bam_document(motor="go1", damping=2.0, kp=9))).kd == pytest.approx(2.0)


def test_a_folder_of_bam_is_one_run_a_file(tmp_path: Path) -> None:
    for k in range(3):
        write_bam(tmp_path / f"run{k}.json", bam_document(kp=100 * (k + 1)))
    logs = read_command_logs(tmp_path, volts=7.0)
    assert [(log.name, log.kp, log.volts) for log in logs] == [(f"run{k}", 100.0 * (k + 1), 7.0) for k in range(3)]


@pytest.mark.parametrize(("scale", "kind"), [(1.0, "STATE_MOTOR"), (1e3, "StateMotor"), (1e6, "StateMotor")])
def test_a_folder_of_sage(tmp_path: Path, scale: float, kind: str) -> None:
    # Real recorders count microseconds since 1970.
    begin = 1.7e9 if scale == 1e6 else 0.0
    log = one(write_sage(tmp_path / "run", scale=scale, kind=kind, begin=begin), joint="knee", load=PENDULUM)
    # Commands come every 20 ms and states 3 ms after each 5 ms; the last command is held. Microseconds since 1970 have
    # 16 digits, of which a float keeps a quarter of a microsecond.
    state = np.arange(0.0, 2.0, 0.005)
    command = np.floor(np.round(state / 0.02, 9) + 1e-12) * 0.02
    assert log.position == pytest.approx(np.sin(state) + 1.0, abs=1e-9)
    assert log.goal == pytest.approx(np.sin(command + 0.1) + 1.0, abs=1e-9)
    assert log.period == pytest.approx(0.005, rel=1e-3)


def test_the_events_of_sage_bound_the_motion(tmp_path: Path) -> None:
    folder = write_sage(tmp_path / "run")
    (folder / "event.csv").write_text("type,timestamp,event\nEVENT,0.5,MOTION_START\nEVENT,1.0,DISABLE\n")
    log = one(folder, joint="hip", load=PENDULUM)
    assert log.duration == pytest.approx(0.49, abs=0.011)


def test_two_clocks_are_refused(tmp_path: Path) -> None:
    folder = write_sage(tmp_path / "run")
    text = (folder / "control.csv").read_text().splitlines()
    late = [text[0], *(line.replace("CONTROL,", "CONTROL,9", 1) for line in text[1:] if "CONTROL,0" in line)]
    (folder / "control.csv").write_text("\n".join(late) + "\n")
    with pytest.raises(LogError, match="two clocks"):
        read_command_logs(folder, joint="hip", load=PENDULUM)


def table(path: Path, head: str, rows: int = 60, cells: str = "{t},{g},{q}") -> Path:
    lines = [head]
    for k in range(rows):
        t = 0.01 * k
        lines.append(
            cells.format(t=t, g=np.sin(t) + 0.1, q=np.sin(t), k=k, ticks=round(4096 * np.sin(t) / (2 * np.pi)))
        )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "head", ["t,goal,q", "time_s,q_goal_rad,q_rad", "timestamp,goal_position,present_position", "t,action,state"]
)
def test_a_table_with_the_names_of_common_recorders(tmp_path: Path, head: str) -> None:
    log = one(table(tmp_path / "a.csv", head), load=PENDULUM)
    assert log.goal - log.position == pytest.approx(0.1)


def test_units_in_names_and_stated_units(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "t_ms,goal_deg,position_ticks,pwm,supply_mV", cells="{k}0,{g},{ticks},{k},7400")
    with pytest.raises(LogError, match=r"goal moves|unit"):  # degrees that are radians
        read_command_logs(
            table(tmp_path / "b.csv", "t,goal,position_ticks", cells="{t},{ticks},{ticks}"), load=PENDULUM
        )
    log = one(path, load=PENDULUM, units={"goal": "rad", "duty": "per mille"})
    assert log.period == pytest.approx(0.01)
    # Half a tick of rounding.
    assert log.position == pytest.approx(np.sin(log.time), abs=np.pi / 4096)
    assert log.duty == pytest.approx(1e-3 * np.arange(60))
    assert log.supply == pytest.approx(7.4)


def test_one_joint_of_several(tmp_path: Path) -> None:
    head = "t,elbow_goal,elbow_q,wrist_goal,wrist_q,supply"
    path = table(tmp_path / "a.csv", head, cells="{t},{g},{q},0,0,7.4")
    log = one(path, joint="elbow", load=PENDULUM)
    assert log.goal - log.position == pytest.approx(0.1)
    assert log.supply is not None
    with pytest.raises(LogError, match="several columns look like the goal"):
        read_command_logs(path, load=PENDULUM)
    with pytest.raises(LogError, match="no column belongs to the joint 'hip'"):
        read_command_logs(path, joint="hip", load=PENDULUM)


def test_one_numbered_joint(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "t,goal1,q1,goal2,q2,goal12,q12", cells="{t},0,0,{g},{q},0,0")
    log = one(path, joint="2", load=PENDULUM)
    assert log.goal - log.position == pytest.approx(0.1)
    assert np.ptp(log.position) > 0.5


def test_runs_in_one_table_and_their_settings_in_another(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    lines = ["log,t,goal,q"]
    for run in (3, 5):
        lines += [f"{run},{0.01 * k},{np.sin(0.01 * k) + 0.1},{np.sin(0.01 * k)}" for k in range(40)]
    path.write_text("\n".join(lines) + "\n")
    settings = tmp_path / "settings.csv"
    settings.write_text("log,mass,length,kp,vin,motor,trajectory\n3,0.5,0.1,100,7.4,a,up\n5,0.6,0.1,200,7.4,a,down\n")
    logs = read_command_logs(path, settings=settings)
    assert [(x.name, x.kp, x.load.mass, x.trajectory) for x in logs] == [("3", 100, 0.5, "up"), ("5", 200, 0.6, "down")]
    settings.write_text("log,mass,length,kp\n3,0.5,0.1,100\n")
    with pytest.raises(LogError, match="no row for run '5'"):
        read_command_logs(path, settings=settings)


def test_a_lerobot_data_set_is_one_run_an_episode(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "meta").mkdir()
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    names = ["elbow.pos", "wrist.pos"]
    info = {"fps": 50, "total_episodes": 2, "features": {
        "action": {"names": names, "shape": [2]}, "observation.state": {"names": names, "shape": [2]}}}  # fmt: skip
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    frame = np.tile(np.arange(40), 2)
    state = np.column_stack([10.0 * np.sin(0.1 * frame), np.zeros(80)])
    columns = {"frame_index": frame, "episode_index": np.repeat([0, 1], 40), "action": list(state + 2.0),
               "observation.state": list(state), "timestamp": frame / 50.0}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "data" / "chunk-000" / "file-000.parquet")
    logs = read_command_logs(tmp_path, joint="elbow", units={"position": "deg"}, load=PENDULUM)
    assert [log.name for log in logs] == ["0", "1"]
    assert logs[1].goal - logs[1].position == pytest.approx(np.radians(2.0))
    assert logs[1].period == pytest.approx(0.02)
    assert len(read_command_logs(tmp_path, joint="elbow", units={"position": "deg"}, load=PENDULUM, episodes="1")) == 1
    with pytest.raises(LogError, match="does not contain the unit"):
        read_command_logs(tmp_path, joint="elbow", load=PENDULUM)


def _broken(document: dict[str, object], **changes: object) -> str:
    return json.dumps({**document, **changes})


BAD = {
    "no entries": (_broken(bam_document(), entries=None), "entries"),
    "entries are numbers": (_broken(bam_document(), entries=[1, 2]), "entry 1"),
    "few": (_broken(bam_document(rows=3)), "3 samples"),
    "no goal": (
        _broken(bam_document(), entries=[{"position": 0.1 * k, "timestamp": 0.1 * k} for k in range(20)]),
        "goal_position",
    ),
    "text in a cell": (
        _broken(bam_document(), entries=[{"position": "x", "goal_position": 1, "timestamp": 1}]),
        "entry 1",
    ),
    "clock back": (
        _broken(bam_document(), entries=[{"position": 1.0, "goal_position": 1.0, "timestamp": -k} for k in range(20)]),
        "row 2",
    ),
    "no mass": (_broken(bam_document(), mass=None), "mass"),
    "huge": (_broken(bam_document(), entries=[{"position": 10**400}] * 20), "entry 1|digits"),
    "nested": ("[" * 5000, "nested"),
    "nothing": ("", "not a readable JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_log_of_bam_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    text, words = BAD[name]
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(SteelyardError, match=words) as caught:
        read_command_logs(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


def test_damaged_files_are_refused_and_never_crash(tmp_path: Path) -> None:
    """Bytes changed, cut and repeated at random: a log or one sentence."""
    rng = np.random.default_rng(0)
    bam = json.dumps(bam_document(rows=20)).encode()
    folder = write_sage(tmp_path / "sage")
    files = {name: (folder / name).read_bytes() for name in ("control.csv", "state_motor.csv", "joint_list.txt")}
    rows = table(tmp_path / "t.csv", "t,goal,q,kp,enabled", cells="{t},{g},{q},400,true").read_bytes()
    seen = {"read": 0, "refused": 0, "lines": 0}

    def attempt(path: Path, **options: object) -> None:
        try:
            read_command_logs(path, mass=0.5, length=0.1, **options)  # type: ignore[arg-type]
            seen["read"] += 1
        except SteelyardError as error:
            seen["refused"] += 1
            seen["lines"] += str(error).count("\n")

    for _ in range(60):
        (tmp_path / "a.json").write_bytes(_damaged(bam, rng))
        attempt(tmp_path / "a.json")
        (tmp_path / "b.csv").write_bytes(_damaged(rows, rng))
        attempt(tmp_path / "b.csv")
        name = rng.choice(list(files))
        (folder / name).write_bytes(_damaged(files[name], rng))
        attempt(folder, joint="hip")
        (folder / name).write_bytes(files[name])
    assert seen["read"] > 10
    assert seen["refused"] > 30
    assert not seen["lines"]  # every refusal is one sentence


def _damaged(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, max(len(out) - 1, 1)))
        kind = rng.integers(0, 4)
        if kind == 0:
            out[at : at + 1] = bytes([int(rng.integers(0, 256))])
        elif kind == 1:
            del out[at:]
        elif kind == 2:
            out[at:at] = out[at : at + int(rng.integers(1, 40))]
        else:
            out[at:at] = rng.choice([b"1e999", b"NaN", b"\x00", b"[", b'"', b",,,", b"-", b"null", b"\xff"])
    return bytes(out)


DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "actuators" / "bam_xl330"


@pytest.mark.skipif(not DATA.is_dir(), reason="the XL330's logs are not here ($STEELYARD_DATA)")
def test_real_logs_of_a_servo() -> None:
    logs = read_command_logs(DATA / "raw.parquet", settings=DATA / "logs.parquet")
    assert len(logs) == 16
    assert {log.kp for log in logs} == {100.0, 200.0, 400.0, 800.0}
    for log in logs:
        assert log.duty is not None
        # The drive's law, from the log itself: duty = clip(kp · gain · error), the gain by the maker's manual.
        law = np.clip(log.kp * (4096 / (2 * np.pi)) / (256 * 885) * (log.goal - log.position), -1.0, 1.0)
        on = log.enabled
        assert np.corrcoef(law[on], log.duty[on])[0, 1] > 0.99
