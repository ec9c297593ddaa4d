"""The robot as the owner of a log says that it stands."""

from __future__ import annotations

from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log


def as_logged(robot: Robot, log: Log) -> Robot:
    """The robot with the log's direction of gravity and the joints whose torque it says can be used."""
    if log.joints != robot.joint_names:
        raise LogError(f"The log has joints {', '.join(log.joints)}; the robot {', '.join(robot.joint_names)}.")
    if log.meta.get("gravity"):
        robot = robot.with_gravity(log.meta["gravity"])
    used = log.meta.get("torque_used")
    return robot.with_torque_used(used) if used else robot
