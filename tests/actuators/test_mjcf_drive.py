"""A drive written into an MJCF moves in MuJoCo as in our rollouts, and the rest of the file is unchanged."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_files import LOOP, TORQUE, VOLTAGE, log_of

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.deliver_drive import bam_drive, deliver_drive, nearest_simple, replay_errors
from steelyard.actuators.drive_model import DRIVE_EFFECTS, DriveModel
from steelyard.actuators.drive_structure import DriveStructure
from steelyard.actuators.formats.mujoco_drive import edited_drive, holds_dcmotor
from steelyard.actuators.mujoco_replay import mean_error, replay_drive
from steelyard.actuators.rollout import Rollouts
from steelyard.actuators.simulator_drive import equivalent_friction, simulator_drive
from steelyard.errors import ExportError, UnknownNameError

mujoco = pytest.importorskip("mujoco", "3.12", reason="MuJoCo reads what is written (pip install mujoco)")

ROBOT = """<mujoco model="two arms">
  <!-- from the workshop -->
  <compiler angle="degree" autolimits="true"/>
  <option timestep="0.0005" gravity="0 0 -9.81"/>
  <default>
    <joint damping="7" frictionloss="3" armature="0.5"/>
    <position kp="77" kv="7" forcerange="-1 1"/>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="arm">
      <joint name="elbow" axis="0 1 0" range="-170 170"/> <!-- turns -->
      <inertial pos="0 0 -.1" mass=".49" diaginertia="1e-6 1e-6 1e-6"/>
      <geom name="shell" type="sphere" size=".01" contype="0" conaffinity="0"/>
    </body>
    <body name="other" pos="0 1 0">
      <joint name="wrist" axis="0 1 0"/>
      <inertial pos="0 0 -.1" mass="1" diaginertia=".01 .01 .01"/>
    </body>
  </worldbody>
  <actuator>
    <position name="elbow_servo" joint="elbow" kp="20" ctrlrange="-170 170"/>
    <motor name="wrist_motor" joint="wrist"/>
  </actuator>
  <sensor><jointpos joint="elbow"/><actuatorfrc actuator="elbow_servo"/></sensor>
  <keyframe><key name="home" qpos="0 0" ctrl="0 0"/></keyframe>
</mujoco>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    return path


def rollout(model: DriveModel, log: CommandLog) -> np.ndarray:
    """Our own rollout of a run."""
    effects = tuple(name for name in DRIVE_EFFECTS if name in model.parameters)
    structure = DriveStructure(model.kind, model.friction, effects)
    supply = [np.full(len(log), log.volts)] if model.kind == "voltage" else None
    values = {name: model[name] for name in structure.names}
    return Rollouts([log], supply).simulate(structure, values)[0]


def with_parameters(model: DriveModel, **values: float) -> DriveModel:
    return replace(model, parameters={**model.parameters, **values})


CASES = {
    "voltage": (VOLTAGE, "position"),
    "voltage as a motor": (VOLTAGE, "dcmotor"),
    "voltage with delay and offset": (with_parameters(VOLTAGE, delay=0.0123, offset=0.05), "dcmotor"),
    "voltage with a torque limit": (with_parameters(VOLTAGE, torque_limit=0.4), "dcmotor"),
    "voltage with a filter": (with_parameters(VOLTAGE, goal_time=0.03, delay=0.011), "dcmotor"),
    "torque": (TORQUE, "position"),
    "torque with delay": (with_parameters(TORQUE, delay=0.0071), "position"),
    "torque with a speed line": (with_parameters(TORQUE, no_load_speed=9.0), "dcmotor"),
    "position loop with a filter": (LOOP, "position"),
    "position loop with filter and delay": (with_parameters(LOOP, delay=0.02), "position"),
}


@pytest.mark.parametrize("name", CASES)
def test_mujoco_moves_the_written_drive_as_our_rollout_does(name: str) -> None:
    model, kind = CASES[name]
    log = log_of(model)
    log = replace(log, position=np.full(len(log), 0.2))
    drive = simulator_drive(model, [log])
    ours = rollout(model, log)
    assert np.ptp(ours) > 0.5  # the drive moves
    theirs = {step: replay_drive(drive, log, kind, step) for step in (1e-3, 2.5e-4)}
    errors = {step: np.abs(path - ours).mean() for step, path in theirs.items()}
    # MuJoCo's integrator is of first order, and so is the softness of its friction: a quarter of the step, half of the
    # error at most; what remains is 0.1 % of the motion.
    assert errors[2.5e-4] < max(0.5 * errors[1e-3], 2e-4 * np.ptp(ours))
    assert errors[2.5e-4] < 1e-3 * np.ptp(ours)


@pytest.mark.parametrize("model", [VOLTAGE, with_parameters(VOLTAGE, goal_time=0.004)], ids=["plain", "with a filter"])
def test_a_dcmotor_is_also_right_while_the_drive_is_off(model: DriveModel) -> None:
    log = replace(log_of(model, off=True), position=np.full(800, 0.2))
    drive, ours = simulator_drive(model, [log]), rollout(model, log)
    motor = replay_drive(drive, log, "dcmotor", 5e-4)
    servo = replay_drive(drive, log, "position", 5e-4)
    assert np.abs(motor - ours).mean() < 2e-3 * np.ptp(ours)
    # The position actuator's joint keeps the drag of the back-EMF, as the notes say.
    assert np.abs(servo - ours).mean() > 10.0 * np.abs(motor - ours).mean()
    notes = " ".join(deliver_drive(model, [log]).formats["mjcf"].notes)
    assert "also acts while the drive is off" in notes


@pytest.mark.parametrize("kind", ["position", "dcmotor"])
def test_the_users_file_moves_as_the_rollout_and_keeps_its_rest(robot: Path, tmp_path: Path, kind: str) -> None:
    log = replace(log_of(VOLTAGE), load=replace(log_of(VOLTAGE).load, inertia=0.49 * 0.01 + 1e-6, gravity=9.81 * 0.049))
    log = replace(log, position=np.zeros(len(log)))
    drive = simulator_drive(VOLTAGE, [log])
    written = tmp_path / "written.xml"
    written.write_bytes(edited_drive(robot, "elbow", drive, kind))
    changed = [line for line in difflib.ndiff(ROBOT.splitlines(), written.read_text().splitlines()) if line[0] == "-"]
    assert len(changed) == 2  # the joint and its actuator
    for piece in ("<!-- from the workshop -->", "<!-- turns -->", 'name="shell"', "actuatorfrc", 'name="home"'):
        assert piece in written.read_text()
    model = mujoco.MjModel.from_xml_path(str(written))
    assert [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, k) for k in range(2)] == [
        "elbow_servo",
        "wrist_motor",
    ]
    assert model.dof_armature[0] == pytest.approx(0.0016)
    assert model.dof_frictionloss[0] == pytest.approx(0.02)
    assert model.dof_damping[0] == pytest.approx(0.033 if kind == "position" else 0.003)
    assert model.dof_damping[1] == 7.0  # the other joint keeps its class
    data, path = mujoco.MjData(model), []
    goal = np.repeat(log.goal, 10)  # 5 ms over 0.5 ms
    for value in goal:
        path.append(data.qpos[0])
        data.ctrl[0] = value
        mujoco.mj_step(model, data)
    assert np.abs(np.array(path)[::10] - rollout(VOLTAGE, log)).mean() < 2e-3


@pytest.mark.parametrize("kind", ["position", "dcmotor"])
@pytest.mark.parametrize(
    "actuator", ['<motor name="a" joint="elbow" class="x"/>', '<general name="a" joint="elbow" class="x" gear="-20"/>']
)
def test_default_classes_and_motors_do_not_bend_the_drive(
    robot: Path, tmp_path: Path, actuator: str, kind: str
) -> None:
    text = ROBOT.replace('<position name="elbow_servo" joint="elbow" kp="20" ctrlrange="-170 170"/>', actuator)
    ranges = '<general forcerange="-.1 .1" ctrlrange="-.2 .2"/>'
    odd = f'<default class="x">{ranges}<position timeconst=".5" kv="9"/></default>'
    robot.write_text(text.replace("</default>", f"{odd}</default>", 1).replace("elbow_servo", "a"))
    log = replace(log_of(VOLTAGE), load=replace(log_of(VOLTAGE).load, inertia=0.49 * 0.01 + 1e-6, gravity=9.81 * 0.049))
    log = replace(log, position=np.zeros(len(log)))
    written = tmp_path / "written.xml"
    written.write_bytes(edited_drive(robot, "elbow", simulator_drive(VOLTAGE, [log]), kind))
    model = mujoco.MjModel.from_xml_path(str(written))
    data, path = mujoco.MjData(model), []
    for value in np.repeat(log.goal, 10):
        path.append(data.qpos[0])
        data.ctrl[0] = value
        mujoco.mj_step(model, data)
    assert np.abs(np.array(path)[::10] - rollout(VOLTAGE, log)).mean() < 2e-3
    assert ("had gear -20" in written.read_text()) == ("gear" in actuator)


def test_a_joint_without_actuator_gets_one(robot: Path, tmp_path: Path) -> None:
    text = ROBOT.replace('<position name="elbow_servo" joint="elbow" kp="20" ctrlrange="-170 170"/>', "")
    text = text.replace('<actuatorfrc actuator="elbow_servo"/>', "").replace('ctrl="0 0"', "")
    robot.write_text(text)
    drive = simulator_drive(VOLTAGE, [log_of(VOLTAGE)])
    (tmp_path / "w.xml").write_bytes(edited_drive(robot, "elbow", drive))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "w.xml")).nu == 2
    section = text[text.index("<actuator>") : text.index("</actuator>") + len("</actuator>")]
    robot.write_text(text.replace(section, ""))
    (tmp_path / "w.xml").write_bytes(edited_drive(robot, "elbow", drive))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "w.xml")).nu == 1


def test_every_number_of_the_file_stands_with_its_interval(robot: Path) -> None:
    drive = simulator_drive(VOLTAGE, [log_of(VOLTAGE)])
    text = edited_drive(robot, "elbow", drive).decode()
    low, high = drive.numbers["armature"].low, drive.numbers["armature"].high
    assert f"armature: 0.0016 kg m², 95 % {low:.4g} to {high:.4g}" in text
    # The logarithm's standard deviation is 0.02: exp(±1.96 · 0.02), to the noise of 4,000 draws.
    assert np.log(high / low) == pytest.approx(2 * 1.96 * 0.02, rel=0.06)


def test_wrong_joints_are_refused_by_name(robot: Path) -> None:
    drive = simulator_drive(VOLTAGE, [log_of(VOLTAGE)])
    with pytest.raises(UnknownNameError, match="elbow"):
        edited_drive(robot, "elbo", drive)
    robot.write_text('<mujoco><include file="body.xml"/><worldbody/></mujoco>')
    with pytest.raises(ExportError, match=r"body\.xml"):
        edited_drive(robot, "elbow", drive)
    robot.write_text('<mujoco><worldbody><body><joint name="b" type="ball"/></body></worldbody></mujoco>')
    with pytest.raises(ExportError, match="ball"):
        edited_drive(robot, "b", drive)


def test_load_friction_becomes_the_nearest_coulomb_friction_and_is_scored() -> None:
    model = replace(VOLTAGE, friction="M3", parameters={**VOLTAGE.parameters, "load_friction": 0.15})
    log = replace(log_of(model), position=np.zeros(800))
    measured = replace(log, position=rollout(model, log))
    plain = replay_errors(simulator_drive(model, (), kp=400.0, volts=7.4), [measured])[-1].fit
    delivered = deliver_drive(model, [measured], full=(0.0, float("nan")))
    assert [r.format for r in delivered.replays] == ["mjcf", "mjcf-dcmotor"]
    # Friction without its load-dependent part misses a part of the motion; the equivalent gets most of it back.
    assert delivered.replays[-1].fit < 0.6 * plain
    assert any("load_friction 0.15" in line for line in delivered.drive.missing)
    # The fitted simple drive follows not worse than the one with the nearest torques of friction.
    first = replay_errors(simulator_drive(model, [measured]), [measured])[-1].fit
    assert delivered.replays[-1].fit < first


def test_the_nearest_simple_drive_of_a_simple_drive_is_itself() -> None:
    log = replace(log_of(VOLTAGE), position=np.zeros(800))
    measured = replace(log, position=rollout(VOLTAGE, log))
    start = with_parameters(VOLTAGE, armature=0.002, friction_base=0.03)
    found = nearest_simple(start, [measured])
    for name in ("torque_per_volt", "armature", "friction_base"):
        assert found[name] == pytest.approx(VOLTAGE[name], rel=1e-3)


def test_the_equivalent_of_coulomb_friction_is_itself() -> None:
    log = replace(log_of(VOLTAGE), position=0.7 * np.sin(3.0 * log_of(VOLTAGE).time))
    assert equivalent_friction(VOLTAGE, [log]) == pytest.approx((0.02, 0.003), rel=1e-6)


def test_a_gap_starts_the_rollout_again() -> None:
    log = log_of(TORQUE)
    late = replace(log, time=log.time + 3.0 * (np.arange(len(log)) >= 400), position=np.linspace(0.0, 1.0, len(log)))
    path = replay_drive(simulator_drive(TORQUE, [log]), late)
    assert path[0] == late.position[0]
    assert path[400] == late.position[400]


def test_the_error_of_a_rollout_is_over_all_samples() -> None:
    log = log_of(TORQUE)
    assert mean_error([log.position + 0.01, log.position - 0.03], [log, log]) == pytest.approx(0.02)


def test_a_filter_without_back_emf_is_not_held_by_a_dcmotor() -> None:
    log = log_of(LOOP)
    filtered = simulator_drive(with_parameters(LOOP, no_load_speed=10.0), [log])
    assert not holds_dcmotor(filtered)
    assert "mjcf-dcmotor" not in deliver_drive(LOOP, [log]).formats


def test_bam_gets_the_nearest_drive_of_its_friction_models() -> None:
    model = with_parameters(VOLTAGE, load_friction_quad=0.3)
    log = replace(log_of(model), position=np.zeros(800))
    measured = replace(log, position=rollout(model, log))
    written = deliver_drive(model, [measured]).formats["bam"]
    assert list(written.files) == ["bam-m3.json"]
    assert "Fitted to the logs again" in written.notes[0]
    near = bam_drive(model, [measured])
    assert near["load_friction_quad"] == 0.0
    # Friction in proportion to torque is nearer to friction of its square than Coulomb friction alone.
    plain = np.abs(rollout(replace(near, parameters=nearest_simple(model, [measured]), friction="M1"), log))
    assert np.abs(rollout(near, log) - measured.position).mean() < np.abs(plain - np.abs(measured.position)).mean()
