"""`Cosines`: a sum of waves whose frequencies need no common period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from steelyard.excitation.trajectories.conditions import eliminate
from steelyard.excitation.trajectories.family import TrajectoryError, check_duration
from steelyard.excitation.trajectories.registry import known
from steelyard.excitation.trajectories.sinusoids import differentiate, sinusoid_extent, waves
from steelyard.robot.spatial import Array


@known
@dataclass(frozen=True)
class Cosines:
    """q(t) = q₀ + Σ s_k sin ω_k t + c_k cos ω_k t over given frequencies ω (rad/s).

    The start trajectories of Kozłowski & Dutkiewicz 1996 are of this kind. Coefficients: q₀, s₁ …, c₁ … (rad or m),
    or with `rest` (velocity and acceleration zero at the start) coordinates of what that leaves. It ends moving.
    """

    kind: ClassVar[str] = "cosines"

    duration: float
    frequencies: tuple[float, ...]
    rest: bool = False

    def __post_init__(self) -> None:
        check_duration(self.duration, "Cosines")
        object.__setattr__(self, "frequencies", tuple(float(w) for w in self.frequencies))
        if not self.frequencies or min(self.frequencies) <= 0.0 or len(set(self.frequencies)) < len(self.frequencies):
            raise TrajectoryError(f"Cosines need different, positive frequencies (rad/s), not {self.frequencies}.")
        if self.rest and len(self.frequencies) < 2:
            raise TrajectoryError("Cosines that start at rest need 2 frequencies or more.")

    @staticmethod
    def through(duration: float, offset: float, terms: Sequence[tuple[float, float, float]]) -> tuple[Cosines, Array]:
        """The family and the coefficients of offset + Σ amplitude·cos(ω t + phase), from (amplitude, ω, phase)."""
        frequencies = tuple(dict.fromkeys(omega for _, omega, _ in terms))
        s, c = np.zeros((2, len(frequencies)))
        for amplitude, omega, phase in terms:
            s[frequencies.index(omega)] -= amplitude * np.sin(phase)
            c[frequencies.index(omega)] += amplitude * np.cos(phase)
        return Cosines(duration, frequencies), np.concatenate([[offset], s, c])

    @property
    def size(self) -> int:
        return 1 + 2 * len(self.frequencies) - 2 * self.rest

    @property
    def periodic(self) -> bool:
        turns = self.omega * self.duration / (2.0 * np.pi)
        return bool(np.all(np.abs(turns - np.round(turns)) < 1e-9 * turns))

    @cached_property
    def omega(self) -> Array:
        return np.array(self.frequencies)

    @cached_property
    def _free(self) -> tuple[Array, Array]:
        k = len(self.frequencies)
        conditions = np.zeros((2 * self.rest, 1 + 2 * k))
        if self.rest:
            conditions[0, 1 : 1 + k] = self.omega
            conditions[1, 1 + k :] = self.omega**2
        return eliminate(conditions, np.zeros(len(conditions)), "Cosines")

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        Z, y0 = self._free
        full = np.column_stack([np.full(len(t), float(derivative == 0)), waves(t, self.omega, derivative)])
        return full @ Z, full @ y0

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        Z, y0 = self._free
        y = Z @ x + y0
        turned = differentiate(y[1:], self.omega, derivative)
        return sinusoid_extent(float(y[0]) if derivative == 0 else 0.0, turned, self.omega, self.duration)

    def hold(self, position: float) -> Array:
        Z, _ = self._free
        x: Array = position * Z[0]
        return x

    def settings(self) -> dict[str, Any]:
        return asdict(self)
