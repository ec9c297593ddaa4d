"""Via-point programs as genes from 0 to 1, for evolution (Pedrocchi et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.excitation.interpolator.error import ProgramError
from steelyard.excitation.interpolator.moves import JointMove, Program
from steelyard.robot.inverse_kinematics import Pose
from steelyard.robot.spatial import Array, frozen


@dataclass(frozen=True, eq=False)
class Region:
    """A part of the workspace to work in: bounds of every gene's value, and of the one interpolation speed.

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
        """How many genes a program of so many via-points has: one per coordinate, and the speed."""
        return points * len(self.low) + 1

    def program(self, genes: ArrayLike, start: ArrayLike, fly: float = 0.5) -> Program:
        """The program of these genes (0 to 1): from `start` by joint moves past all via-points; the last one stops."""
        values = np.asarray(genes, dtype=float)
        width = len(self.low)
        if values.ndim != 1 or len(values) % width != 1 or len(values) == 1:
            raise ShapeError(f"There are {values.shape} genes; expected {width} per via-point and one for the speed.")
        if np.any((values < 0.0) | (values > 1.0)) or not np.all(np.isfinite(values)):
            raise ProgramError("A gene lies outside 0 to 1; clip the genes before decoding them.")
        points = self.low + values[:-1].reshape(-1, width) * (self.high - self.low)
        speed = self.speed[0] + float(values[-1]) * (self.speed[1] - self.speed[0])
        moves = []
        for k, point in enumerate(points):
            target = Pose.from_rpy(point[:3], point[3:]) if self.space == "pose" else tuple(point)
            moves.append(JointMove(target, speed, fly if k < len(points) - 1 else 0.0))
        return Program(tuple(np.asarray(start, dtype=float)), tuple(moves))
