"""`MotionLimits`: how fast the joints and the tool may go."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.excitation.interpolator.error import ProgramError
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array, frozen


@dataclass(frozen=True)
class ToolLimits:
    """Acceleration and jerk of the tool along lines and circles (m/s², m/s³) and of its turning (rad/s, …).

    The speed along the path is each move's own.
    """

    acceleration: float = 3.0
    jerk: float = 30.0
    turn_speed: float = 2.0
    turn_acceleration: float = 6.0
    turn_jerk: float = 60.0


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Bounds of every joint `(joints,)`: position (rad or m), velocity, acceleration and jerk.

    An infinite jerk gives trapezoidal profiles, a finite one S-curves.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    tool: ToolLimits = field(default_factory=ToolLimits)

    @staticmethod
    def of(
        robot: Robot,
        acceleration: ArrayLike,
        velocity: ArrayLike | None = None,
        jerk: ArrayLike = np.inf,
        tool: ToolLimits | None = None,
    ) -> MotionLimits:
        """Positions (and velocities, unless given) as the robot's description has them."""
        own = [joint.velocity for joint in robot.joints]
        return MotionLimits(
            frozen([joint.lower for joint in robot.joints]),
            frozen([joint.upper for joint in robot.joints]),
            _row(robot, "velocity", own if velocity is None else velocity),
            _row(robot, "acceleration", acceleration),
            _row(robot, "jerk", jerk),
            tool or ToolLimits(),
        )


def _row(robot: Robot, name: str, values: ArrayLike) -> Array:
    given = np.asarray(values, dtype=float)
    if given.shape not in ((), (robot.dof,)):
        raise ShapeError(f"The limits of {name} have shape {given.shape}; expected one number or ({robot.dof},).")
    row = np.broadcast_to(given, (robot.dof,))
    for joint, value in zip(robot.joint_names, row, strict=True):
        if not value > 0.0 or (np.isinf(value) and name != "jerk"):
            wanted = "positive" if name == "jerk" else "positive, finite"
            raise ProgramError(f"Joint '{joint}' has a limit of {name} of {value}; a profile needs a {wanted} one.")
    return frozen(row)
