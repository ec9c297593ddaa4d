"""The wrench of a payload compared with Pinocchio's Newton–Euler, and its integral with quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import pinocchio_of, public_robot_path

from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.payload.payload import cuboid
from steelyard.payload.sensor import _integral_regressor, wrench_regressor
from steelyard.robot import load_robot
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame, rotation_from_rpy

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")

BODY = cuboid(1.91, np.array([0.10, 0.06, 0.04]), np.array([0.03, -0.011, 0.073]))


def smooth(robot: Robot, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = 1.0 + 0.7 * np.arange(robot.dof)
    phase = t[:, None] * w + np.arange(robot.dof)
    return 0.6 * np.sin(phase), 0.6 * w * np.cos(phase), -0.6 * w**2 * np.sin(phase)


@pytest.mark.parametrize("name", ["irp6-wrist", "arm7", "tiago"])
def test_against_newton_euler_of_pinocchio(name: str) -> None:
    robot = load_robot(public_robot_path(name)) if name == "tiago" else load_robot(name)
    host = len(robot.links) - 1
    place = LinkFrame(host, rotation_from_rpy(0.3, -0.5, 1.1), np.array([0.05, -0.02, 0.1]))
    # The wrench on the payload is the difference of the last joint's wrench with and without it.
    joint, pose = host + 1, pin.SE3(place.rotation, place.translation)
    bare, loaded = pinocchio_of(robot), pinocchio_of(robot)
    if bare.nv != robot.dof:
        pytest.skip("a mimic joint moves freely in the oracle")
    loaded.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(BODY), pose)
    forces = [(model, model.createData()) for model in (bare, loaded)]
    t = np.linspace(0.0, 1.0, 7)
    q, dq, ddq = smooth(robot, t)
    found = wrench_regressor(FrameKinematics(robot, place)(q, dq, ddq)) @ BODY
    for k in range(len(t)):
        for model, data in forces:
            pin.rnea(model, data, q[k], dq[k], ddq[k])
        expected = pose.actInv(forces[1][1].f[joint] - forces[0][1].f[joint]).vector
        np.testing.assert_allclose(found[k], expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())


def test_the_integral_needs_no_acceleration() -> None:
    robot = load_robot("irp6-wrist")
    kinematics = FrameKinematics(robot, robot.frame())
    errors = []
    for count in (401, 801):
        t = np.linspace(0.0, 2.0, count)
        q, dq, _ = smooth(robot, t)
        h = t[1]
        without = _integral_regressor(kinematics(q, dq, np.zeros_like(q)), h)[-1]
        fine = np.linspace(0.0, 2.0, 40_001)
        exact = np.trapezoid(wrench_regressor(kinematics(*smooth(robot, fine))), dx=fine[1], axis=0)
        errors.append(np.abs(without - exact).max())
    # Trapezoids: the error falls with the square of the step.
    assert errors[1] < 0.3 * errors[0]
    assert errors[1] < 1e-3
