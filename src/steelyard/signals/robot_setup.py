"""Applies statements about the robot in its logs: gravity, coupling of motors, reliable torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import Transmission
from steelyard.signals.log import Log


def apply_log_setup(robot: Robot, logs: Sequence[Log]) -> Robot:
    """Apply the gravity, the coupling of motors and the reliable torques that logs state.

    Args:
        robot: Robot.
        logs: Logs of the robot.
    """
    for log in logs:
        if log.joints != robot.joint_names:
            raise LogError(f"The log has joints {', '.join(log.joints)}; the robot {', '.join(robot.joint_names)}.")
    gravities = {tuple(log.meta["gravity"]) for log in logs if log.meta.get("gravity")}
    if len(gravities) > 1:
        raise LogError("The logs state different directions of gravity; identify them separately.")
    if gravities:
        robot = robot.with_gravity(gravities.pop())
    if robot.transmission is None:
        robot = _coupled(robot, logs)
    used = next((log.meta["torque_used"] for log in logs if log.meta.get("torque_used")), None)
    return robot.with_torque_used(used) if used else robot


def _coupled(robot: Robot, logs: Sequence[Log]) -> Robot:
    """Add the motors of the mapping's coupling, so that terms can act on them (`rotor@drive`); URDF lacks them."""
    stated = next((c for c in (log.meta.get("coupling") for log in logs) if c and c["matrix"]), None)
    # A coupling with other joints cannot be reduced to these.
    if stated is None or set(stated["joints"]) != set(robot.joint_names):
        return robot
    order = [stated["joints"].index(name) for name in robot.joint_names]
    motors = tuple(stated.get("motors", ()))
    return replace(robot, transmission=Transmission(np.array(stated["matrix"])[:, order], motors))
