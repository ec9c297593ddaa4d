"""Motion of a frame of a robot: rotation, velocity, acceleration and gravity in its own coordinates, traced once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics import kinematics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector, matvec, transposed
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import LinkFrame


@dataclass(frozen=True, eq=False)
class FrameMotion:
    """Motion of a frame, each `(samples, 3)` in the frame's own coordinates.

    Attributes:
        spin: ω [rad/s].
        turn: ω̇ [rad/s²].
        velocity: Velocity of the origin [m/s].
        pull: Acceleration of the origin minus gravity [m/s²], the reading of an accelerometer.
        gravity: Acceleration of gravity [m/s²].
    """

    spin: Array
    turn: Array
    velocity: Array
    pull: Array
    gravity: Array


class FrameKinematics:
    """The motion of one frame of a robot, compiled for many samples.

    Args:
        robot: Robot.
        place: Frame on its link.
        q, dq, ddq: Positions [rad, m], velocities and accelerations, `(samples, joints)`.
    """

    def __init__(self, robot: Robot, place: LinkFrame) -> None:
        if place.host < 0:
            raise RobotError("The frame is fixed to the base, which does not move; name one on a moving link.")
        self.robot, self.place = robot, place
        widths = {"q": robot.dof, "dq": robot.dof, "ddq": robot.dof}
        self._evaluator = Evaluator(trace("frame_motion", widths, self.over_scalars, (15,)))

    def __call__(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> FrameMotion:
        out = self._evaluator({"q": q, "dq": dq, "ddq": ddq})
        return FrameMotion(*np.split(out, 5, axis=-1))

    def over_scalars(self, q: Vector, dq: Vector, ddq: Vector) -> dict[tuple[int, ...], Any]:
        """Compute the fifteen numbers of a `FrameMotion` over scalars, one after the other."""
        robot, host = self.robot, self.place.host
        places = kinematics.placements(robot, q)
        fixed = kinematics.Placement(
            kinematics.constant(self.place.rotation), [float(x) for x in self.place.translation]
        )
        moved = kinematics.motion_at(fixed, kinematics.motions(robot, places, dq, ddq)[host])
        velocity = fixed.screw(kinematics.velocities(robot, places, dq)[host]).linear
        rotation, _ = kinematics.base_pose(robot, places)[host]
        gravity = fixed.inward(matvec(transposed(rotation), [float(g) for g in robot.gravity]))
        values = [*moved.spin, *moved.turn, *velocity, *moved.pull, *gravity]
        return {(k,): value for k, value in enumerate(values)}
