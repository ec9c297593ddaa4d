"""Motions without free shape: `Idle`, and `Fixed` polynomial pieces such as those of a via-point program."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steelyard.excitation.trajectories._pieces import evaluate, extent
from steelyard.excitation.trajectories.family import TrajectoryError, check_duration, register_family
from steelyard.ground.arrays import Array


@register_family
@dataclass(frozen=True)
class Idle:
    """A joint at rest while others move: q(t) = `position`.

    Args:
        duration: Duration [s].
        position: Position [rad, m]; None: the one coefficient.
        t, x, derivative: Arguments of the methods, as in `Family`.
    """

    kind: ClassVar[str] = "idle"

    duration: float
    position: float | None = 0.0

    def __post_init__(self) -> None:
        check_duration(self.duration, "Idle joint")

    @property
    def size(self) -> int:
        return int(self.position is None)

    @property
    def periodic(self) -> bool:
        return True

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        ones = np.full(len(t), float(derivative == 0))
        if self.position is None:
            return ones[:, None], np.zeros(len(t))
        return np.zeros((len(t), 0)), self.position * ones

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        where = float(x[0]) if self.position is None else self.position
        return (where, where) if derivative == 0 else (0.0, 0.0)

    def hold(self, position: float) -> Array:
        return np.full(self.size, position)

    def settings(self) -> dict[str, Any]:
        return asdict(self)


# Larger differences of the accelerations of neighbouring pieces are jumps [rad/s², m/s²].
_MEET = 1e-6


@register_family
@dataclass(frozen=True)
class Fixed:
    """One joint's motion as pieces Σ_k table[i][k] u^k, u from 0 to 1 between breaks[i] and breaks[i + 1].

    Args:
        breaks: Ends of the pieces [s].
        table: Power coefficients of the pieces [rad, m].
        t, x, derivative, position: Arguments of the methods, as in `Family`.
    """

    kind: ClassVar[str] = "fixed"

    breaks: tuple[float, ...]
    table: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "breaks", tuple(float(t) for t in self.breaks))
        object.__setattr__(self, "table", tuple(tuple(float(c) for c in row) for row in self.table))
        if len(self.breaks) != len(self.table) + 1 or not self.table:
            raise TrajectoryError(
                f"A fixed motion has {len(self.table)} pieces and {len(self.breaks)} breaks; give a piece or more, and "
                "one break more than pieces."
            )
        check_duration(self.duration, "Fixed motion")

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.breaks), np.array(self.table)

    @property
    def size(self) -> int:
        return 0

    @property
    def duration(self) -> float:
        return self.breaks[-1]

    @property
    def periodic(self) -> bool:
        return False

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        breaks, table = self._arrays
        return np.zeros((len(t), 0)), evaluate(breaks, table[:, :, None], t, derivative)[:, 0]

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        if derivative == 3 and self._jumps:
            return -np.inf, np.inf
        return extent(*self._arrays, derivative)

    @cached_property
    def _jumps(self) -> bool:
        """Whether the acceleration jumps between pieces, which makes the jerk unbounded."""
        breaks, table = self._arrays
        k = np.arange(table.shape[1])
        lengths = np.diff(breaks)
        ends = (table * (k * (k - 1))).sum(axis=1) / lengths**2
        starts = 2.0 * table[:, 2] / lengths**2 if table.shape[1] > 2 else np.zeros(len(table))
        return bool(np.any(np.abs(ends[:-1] - starts[1:]) > _MEET))

    def hold(self, position: float) -> Array:
        return np.zeros(0)

    def settings(self) -> dict[str, Any]:
        return asdict(self)
