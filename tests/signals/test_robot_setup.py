"""Statements of a mapping about the robot are applied to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.robot import load_robot
from steelyard.signals.read import read_log
from steelyard.signals.robot_setup import apply_log_setup


def test_a_coupling_gives_the_robot_its_motors_in_the_order_of_its_joints(tmp_path: Path) -> None:
    robot = load_robot("szabo3r")
    a, b, c = robot.joint_names
    path = tmp_path / "log.csv"
    rows = "\n".join(f"{0.01 * k},{k},{2 * k},{3 * k},1,2,3" for k in range(20))
    path.write_text(f"t,q1,q2,q3,tau1,tau2,tau3\n{rows}\n")
    # The columns have another order than the robot's joints; motor 2 depends on the joints of columns 1 and 2.
    mapping = {"joints": [c, b, a], "side": "joint", "coupling": [[1, 0, 0], [1, 1, 0], [0, 0, 1]]}
    log = read_log(path, robot, mapping)
    np.testing.assert_allclose(log.tau[0], [3, 2, 1])  # on the joint side without conversion
    coupled = apply_log_setup(robot, [log])
    assert coupled.transmission is not None
    np.testing.assert_allclose(coupled.transmission.matrix, [[0, 0, 1], [0, 1, 1], [1, 0, 0]])


def test_a_robot_with_motors_keeps_them() -> None:
    robot = load_robot("irp6")
    assert robot.transmission is not None
    assert apply_log_setup(robot, []).transmission is robot.transmission
