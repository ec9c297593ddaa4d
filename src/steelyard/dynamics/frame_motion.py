"""Motion of a frame of a robot: rotation, velocity, acceleration and gravity in its own coordinates, traced once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics import kinematics
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector, cross, matvec, plus, transposed
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


class FrameJacobian:
    """The Jacobian of a frame: velocity of a point of it, then angular velocity, in its own axes, per unit rate of q.

    Args:
        robot: Robot.
        place: Frame on its link.
        radius: Radius of a sphere about the origin, whose lowest point is the point [m]; 0: the origin.
        q: Positions [rad, m], `(samples, joints)`.
    """

    def __init__(self, robot: Robot, place: LinkFrame, radius: float = 0.0) -> None:
        self.robot, self.place, self.radius = robot, place, radius
        self._evaluator = Evaluator(trace("frame_jacobian", {"q": robot.dof}, self.over_scalars, (6, robot.dof)))

    def __call__(self, q: ArrayLike) -> Array:
        """Compute the Jacobian, `(samples, 6, joints)`."""
        return self._evaluator({"q": q})

    def over_scalars(self, q: Vector) -> dict[tuple[int, int], Any]:
        """Compute the entries over scalars."""
        robot, out = self.robot, dict[tuple[int, int], Any]()
        places = kinematics.placements(robot, q)
        units = kinematics.ancestor_screws(robot, places, [kinematics.unit_screws(link) for link in robot.links])
        fixed = _fixed(self.place)
        arm = self._lowest(kinematics.base_pose(robot, places)[self.place.host][0]) if self.radius else None
        for c, ratio, s in units[self.place.host] if self.place.host >= 0 else ():
            screw = fixed.screw(s)
            linear = screw.linear if arm is None else plus(screw.linear, cross(screw.angular, arm))
            for k, value in enumerate((*linear, *screw.angular)):
                out[k, c] = out.get((k, c), 0.0) + ratio * value
        return out

    def _lowest(self, rotation: list[list[Any]]) -> list[Any]:
        """Return the lowest point of the sphere in the axes of the frame; `rotation` is that of the link."""
        down = self.robot.gravity / max(float(np.linalg.norm(self.robot.gravity)), 1e-12)
        inside = _fixed(self.place).inward(matvec(transposed(rotation), [float(x) for x in down]))
        return [self.radius * x for x in inside]


class StackedJacobian:
    """Rows of the Jacobians of several frames below one another, computed together.

    Args:
        frames: Jacobians of one robot.
        rows: Rows of each.
        q: Positions [rad, m], `(samples, joints)`.
    """

    def __init__(self, frames: Sequence[FrameJacobian], rows: Sequence[Sequence[int]]) -> None:
        dof = frames[0].robot.dof
        self.frames, self.rows = frames, rows
        self.count = sum(len(own) for own in rows)
        self._evaluator = Evaluator(trace("stacked_jacobian", {"q": dof}, self.over_scalars, (self.count, dof)))

    def over_scalars(self, q: Vector) -> dict[tuple[int, int], Any]:
        """Compute the entries over scalars."""
        out: dict[tuple[int, int], Any] = {}
        first = 0
        for frame, own in zip(self.frames, self.rows, strict=True):
            entries = frame.over_scalars(q)
            places = {k: first + i for i, k in enumerate(own)}
            out |= {(places[k], c): value for (k, c), value in entries.items() if k in places}
            first += len(own)
        return out

    def __call__(self, q: ArrayLike) -> Array:
        """Compute the rows, `(samples, rows, joints)`."""
        return self._evaluator({"q": q})


def _fixed(place: LinkFrame) -> kinematics.Placement:
    return kinematics.Placement(kinematics.constant(place.rotation), [float(x) for x in place.translation])


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
        fixed = _fixed(self.place)
        moved = kinematics.motion_at(fixed, kinematics.motions(robot, places, dq, ddq)[host])
        velocity = fixed.screw(kinematics.velocities(robot, places, dq)[host]).linear
        rotation, _ = kinematics.base_pose(robot, places)[host]
        gravity = fixed.inward(matvec(transposed(rotation), [float(g) for g in robot.gravity]))
        values = [*moved.spin, *moved.turn, *velocity, *moved.pull, *gravity]
        return {(k,): value for k, value in enumerate(values)}
