"""The moves of a via-point program, and the program: plain data that a robot controller could be given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.excitation.interpolator.error import ProgramError
from steelyard.robot.inverse_kinematics import Pose


def _check(kind: str, speed: float, fly: float, unit: str) -> None:
    if not 0.0 < speed < np.inf:
        raise ProgramError(f"A {kind} move has speed {speed} {unit}; it would never arrive. Give a positive one.")
    if not 0.0 <= fly <= 1.0:
        raise ProgramError(f"A {kind} move has fly {fly}; it is 0 (stop at the via-point) to 1 (round it widely).")


@dataclass(frozen=True, eq=False)
class JointMove:
    """All joints go straight (in joint space) to a posture (rad or m), or to the nearest one of a pose.

    `speed` is a fraction of the velocity limits; `fly` says how much of the slowing down is given to the next move.
    """

    target: tuple[float, ...] | Pose
    speed: float = 1.0
    fly: float = 0.0

    def __post_init__(self) -> None:
        _check("joint", self.speed, self.fly, "of the limits")
        if self.speed > 1.0:
            raise ProgramError(f"A joint move has speed {self.speed}; it is a fraction of the limits, at most 1.")
        if not isinstance(self.target, Pose):
            object.__setattr__(self, "target", tuple(float(q) for q in self.target))


@dataclass(frozen=True, eq=False)
class LineMove:
    """The tool goes straight to a pose at `speed` (m/s), turning evenly on the way."""

    target: Pose
    speed: float = 0.25
    fly: float = 0.0

    def __post_init__(self) -> None:
        _check("line", self.speed, self.fly, "m/s")


@dataclass(frozen=True, eq=False)
class CircleMove:
    """The tool goes along the circle through `via` (a place; its orientation does not count) to a pose, at `speed`."""

    via: Pose
    target: Pose
    speed: float = 0.25
    fly: float = 0.0

    def __post_init__(self) -> None:
        _check("circle", self.speed, self.fly, "m/s")


@dataclass(frozen=True)
class Pause:
    """Stands for some seconds."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0.0 < self.seconds < np.inf:
            raise ProgramError(f"A pause of {self.seconds} s; give a positive time or leave it out.")


Move = JointMove | LineMove | CircleMove | Pause


@dataclass(frozen=True, eq=False)
class Program:
    """Via-points in their order: a posture to start from (rad or m), then moves."""

    start: tuple[float, ...]
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(float(q) for q in self.start))
        object.__setattr__(self, "moves", tuple(self.moves))
        if not self.moves:
            raise ProgramError("The program has no moves; give it one at least.")

    @staticmethod
    def through(postures: ArrayLike, speed: float = 1.0, fly: float = 0.0) -> Program:
        """Joint moves from posture to posture `(via-points, joints)`; the last one stops."""
        points = np.atleast_2d(np.asarray(postures, dtype=float))
        last = len(points) - 1
        moves = tuple(JointMove(tuple(p), speed, fly if k < last else 0.0) for k, p in enumerate(points) if k)
        return Program(tuple(points[0]), moves)
