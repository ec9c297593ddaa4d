"""The robot as the owner of its logs says that it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import Transmission
from steelyard.signals.log import Log


def as_logged(robot: Robot, logs: Sequence[Log]) -> Robot:
    """`robot` with the `logs`' direction of gravity, coupling of motors and joints whose torque can be used."""
    for log in logs:
        if log.joints != robot.joint_names:
            raise LogError(f"The log has joints {', '.join(log.joints)}; the robot {', '.join(robot.joint_names)}.")
    gravities = {tuple(log.meta["gravity"]) for log in logs if log.meta.get("gravity")}
    if len(gravities) > 1:
        raise LogError("The logs state different directions of gravity; identify them one by one.")
    if gravities:
        robot = robot.with_gravity(gravities.pop())
    if robot.transmission is None:
        robot = _coupled(robot, logs)
    used = next((log.meta["torque_used"] for log in logs if log.meta.get("torque_used")), None)
    return robot.with_torque_used(used) if used else robot


def _coupled(robot: Robot, logs: Sequence[Log]) -> Robot:
    """The robot with the motors of the mapping's coupling, so that terms can act on them (`rotor@drive`).

    A description in URDF does not know which motor moves which joints; who maps the log does.
    """
    stated = next((c for c in (log.meta.get("coupling") for log in logs) if c and c["matrix"]), None)
    # A coupling of more joints than move here has no part that could be taken.
    if stated is None or set(stated["joints"]) != set(robot.joint_names):
        return robot
    order = [stated["joints"].index(name) for name in robot.joint_names]
    motors = tuple(stated.get("motors", ()))
    return replace(robot, transmission=Transmission(np.array(stated["matrix"])[:, order], motors))
