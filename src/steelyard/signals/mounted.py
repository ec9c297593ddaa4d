"""The robot as the owner of its logs says that it stands."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log


def as_logged(robot: Robot, logs: Sequence[Log]) -> Robot:
    """The robot with the logs' direction of gravity and the joints whose torque they say can be used."""
    for log in logs:
        if log.joints != robot.joint_names:
            raise LogError(f"The log has joints {', '.join(log.joints)}; the robot {', '.join(robot.joint_names)}.")
    gravities = {tuple(log.meta["gravity"]) for log in logs if log.meta.get("gravity")}
    if len(gravities) > 1:
        raise LogError("The logs state different directions of gravity; identify them one by one.")
    if gravities:
        robot = robot.with_gravity(gravities.pop())
    used = next((log.meta["torque_used"] for log in logs if log.meta.get("torque_used")), None)
    return robot.with_torque_used(used) if used else robot
