"""A drive comes back from its own command logs: plants in MuJoCo, derivatives, sticking, refusals, the command."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_files import VOLTAGE, log_of

import steelyard.actuators.linear_start as linear_start
from steelyard.actuators import CommandLog, DriveModel, Load, identify_actuator, read_command_logs
from steelyard.actuators.drive_structure import DriveStructure
from steelyard.actuators.linear_start import linear_starts
from steelyard.actuators.rollout import Rollouts
from steelyard.actuators.separable import separability
from steelyard.errors import LogError, SteelyardError

pytest.importorskip("mujoco", reason="MuJoCo moves the plants (pip install 'steelyard[oracle]')")
import drive_plants
from drive_plants import random_plant

# The package has the function of the same name.
identify = importlib.import_module("steelyard.actuators.identify_actuator")
DATA = Path(os.environ.get("STEELYARD_DATA", "")) / "actuators"
needs_data = pytest.mark.skipif(not (DATA / "bam_xl330").is_dir(), reason="STEELYARD_DATA has no actuators")


def volts_of(logs: list[CommandLog]) -> list[np.ndarray]:
    return [np.full(len(log), log.volts) for log in logs]


@pytest.fixture(scope="module")
def stribeck_logs() -> tuple[drive_plants.DrivePlant, list[CommandLog]]:
    plant = random_plant("voltage", "M4", 4)
    return plant, plant.record(4)


def test_rollouts_are_those_of_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the true parameters and an exact encoder only the steps differ: 0.1 ms of MuJoCo's Euler against ours."""
    monkeypatch.setattr(drive_plants, "NOISE", 0.0)
    monkeypatch.setattr(drive_plants, "COUNT", 1e-9)
    for kind, friction, seed in (("voltage", "M6", 1), ("torque", "M3", 2)):
        plant = dataclasses.replace(random_plant(kind, friction, seed), loads=((0.4, 0.1),), off=kind == "voltage")
        logs = plant.record(seed)
        structure = DriveStructure(kind, friction, ("delay",))
        runs = Rollouts(logs, volts_of(logs) if kind == "voltage" else None)
        q, _ = runs.simulate(structure, {n: plant.truth[n] for n in structure.names})
        # MuJoCo's own step shifts time by 0.05 ms, which is 0.5 mrad at the 10 rad/s of a jump.
        assert np.sqrt(np.mean((q - runs.measured) ** 2)) < 5e-4


def test_sensitivities_are_those_of_differences(
    stribeck_logs: tuple[drive_plants.DrivePlant, list[CommandLog]],
) -> None:
    plant, logs = stribeck_logs
    runs = Rollouts(logs[:2], volts_of(logs[:2]), step=2e-3)
    structure = DriveStructure("voltage", "M4", ("delay", "feedback_delay", "torque_limit", "load_friction_quad"))
    values = {**plant.truth, "torque_limit": 0.6, "load_friction_quad": 0.1, "feedback_delay": 0.0043}
    values = {n: values[n] for n in structure.names}
    _, jacobian = runs.simulate(structure, values, structure.names)
    for k, name in enumerate(structure.names):
        size = 1e-6 * max(abs(values[name]), 1e-3)
        up, down = (runs.simulate(structure, {**values, name: values[name] + sign * size})[0] for sign in (1.0, -1.0))
        difference = (up - down) / (2.0 * size)
        # A stop of the joint may move by one step between both; almost all samples lie between such changes.
        off = np.abs(difference - jacobian[:, k]) > 1e-4 * np.max(np.abs(difference)) + 1e-9
        assert np.mean(off) < 0.02, name


def test_a_joint_that_friction_holds_does_not_move_at_all() -> None:
    """The load pulls with less than the friction: position constant to the last bit, sensitivities zero."""
    time = np.arange(0.0, 1.0, 0.01)
    load = Load.pendulum(0.1, 0.1)
    position = np.full(len(time), 0.2)
    log = CommandLog("held", time, np.full(len(time), 0.25), position, load, volts=7.0, kp=1.0)
    structure = DriveStructure("voltage", "M1", ("delay",))
    values = {"torque_per_volt": 0.01, "back_emf": 0.01, "duty_gain": 1.0, "delay": 0.0, "armature": 0.001,
              "friction_base": 0.05, "friction_viscous": 0.0, "offset": 0.0}  # fmt: skip
    q, jacobian = Rollouts([log], [np.full(len(time), 7.0)]).simulate(structure, values, structure.names)
    assert (q == 0.2).all()
    assert (jacobian == 0.0).all()


def test_stribeck_and_load_friction_come_back(
    stribeck_logs: tuple[drive_plants.DrivePlant, list[CommandLog]],
) -> None:
    plant, logs = stribeck_logs
    result = identify_actuator(logs[:-1], holdout=logs[-1:])
    assert result.model.kind == "voltage"
    assert result.model.friction == "M4"
    # 0.2 ms is what a user needs to tell one bus cycle from two.
    assert abs(result.model["delay"] - plant.truth["delay"]) < 2e-4
    for name in ("torque_per_volt", "armature", "load_friction", "load_friction_stribeck"):
        assert result.model[name] == pytest.approx(plant.truth[name], rel=0.05), name
    # The encoder: 1 mrad of noise has a mean absolute value of 0.8 mrad, its counts add a little.
    assert result.error("hold-out") < 1.5e-3
    assert all(run.predictable for run in result.runs)


def test_a_torque_drive_comes_back() -> None:
    """Also if the zero of the encoder is elsewhere, as with servos that count ticks from 0."""
    plant = random_plant("torque", "M1", 5)
    logs = [dataclasses.replace(log, goal=log.goal + np.pi, position=log.position + np.pi) for log in plant.record(5)]
    result = identify_actuator(logs)
    assert (result.model.kind, result.model.friction) == ("torque", "M1")
    turn = result.model["offset"] - plant.truth["offset"]
    assert abs(np.cos(turn) + 1.0) < 1e-4
    assert abs(result.model["delay"] - plant.truth["delay"]) < 2e-4
    for name in ("kp_gain", "kd_gain", "armature", "friction_base"):
        assert result.model[name] == pytest.approx(plant.truth[name], rel=0.03), name


def test_what_cannot_be_separated_is_said_before_the_fit() -> None:
    on, off = log_of(VOLTAGE), dataclasses.replace(log_of(VOLTAGE, off=True), name="off")
    found, assumed = separability([on], "voltage", {"duty_gain": 0.003})
    assert ("back_emf", "friction_viscous") in [f.parameters for f in found]
    assert assumed == {"friction_viscous": 0.0}
    assert any("load_friction" in f.parameters and "second mass" in f.experiment for f in found)
    swinging = dataclasses.replace(off, position=np.sin(5.0 * off.time))
    heavier = dataclasses.replace(on, name="heavier", load=Load.pendulum(1.0, 0.1), kp=200.0)
    found, assumed = separability([on, swinging, heavier], "voltage", {"duty_gain": 0.003})
    assert found == []
    assert assumed == {}
    found, _ = separability([dataclasses.replace(on, kd=0.0)], "torque", {})
    assert ("kd_gain",) in [f.parameters for f in found]


def test_a_run_beyond_the_others_is_named() -> None:
    """Fitted with the drive on, the free swing of a hold-out depends on friction that the fit could not see."""
    plant = dataclasses.replace(random_plant("voltage", "M1", 6), loads=((0.4, 0.1),), duration=4.0)
    on = dataclasses.replace(plant, off=False).record(6)
    swing = dataclasses.replace(plant, gains=(250.0,), truth={**plant.truth, "friction_viscous": 0.02}).record(7)
    result = identify_actuator(on, "voltage", "M1", holdout=[dataclasses.replace(log, name="swing") for log in swing])
    odd = [run for run in result.runs if not run.predictable]
    assert [run.name for run in odd] == ["swing"]
    assert "off" in odd[0].reason


def test_the_linear_start_finds_the_order_of_size(
    stribeck_logs: tuple[drive_plants.DrivePlant, list[CommandLog]],
) -> None:
    plant, logs = stribeck_logs
    start = linear_starts(logs, volts_of(logs), "voltage", {"duty_gain": 0.003})[0]
    for name in ("torque_per_volt", "back_emf"):
        assert 0.5 < start[name] / plant.truth[name] < 2.0


def test_averages_of_coarse_logs_are_exact_wherever_the_zero_is() -> None:
    time = np.arange(0.0, 2.0, 0.02)
    log = dataclasses.replace(log_of(VOLTAGE), time=time, goal=0.0 * time, position=3.0 + time + 0.7 * time**2)
    _, acceleration, velocity, *_ = linear_start._part(log, np.ones(len(time)), slice(0, len(time)))
    middle = np.linspace(time[0], time[-1], len(velocity) + 6)[3:-3]
    assert acceleration == pytest.approx(1.4, abs=1e-9)
    assert np.polyfit(middle, velocity, 1)[0] == pytest.approx(1.4, rel=0.02)


def test_the_gain_of_a_measured_duty_is_that_of_the_delayed_goal() -> None:
    log = log_of(VOLTAGE)
    late = np.concatenate([np.zeros(3), log.goal[:-3]])
    duty = np.clip(0.003 * log.kp * (late - log.position), -1.0, 1.0)
    notes: list[str] = []
    known = identify._duty_gain([dataclasses.replace(log, duty=duty, duty_gain=np.nan)], ["voltage"], {}, notes)
    assert known["duty_gain"] == pytest.approx(0.003, rel=1e-6)


def test_a_supply_in_another_unit_is_named() -> None:
    log = changed()
    with pytest.raises(LogError, match=r"--units 'voltage=0.1 V'"):
        identify_actuator([dataclasses.replace(log, supply=np.full(len(log), 10.0 * log.volts))])


def test_a_duty_without_a_unit_is_said(tmp_path: Path) -> None:
    log = log_of(VOLTAGE)
    columns = np.column_stack([log.time, log.goal, log.position, 300.0 * np.sin(log.time)])
    path = tmp_path / "servo.csv"
    np.savetxt(path, columns, delimiter=",", header="t,goal,position,present_pwm", comments="")
    (own,) = read_command_logs(path, mass=0.5, length=0.1)
    assert own.duty is None
    assert "duty=counts/885" in own.notes[0]


def changed(**changes: object) -> CommandLog:
    log = log_of(VOLTAGE)
    follows = 0.9 * np.roll(log.goal, 8)
    follows[:8] = 0.0
    return dataclasses.replace(log, **{"position": follows, **changes})  # type: ignore[arg-type]


def early(log: CommandLog) -> np.ndarray:
    """A position that knows the goal 0.15 s ahead."""
    return np.interp(log.time + 0.15, log.time, log.goal)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (lambda: changed(goal=np.degrees(log_of(VOLTAGE).goal)), ("degrees", "--units")),
        (lambda: changed(goal=651.9 * log_of(VOLTAGE).goal), ("ticks", "--units")),
        (lambda: changed(goal=np.full(len(log_of(VOLTAGE)), 0.3)), ("goal never moves", "command a motion")),
        (lambda: changed(position=early(log_of(VOLTAGE))), ("two clocks", "before its goal")),
        (lambda: changed(goal=log_of(VOLTAGE).goal[:-3]), ("goal has", "resample")),
        (lambda: changed(duty=np.ones(len(log_of(VOLTAGE)))), ("limit in more than 95 %", "slower")),
        (lambda: changed(duty_gain=1e3), ("limit in more than 95 %", "slower")),
        (lambda: changed(time=log_of(VOLTAGE).time[::-1]), ("does not increase", "sort")),
        (lambda: changed(duty=np.full(len(log_of(VOLTAGE)), 512.0)), ("duty of 512", "PWM")),
    ],
)  # fmt: skip
def test_bad_logs_end_in_one_sentence(log: object, words: tuple[str, ...]) -> None:
    with pytest.raises(LogError) as error:
        identify_actuator([log()])  # type: ignore[operator]
    for word in words:
        assert word in str(error.value)


def test_missing_gains_are_named() -> None:
    first, second = changed(), changed(name="second", kp=float("nan"), duty_gain=float("nan"))
    with pytest.raises(LogError, match="gain kp of run 'second' is missing"):
        identify_actuator([dataclasses.replace(first, duty_gain=float("nan")), second], "voltage")
    with pytest.raises(LogError, match="choose the kind position-loop"):
        identify_actuator([second], "torque")
    with pytest.raises(SteelyardError, match="no kind of drive 'torqe'"):
        identify_actuator([first], "torqe")


def test_draws_have_the_covariance_and_the_model_survives_json() -> None:
    covariance = np.array([[4e-6, 3e-6], [3e-6, 9e-6]])
    model = DriveModel("voltage", "M1", {"torque_per_volt": 0.1, "back_emf": 0.03, "armature": 0.002},
                       ("torque_per_volt", "back_emf"), covariance)  # fmt: skip
    draws = model.draw(20_000, seed=1)
    sampled = np.cov(draws["torque_per_volt"], draws["back_emf"])
    # The standard error of a sampled covariance is 1/√n of its size: 0.7 %; five of them.
    np.testing.assert_allclose(sampled, covariance, rtol=0.05)
    low, high = model.interval("torque_per_volt")
    assert high - low == pytest.approx(2 * 1.96 * 2e-3, rel=1e-3)
    assert DriveModel.from_json(json.loads(json.dumps(model.to_json()))).to_json() == model.to_json()
    assert model.kt == pytest.approx(0.3)
    assert model.resistance == pytest.approx(3.0)


def test_the_load_of_a_robots_joint_is_that_of_the_pendulum(tmp_path: Path) -> None:
    urdf = tmp_path / "pendulum.urdf"
    urdf.write_text("""<robot name="p"><link name="a"/><link name="b"><inertial><origin xyz="0.12 0 0"/>
<mass value="0.7"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>""")
    from steelyard.robot import load_robot

    load, own = Load.of_joint(load_robot(urdf), "j"), Load.pendulum(0.7, 0.12)
    assert load.inertia == pytest.approx(own.inertia)
    assert load.gravity == pytest.approx(own.gravity, rel=1e-3)
    # About +y a link along +x hangs at +90°.
    assert np.cos(load.rest_angle - np.pi / 2.0) == pytest.approx(1.0)


def test_the_command_reads_a_table_with_settings(
    stribeck_logs: tuple[drive_plants.DrivePlant, list[CommandLog]], tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    from steelyard.cli.app import app

    _, logs = stribeck_logs
    table, settings = tmp_path / "runs.csv", tmp_path / "settings.csv"
    rows = ["log,t_s,q_goal_rad,q_rad,torque_enable"]
    more = ["log,mass,length,kp,vin,duty_gain"]
    for k, log in enumerate(logs):
        columns = zip(log.time, log.goal, log.position, log.enabled, strict=True)
        rows += [f"{k},{t:.4f},{g:.6f},{q:.6f},{int(on)}" for t, g, q, on in columns]
        more.append(f"{k},{log.load.mass},{log.load.length},{log.kp},{log.volts},{log.duty_gain}")
    table.write_text("\n".join(rows) + "\n")
    settings.write_text("\n".join(more) + "\n")
    words = ["actuator", str(table), "--runs", str(settings), "--holdout", "kp=250", "--friction", "M4", "--effects",
             "delay", "-o", str(tmp_path / "servo")]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "servo" / "result.json").read_text())
    assert written["drive"]["friction"] == "M4"
    assert written["errors_rad"]["hold-out"] < 2e-3
    assert (tmp_path / "servo" / "report.html").exists()
    bad = CliRunner().invoke(app, ["actuator", str(table), "--runs", str(settings), "--holdout", "kp=7"])
    assert bad.exit_code == 2
    assert "no run has this kp" in bad.output


@needs_data
@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "holdout", "most"),
    [("bam_xl330", ("kp", 400.0), 45e-3), ("bam_sts3250", ("trajectory", "up_and_down"), 8e-3)],
)
def test_real_servos_are_predicted(name: str, holdout: tuple[str, object], most: float) -> None:
    """Limits: 58 and 10 mrad are the errors of least squares with friction M3 from public logs of these servos."""
    logs = read_command_logs(DATA / name / "raw.parquet", settings=DATA / name / "logs.parquet")
    judges = [log for log in logs if log.label(holdout[0]) == holdout[1]]
    result = identify_actuator([log for log in logs if log not in judges], holdout=judges)
    assert result.error("hold-out") < most
