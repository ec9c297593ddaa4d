"""The moves of a via-point program, and the program: plain data that a robot controller could be given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.kinematics.inverse import Pose


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
        """Joint moves from posture to posture, `postures` `(via-points, joints)` in rad (m); the last one stops.

        `speed` is a fraction of the velocity limits, `fly` (0 to 1) how much of its slowing down a move gives to the
        next.
        """
        points = np.atleast_2d(np.asarray(postures, dtype=float))
        last = len(points) - 1
        moves = tuple(JointMove(tuple(p), speed, fly if k < last else 0.0) for k, p in enumerate(points) if k)
        return Program(tuple(points[0]), moves)


@dataclass(frozen=True, eq=False)
class ProgramRegion:
    """A part of the workspace to work in: bounds of every gene's value, and of the one interpolation speed.

    Genes run from 0 to 1 (Pedrocchi et al. 2013).

    `low` and `high` are poses x, y, z (m), roll, pitch, yaw (rad) if `space` is "pose"; joint positions if "joints".
    `speed` is a fraction of the joints' velocity limits.
    """

    low: Array
    high: Array
    speed: tuple[float, float] = (0.1, 1.0)
    space: str = "pose"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.space not in ("pose", "joints") or (self.space == "pose" and self.low.shape != (6,)):
            raise ProgramError("A region is of `space` 'pose' (x, y, z, roll, pitch, yaw: 6 bounds) or 'joints'.")
        if self.low.shape != self.high.shape or np.any(self.low > self.high):
            raise ProgramError("A region needs as many lower as upper bounds, none of them above its partner.")
        if not 0.0 < self.speed[0] <= self.speed[1] <= 1.0:
            raise ProgramError(f"The region's speeds are {self.speed}; they lie between 0 (not included) and 1.")

    def genes(self, points: int) -> int:
        """How many genes a program of so many via-points (`points`) has: one per coordinate, and the speed."""
        return points * len(self.low) + 1

    def values(self, population: Array) -> tuple[Array, Array]:
        """Via-points `(programs, points, coordinates)` and speeds `(programs,)` of a `population` of genes, 0 to 1,
        `(programs, genes)`."""
        width = len(self.low)
        if population.ndim != 2 or population.shape[1] % width != 1 or population.shape[1] == 1:
            raise ShapeError(
                f"There are {population.shape[1:]} genes; expected {width} per via-point and one for the speed."
            )
        if np.any((population < 0.0) | (population > 1.0)) or not np.all(np.isfinite(population)):
            raise ProgramError("A gene lies outside 0 to 1; clip the genes before decoding them.")
        points = self.low + population[:, :-1].reshape(len(population), -1, width) * (self.high - self.low)
        return points, self.speed[0] + population[:, -1] * (self.speed[1] - self.speed[0])

    def program(self, genes: ArrayLike, start: ArrayLike, fly: float = 0.5) -> Program:
        """The program of `genes` (0 to 1): from `start` by joint moves with `fly`; the last one stops."""
        given = np.asarray(genes, dtype=float)
        if given.ndim != 1:
            raise ShapeError(f"There are {given.shape} genes; expected those of one program.")
        (points,), (speed,) = self.values(given[None])
        speed = float(speed)
        moves = []
        for k, point in enumerate(points):
            target = Pose.from_rpy(point[:3], point[3:]) if self.space == "pose" else tuple(point)
            moves.append(JointMove(target, speed, fly if k < len(points) - 1 else 0.0))
        return Program(tuple(np.asarray(start, dtype=float)), tuple(moves))
