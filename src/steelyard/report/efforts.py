"""Units of the torques that a report shows."""

from __future__ import annotations

from steelyard.robot.robot import Robot


def effort_units(robot: Robot) -> list[str]:
    """One per joint whose torque is used: N m for those that turn, N for those that slide."""
    return [j.effort_unit for j, used in zip(robot.joints, robot.torque_used, strict=True) if used]


def effort_unit(robot: Robot) -> str:
    """For the head of a column that holds all of them."""
    return ", ".join(dict.fromkeys(effort_units(robot)))
