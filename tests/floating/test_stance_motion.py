"""Motions on fixed feet: Pinocchio agrees that the feet stay, and that the forces carry the robot."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.errors import ExcitationError
from steelyard.floating import design_stance_motion
from steelyard.robot import load_robot
from steelyard.robot.free import whole_quaternion

pin = pytest.importorskip("pinocchio")

BODY = (
    '<link name="{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/>'
    '<inertia ixx="{3}" iyy="{3}" izz="{3}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{0}"/><axis xyz="{2}"/><origin xyz="{3}"/>'
    '<limit lower="-3" upper="3" effort="60" velocity="8"/></joint>'
)
FOOT = (
    '<link name="{0}"/><joint name="{0}_fixed" type="fixed"><parent link="{1}"/><child link="{0}"/>'
    '<origin xyz="0 0 -0.2"/></joint>'
)


def quadruped() -> str:
    text = BODY.format("trunk", "0.01 0 0.02", 8.0, 0.1)
    for leg, x, y in (("a", 0.2, 0.12), ("b", 0.2, -0.12), ("c", -0.2, 0.12), ("d", -0.2, -0.12)):
        text += BODY.format(f"{leg}1", "0 0 0", 0.4, 0.001) + JOINT.format(f"{leg}1", "trunk", "1 0 0", f"{x} {y} 0")
        text += BODY.format(f"{leg}2", "0 0 -0.1", 0.5, 0.002) + JOINT.format(f"{leg}2", f"{leg}1", "0 1 0", "0 0 0")
        text += BODY.format(f"{leg}3", "0 0 -0.1", 0.2, 0.001) + JOINT.format(f"{leg}3", f"{leg}2", "0 1 0", "0 0 -0.2")
        text += FOOT.format(f"{leg}_foot", f"{leg}3")
    return f'<robot name="four">{text}</robot>'


FEET = ("a_foot", "b_foot", "c_foot", "d_foot")
POSTURE = (0.0, 0.7, -1.4) * 4


def test_feet_stay_and_forces_carry_the_robot() -> None:
    robot = load_robot(quadruped(), floating=True)
    motion = design_stance_motion(robot, FEET, POSTURE, duration=6.0, rate=100.0)
    model = pin.buildModelFromXML(quadruped(), pin.JointModelFreeFlyer())
    data, frames = model.createData(), [model.getFrameId(name) for name in FEET]
    places = []
    force, torque = motion.stance.forces((motion.q, motion.dq, motion.ddq), robot.inertial_parameters)
    weight = 9.81 * pin.computeTotalMass(model)
    for k in range(0, len(motion.t), 7):
        q = np.concatenate([motion.q[k, :3], np.roll(whole_quaternion(motion.q[k, 3:6]), -1), motion.q[k, 6:]])
        v = motion.dq[k]
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        places.append([data.oMf[f].translation.copy() for f in frames])
        J = [pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)[:3] for f in frames]
        assert np.abs(np.vstack(J) @ v).max() < 2e-3  # differences at 100 Hz of the base
        left = pin.rnea(model, data, q, v, motion.ddq[k]) - sum(j.T @ f for j, f in zip(J, force[k], strict=True))
        assert np.abs(left[:6]).max() < 1e-8 * weight
        assert np.allclose(left[6:], torque[k], atol=1e-8 * weight)
    assert np.ptp(np.array(places), axis=0).max() < 1e-8
    assert force[:, :, 2].min() >= 0.1 * weight / 4
    assert np.all(np.linalg.norm(force[:, :, :2], axis=2) <= 0.5 * force[:, :, 2])
    assert np.abs(motion.dq[[0, -1]]).max() < 1e-3
    assert np.abs(motion.q[:, 6:]).max() < 3.0
    assert motion.rank > 0.8 * motion.base.rank


def test_stretched_legs_and_wrong_contacts_are_refused() -> None:
    robot = load_robot(quadruped(), floating=True)
    with pytest.raises(ExcitationError, match="standing posture"):
        design_stance_motion(robot, FEET, [0.0] * 12)
    with pytest.raises(ExcitationError, match="NAME:flat"):
        design_stance_motion(robot, ["a_foot:round"], POSTURE)


def test_the_command_writes_the_motion_of_the_joints(tmp_path) -> None:
    (tmp_path / "four.urdf").write_text(quadruped())
    words = ["excite", str(tmp_path / "four.urdf"), "--feet", ",".join(FEET), "--duration", "6", "--rate", "50"]
    posture = ",".join(map(str, POSTURE))
    done = CliRunner().invoke(app, [*words, "--posture", posture, "-o", str(tmp_path / "motion")])
    assert done.exit_code == 0, done.output
    head = (tmp_path / "motion" / "motion.csv").read_text().split("\n")[0].split(",")
    assert head[:2] == ["t", "q_a1"]
    assert len(head) == 1 + 3 * 12
    done = CliRunner().invoke(app, [*words, "--poses", "4"])
    assert (done.exit_code, "--feet designs a sway" in " ".join(done.output.split())) == (2, True)
