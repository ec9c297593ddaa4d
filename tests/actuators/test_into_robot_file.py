"""`steelyard actuator --into`: from a table of goals and positions to the user's robot file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_files import write_sage
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.export import model_to_urdf

mujoco = pytest.importorskip("mujoco", "3.12", reason="MuJoCo is the servo (pip install mujoco)")

SERVO = """<mujoco><option timestep="0.0005"/><worldbody><body>
  <joint name="elbow" axis="0 1 0" armature="0.002" damping="0.04" frictionloss="0.03"/>
  <inertial pos="0 0 -0.1" mass="{mass}" diaginertia="1e-6 1e-6 1e-6"/></body></worldbody>
<actuator><position name="servo" joint="elbow" kp="{kp}" forcelimited="true" forcerange="-0.7 0.7"/></actuator>
</mujoco>"""


def written_runs(path: Path) -> Path:
    """Two gains and two masses, logged at 200 Hz with 4096 ticks a turn."""
    rows = ["log,time_s,goal_rad,position_ticks,kp,mass,length"]
    for kp, mass in ((100, 0.25), (200, 0.25), (100, 0.5), (200, 0.5)):
        model = mujoco.MjModel.from_xml_string(SERVO.format(mass=mass, kp=0.005 * kp))
        data = mujoco.MjData(model)
        for k in range(700):
            t = 0.005 * k
            goal = np.sin(3.0 * t) + 1.3 * (t > 1.5)
            ticks = round(4096 * data.qpos[0] / (2.0 * np.pi))
            rows.append(f"{kp}-{mass},{t:.3f},{goal:.6f},{ticks},{kp},{mass},0.1")
            data.ctrl[0] = goal
            mujoco.mj_step(model, data, 10)
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_servo_goes_from_its_log_into_the_robot_file(tmp_path: Path) -> None:
    runs = written_runs(tmp_path / "runs.csv")
    robot = tmp_path / "robot.xml"
    robot.write_text(SERVO.format(mass=0.5, kp=1.0))
    arguments = [
        "actuator",
        str(runs),
        "--friction",
        "M1",
        "--effects",
        "none",
        "--into",
        str(robot),
        "--joint",
        "elbow",
    ]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "MuJoCo, from the written mjcf" in done.output
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "robot.xml"))
    # The plant is MuJoCo's; its softer friction and first-order steps leave some percent.
    assert model.dof_armature[0] == pytest.approx(0.002, rel=0.05)
    assert model.dof_frictionloss[0] == pytest.approx(0.03, rel=0.05)
    assert model.dof_damping[0] == pytest.approx(0.04, rel=0.05)
    assert model.actuator_forcerange[0, 1] == pytest.approx(0.7, rel=0.03)
    assert model.actuator_gainprm[0, 0] == pytest.approx(0.005 * 200, rel=0.03)
    assert robot.read_text() == SERVO.format(mass=0.5, kp=1.0)
    refused = CliRunner().invoke(app, [*arguments[:-1], "elbo", "-o", str(tmp_path / "other")])
    assert refused.exit_code == 2
    assert "elbow" in refused.output
    assert not (tmp_path / "other").exists()
    without = CliRunner().invoke(app, ["actuator", str(runs), "--into", str(robot)])
    assert without.exit_code == 2
    assert "--joint" in without.output


def test_a_joint_of_a_robot_goes_from_a_sage_folder_into_its_urdf(tmp_path: Path) -> None:
    arm = sy.Model.nominal(sy.load_robot("rotradi"))
    model_to_urdf(arm, tmp_path / "arm.urdf")
    joint = arm.robot.joint_names[1]
    write_sage(tmp_path / "run", joints=tuple(arm.robot.joint_names))
    robot = ["--robot", str(tmp_path / "arm.urdf"), "--into", str(tmp_path / "arm.urdf"), "--joint", joint]
    structure = ["--friction", "M1", "--effects", "none", "--kind", "position-loop"]
    done = CliRunner().invoke(app, ["actuator", str(tmp_path / "run"), *robot, *structure, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    # Its other joints are as before, and the file is a robot of ours again.
    written, before = sy.load_robot(tmp_path / "out" / "arm.urdf"), sy.load_robot(tmp_path / "arm.urdf")
    assert written.joint_names == before.joint_names
    assert np.array_equal(written.inertial_parameters, before.inertial_parameters)
    assert (tmp_path / "out" / "arm.urdf").read_text().count("identified by Steelyard") == 1
