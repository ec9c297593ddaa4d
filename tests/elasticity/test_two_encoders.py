"""Stiffness and clock skew from two encoders, on arms that MuJoCo moves, and on a real one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from elastic_plants import ElasticArm, Recording, columns_of, log_of, record
from log_files import real_logs, write_parquet
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.elasticity import identify_elasticity
from steelyard.errors import LogError, SteelyardError


@pytest.mark.parametrize("axes", [1, 2, 6])
def test_stiffness_and_skew_come_back(axes: int) -> None:
    arm, how = ElasticArm(axes), Recording(seed=3, skew=-3e-3)
    result = identify_elasticity(arm.robot(), log_of(arm, how))
    truth = arm.numbers()
    assert len(result.known) == axes
    for k, one in enumerate(result.joints):
        low, high = one.stiffness_interval
        # Twice the interval is exceeded once in ten thousand estimates; `proof` counts the intervals themselves.
        assert abs(one.compliance.value - 1.0 / truth["K"][k]) < 2.0 * one.compliance.half_width
        assert high / low < 1.1
        assert abs(one.skew.value - how.skew) < 1e-4
        assert abs(one.rotor.value / truth["Ia"][k] - 1.0) < 0.1
    assert result.headline().kind == "good"
    assert "are ahead of those of the motors by 3" in result.headline().points[0]


def test_noise_of_the_torque_does_not_soften_the_joint() -> None:
    """Plain least squares makes c of these logs 7 and 5 % too small, because the torque is noisy."""
    arm = ElasticArm(1, stiffness=3e4, friction=0.1)
    logs = [log_of(arm, Recording(seed=seed, torque_noise=0.2, seconds=10.0)) for seed in (2, 3)]
    errors = [identify_elasticity(arm.robot(), log)["joint1"].compliance.value * 3e4 - 1.0 for log in logs]
    # Half the interval of one log is 3 %.
    assert abs(np.mean(errors)) < 0.03


def test_a_stiff_joint_is_not_known() -> None:
    arm = ElasticArm(2, stiffness=3e7)
    result = identify_elasticity(arm.robot(), log_of(arm, Recording(seconds=8.0)))
    assert not result.known
    assert result.headline().kind == "bad"
    assert all("not significantly positive" in one.unknown for one in result.joints)
    assert result.skew is not None
    assert abs(result.skew.value - 2e-3) < 1e-4
    assert result.files() == {}


def test_logs_that_disagree_are_not_known() -> None:
    soft, hard = ElasticArm(1, stiffness=6e3), ElasticArm(1, stiffness=9e3)
    logs = [log_of(arm, Recording(seed=k, seconds=8.0)) for k, arm in enumerate((soft, hard))]
    result = identify_elasticity(soft.robot(), logs)
    assert result["joint1"].unknown == "the logs disagree about the compliance"


def test_springs_are_calibrated_by_known_links() -> None:
    """Without motor torques, the torque of known links loads the spring; the encoder is the motor's."""
    arm = ElasticArm(2, stiffness=2e3)
    x = record(arm, Recording(seed=1, seconds=10.0, skew=1e-3))
    columns = {"t": x["t"]}
    for k in range(2):
        columns |= {f"q{k + 1}": x["q"][:, k], f"motor_{k + 1}": x["theta"][:, k]}
    mapping = {"elastic": {"motor": {"joint1": "motor_1", "joint2": "motor_2"}}}
    robot = arm.robot()
    with pytest.raises(SteelyardError, match="no torque of the motors"):
        identify_elasticity(robot, columns, mapping=mapping)
    result = identify_elasticity(robot, columns, mapping=mapping, links=Model.nominal(robot))
    for k, one in enumerate(result.joints):
        assert one.source == "known links"
        assert one.known
        assert abs(one.stiffness / arm.numbers()["K"][k] - 1.0) < 0.01
        assert abs(one.skew.value - 1e-3) < 1e-4


def mistakes(x: dict) -> dict[str, tuple[dict, dict, str]]:
    """Mistakes of link encoders: columns, mapping, and the text of the error."""
    columns = columns_of(x)
    stated = {"elastic": {"link": {"joint1": "qlink1", "joint2": "qlink2"}}}
    none = {n: v for n, v in columns.items() if "link" not in n}
    return {
        "missing": (none, {}, "no column of a link encoder was recognised"),
        "unknown": (none, stated, "qlink1"),
        "degrees": ({**columns, "qlink1": np.degrees(columns["qlink1"])}, {}, 'units = "deg"'),
        "sign": ({**columns, "qlink2": -columns["qlink2"]}, {}, "sign = {joint2 = -1}"),
        "gear": ({**columns, "qlink1": 101.0 * columns["qlink1"]}, {}, "times as far"),
        "exchanged": (
            {**columns, "qlink1": columns["qlink2"], "qlink2": columns["qlink1"]}, {}, "it follows joint 'joint2'",
        ),
        "equal": ({**columns, "qlink1": columns["q1"]}, {}, "equals the first encoder"),
        "constant": ({**columns, "qlink1": 0.0 * columns["q1"]}, {}, "constant while the joint moves"),
        "joint": (columns, {"elastic": {"link": {"elbow": "qlink1"}}}, "no joint 'elbow'"),
        "key": (columns, {"elastic": {"lnk": {"joint1": "qlink1"}}}, "did you mean 'link'"),
        "twice": (columns, {"elastic": {"link": {"joint1": "qlink1"}, "motor": {"joint1": "qlink1"}}}, "two second"),
        "empty": (columns, {"elastic": {}}, "names no encoder"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def plant() -> tuple[ElasticArm, dict]:
    arm = ElasticArm(2)
    return arm, record(arm, Recording(seconds=5.0))


@pytest.mark.parametrize(
    "name", list(mistakes({k: np.zeros((2, 2)) for k in ("theta", "q", "tau")} | {"t": np.zeros(2)}))
)
def test_mistakes_are_one_sentence(plant, name: str, tmp_path) -> None:
    arm, x = plant
    columns, mapping, text = mistakes(x)[name]
    path = tmp_path / "log.parquet"
    write_parquet(path, columns)
    with pytest.raises(LogError) as caught:
        identify_elasticity(arm.robot(), path, mapping=mapping or None)
    assert text in str(caught.value)
    assert str(caught.value).count(". ") <= 2
    assert len(str(caught.value)) <= 300


def test_units_and_sign_are_corrected(plant) -> None:
    arm, x = plant
    columns = columns_of(x)
    plain = identify_elasticity(arm.robot(), columns)
    changed = {**columns, "qlink1": -np.degrees(columns["qlink1"]), "qlink2": np.degrees(columns["qlink2"])}
    links = {"joint1": "qlink1", "joint2": "qlink2"}
    other = identify_elasticity(
        arm.robot(), changed, mapping={"elastic": {"link": links, "units": "deg", "sign": {"joint1": -1}}}
    )
    assert other["joint1"].stiffness == pytest.approx(plain["joint1"].stiffness, rel=1e-6)


def test_a_log_judges_nothing_that_it_was_fitted_to(plant) -> None:
    arm, x = plant
    with pytest.raises(SteelyardError, match="is also a log of the fit"):
        identify_elasticity(arm.robot(), columns_of(x), columns_of(x))


def test_command(plant, tmp_path) -> None:
    arm, x = plant
    write_parquet(tmp_path / "log.parquet", columns_of(x))
    (tmp_path / "arm.urdf").write_text(arm.urdf())
    run = tmp_path / "run"
    outcome = CliRunner().invoke(
        app, ["elastic", str(tmp_path / "arm.urdf"), str(tmp_path / "log.parquet"), "-o", str(run)]
    )
    assert outcome.exit_code == 0, outcome.output
    assert "joint2" in outcome.output
    assert "which was removed" in " ".join(outcome.output.split())
    written = {p.name for p in run.iterdir()}
    assert {"result.json", "report.html", "elastic_arm_elastic.c", "elastic_arm_elastic.xml"} <= written
    write_parquet(tmp_path / "bad.parquet", mistakes(x)["sign"][0])
    bad = CliRunner().invoke(app, ["elastic", str(tmp_path / "arm.urdf"), str(tmp_path / "bad.parquet")])
    assert bad.exit_code == 2
    assert "sign = {joint2 = -1}" in " ".join(bad.output.split())


def test_heavy_arm_with_link_encoders() -> None:
    """KUKA KR 300: the skew looks like compliance; joint 1 carries no gravity and stays unknown.

    Held-out log C chooses nothing. The error bars of c from 10 s of each log hold the value of all three.
    """
    folder = real_logs("kuka_kr300")
    A, B, C = (folder / f"trajectory_{x}.parquet" for x in "ABC")
    held = identify_elasticity(folder / "robot.urdf", [A, B], C)
    assert all(min(one.held_out.values()) >= 0.99 for one in held.joints)
    every = identify_elasticity(folder / "robot.urdf", [A, B, C])
    for result in (held, every):
        assert [one.joint for one in result.known] == ["joint2", "joint3"]
        assert all(2.6e-3 < one.skew.value < 3.1e-3 for one in result.joints)
        assert all(4e6 < one.stiffness < 7e6 for one in result.known)
    for name in ("joint2", "joint3"):
        whole = every[name].compliance
        for own in every[name].by_log.values():
            assert abs(own.value - whole.value) < np.hypot(own.half_width, whole.half_width)


@pytest.mark.proof
def test_intervals_cover() -> None:
    """95 % intervals of c hold the true value in 92 to 98 % of joints; the skew is right to 0.1 ms in all."""
    inside, worst, count = 0, 0.0, 0
    for axes, seeds in ((1, 60), (2, 40), (6, 16)):
        for seed in range(seeds):
            arm = ElasticArm(axes, stiffness=(8e3, 3e4)[seed % 2], friction=(0.05, 0.1)[seed // 2 % 2])
            how = Recording(seed=1000 + seed, torque_noise=(0.02, 0.05)[seed % 2], skew=(2e-3, -3e-3, 0.0)[seed % 3])
            for k, one in enumerate(identify_elasticity(arm.robot(), log_of(arm, how)).joints):
                inside += abs(one.compliance.value - 1.0 / arm.numbers()["K"][k]) < one.compliance.half_width
                worst, count = max(worst, abs(one.skew.value - how.skew)), count + 1
    print(f"{inside} of {count} intervals, worst skew {1e3 * worst:.3f} ms")
    assert 0.92 <= inside / count <= 0.98
    assert worst < 1e-4


def test_quiet_logs_are_refused() -> None:
    arm = ElasticArm(2)
    log = log_of(arm, Recording(seconds=4.0))
    with pytest.raises(SteelyardError, match="no joint with a second encoder"):
        identify_elasticity(arm.robot(), replace(log, q=0.0 * log.q))
