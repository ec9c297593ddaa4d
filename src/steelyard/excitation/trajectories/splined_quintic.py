"""`SplinedQuintic`: quintics from knot to knot, rest at both ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from steelyard.excitation.trajectories.family import TrajectoryError, check_duration
from steelyard.excitation.trajectories.piecewise import Piecewise, tied_ends
from steelyard.excitation.trajectories.registry import known
from steelyard.robot.spatial import Array

# Power coefficients on [0, 1] of the quintic with given p, p′, p″ at 0 and p, p′, p″ at 1 (columns in that order).
_HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


@known
@dataclass(frozen=True)
class SplinedQuintic(Piecewise):
    """Quintics between knots; coefficients are position, velocity and acceleration at every inner knot (SI units).

    `times` (s) are the inner knots, or their number if they shall be spread evenly. At both ends velocity and
    acceleration are zero; `start` and `end` are coefficients (the first, the last) unless given; `closed` makes the
    end the start.
    """

    kind: ClassVar[str] = "splined-quintic"

    duration: float
    times: tuple[float, ...] | int = 4
    start: float | None = None
    end: float | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "Splined quintic")
        if isinstance(self.times, int):
            if self.times < 0:
                raise TrajectoryError(f"A splined quintic cannot have {self.times} inner knots.")
            inner = np.linspace(0.0, self.duration, self.times + 2)[1:-1]
            object.__setattr__(self, "times", tuple(inner.tolist()))
        object.__setattr__(self, "times", tuple(float(t) for t in self.times))  # type: ignore[union-attr]
        if np.any(np.diff(self.breaks) <= 0.0):
            raise TrajectoryError(f"The inner knots {self.times} must rise between 0 and {self.duration} s.")
        self.free()

    @property
    def periodic(self) -> bool:
        return self.closed or (self.start is not None and self.start == self.end)

    @cached_property
    def breaks(self) -> Array:
        return np.array([0.0, *self.times, self.duration])  # type: ignore[misc]

    def shape(self) -> Array:
        pieces = len(self.breaks) - 1
        out = np.zeros((pieces, 6, 3 * (pieces + 1)))
        for i, h in enumerate(np.diff(self.breaks)):
            out[i, :, 3 * i : 3 * i + 6] = _HERMITE * np.tile([1.0, h, h * h], 2)
        return out

    def free(self) -> tuple[Array, Array]:
        """All y: position, velocity, acceleration of knot after knot, the ends included."""
        rows = 3 * len(self.breaks)
        at_rest = (1, 2, rows - 2, rows - 1)
        return tied_ends(rows, range(1), range(rows - 3, rows - 2), at_rest, self, "Splined quintic")

    def still(self, position: float) -> Array:
        return np.tile([position, 0.0, 0.0], len(self.breaks))
