"""A via-point program and its moves, as plain data for a robot controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.kinematics.inverse import Pose


def _check(kind: str, speed: float, fly: float, unit: str) -> None:
    if not 0.0 < speed < np.inf:
        raise ProgramError(f"A {kind} move has speed {speed} {unit}; give a positive one.")
    if not 0.0 <= fly <= 1.0:
        raise ProgramError(f"A {kind} move has fly {fly}; give 0 (stop at the via-point) to 1 (widest rounding).")


@dataclass(frozen=True, eq=False)
class JointMove:
    """All joints move straight (in joint space) to a posture, or to the nearest one of a pose.

    Args:
        target: Posture [rad, m] or pose.
        speed: Fraction of the velocity limits.
        fly: Share of its deceleration that overlaps with the next move.
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
    """The tool moves straight to a pose at `speed` [m/s] with a uniform rotation."""

    target: Pose
    speed: float = 0.25
    fly: float = 0.0

    def __post_init__(self) -> None:
        _check("line", self.speed, self.fly, "m/s")


@dataclass(frozen=True, eq=False)
class CircleMove:
    """The tool moves along the circle through the position of `via` to a pose, at `speed` [m/s]."""

    via: Pose
    target: Pose
    speed: float = 0.25
    fly: float = 0.0

    def __post_init__(self) -> None:
        _check("circle", self.speed, self.fly, "m/s")


@dataclass(frozen=True)
class Pause:
    """Standstill for some seconds."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0.0 < self.seconds < np.inf:
            raise ProgramError(f"A pause of {self.seconds} s; give a positive time or leave it out.")


Move = JointMove | LineMove | CircleMove | Pause


@dataclass(frozen=True, eq=False)
class Program:
    """Via-points in their order: a start posture [rad, m], then moves."""

    start: tuple[float, ...]
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(float(q) for q in self.start))
        object.__setattr__(self, "moves", tuple(self.moves))
        if not self.moves:
            raise ProgramError("The program has no moves; give at least one.")

    @staticmethod
    def through(postures: ArrayLike, speed: float = 1.0, fly: float = 0.0) -> Program:
        """Return joint moves from posture to posture; the last one stops.

        Args:
            postures: Via-points [rad, m], shape (via-points, joints).
            speed: Fraction of the velocity limits.
            fly: Share of its deceleration that a move overlaps with the next one, 0 to 1.
        """
        points = np.atleast_2d(np.asarray(postures, dtype=float))
        last = len(points) - 1
        moves = tuple(JointMove(tuple(p), speed, fly if k < last else 0.0) for k, p in enumerate(points) if k)
        return Program(tuple(points[0]), moves)


@dataclass(frozen=True, eq=False)
class ProgramRegion:
    """A part of the workspace: bounds of the via-points and of the common speed, for genes from 0 to 1.

    Source: Pedrocchi et al. 2013.

    Args:
        low: Lower bounds: x, y, z [m], roll, pitch, yaw [rad] for poses; joint positions for "joints".
        high: Upper bounds.
        speed: Range of the speed, as fractions of the joints' velocity limits.
        space: "pose" or "joints".
    """

    low: Array
    high: Array
    speed: tuple[float, float] = (0.1, 1.0)
    space: str = "pose"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.space not in ("pose", "joints") or (self.space == "pose" and self.low.shape != (6,)):
            raise ProgramError("The `space` of a region is 'pose' (x, y, z, roll, pitch, yaw: 6 bounds) or 'joints'.")
        if self.low.shape != self.high.shape or np.any(self.low > self.high):
            raise ProgramError("A region needs as many lower as upper bounds, with low ≤ high.")
        if not 0.0 < self.speed[0] <= self.speed[1] <= 1.0:
            raise ProgramError(f"The region's speeds are {self.speed}; give 0 < low ≤ high ≤ 1.")

    def genes(self, points: int) -> int:
        """Return the number of genes of a program with `points` via-points: one per coordinate, and the speed."""
        return points * len(self.low) + 1

    def values(self, population: Array) -> tuple[Array, Array]:
        """Return via-points (programs, points, coordinates) and speeds (programs,) of a `population` of genes."""
        width = len(self.low)
        if population.ndim != 2 or population.shape[1] % width != 1 or population.shape[1] == 1:
            raise ShapeError(
                f"There are {population.shape[1:]} genes; expected {width} per via-point and one for the speed."
            )
        if np.any((population < 0.0) | (population > 1.0)) or not np.all(np.isfinite(population)):
            raise ProgramError("A gene is outside 0 to 1; clip the genes before decoding them.")
        points = self.low + population[:, :-1].reshape(len(population), -1, width) * (self.high - self.low)
        return points, self.speed[0] + population[:, -1] * (self.speed[1] - self.speed[0])

    def program(self, genes: ArrayLike, start: ArrayLike, fly: float = 0.5) -> Program:
        """Return the program of one individual; the last move stops.

        Args:
            genes: Genes of the program, 0 to 1.
            start: Posture at the start [rad, m].
            fly: Share of its deceleration that a move overlaps with the next one.
        """
        vector = np.asarray(genes, dtype=float)
        if vector.ndim != 1:
            raise ShapeError(f"The genes have shape {vector.shape}; expected one program's, with one dimension.")
        (points,), (speed,) = self.values(vector[None])
        speed = float(speed)
        moves = []
        for k, point in enumerate(points):
            target = Pose.from_rpy(point[:3], point[3:]) if self.space == "pose" else tuple(point)
            moves.append(JointMove(target, speed, fly if k < len(points) - 1 else 0.0))
        return Program(tuple(np.asarray(start, dtype=float)), tuple(moves))
