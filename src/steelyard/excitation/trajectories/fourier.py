"""`Fourier`: a finite Fourier series, the usual motion for identification: periodic, band-limited, smooth."""

from __future__ import annotations

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
class Fourier:
    """q(t) = q₀ + Σ_l a_l/(ω l) sin ω l t − b_l/(ω l) cos ω l t, l = 1 … harmonics, ω = 2π/period.

    Swevers, Ganseman et al. 1997, eq. 3: a and b are amplitudes of velocity (rad/s), q₀ an offset (rad).

    `period` (s) is the duration unless given; `rest` makes velocity and acceleration zero at the start (and by
    periodicity after every period): Σ a_l = 0, Σ l b_l = 0. `offset` fixes q₀, `start` fixes q(0). Without any
    condition the coefficients are q₀, a₁ …, b₁ …; conditions leave coordinates of their null space.
    """

    kind: ClassVar[str] = "fourier"

    harmonics: int
    duration: float
    period: float | None = None
    rest: bool = True
    offset: float | None = None
    start: float | None = None

    def __post_init__(self) -> None:
        check_duration(self.duration, "Fourier series")
        check_duration(self.fundamental_period, "Fourier series, period")
        if self.harmonics < 1:
            raise TrajectoryError(f"A Fourier series with {self.harmonics} harmonics does not move; it needs one.")
        if self.size < 0 or (self.rest and self.harmonics < 2):
            raise TrajectoryError(
                f"A Fourier series that starts at rest needs 2 harmonics or more, not {self.harmonics}; "
                "or let it start moving (rest=False)."
            )

    @staticmethod
    def szabo(harmonics: int = 5, fundamental: float = 0.1, duration: float = 10.0) -> Fourier:
        """The series of Szabó & Szádeczky-Kardoss 2021, eq. 22, with the offset it lacks; `fundamental` in Hz."""
        return Fourier(harmonics, duration, 1.0 / fundamental)

    @property
    def fundamental_period(self) -> float:
        return self.duration if self.period is None else self.period

    @property
    def size(self) -> int:
        fixed = 2 * self.rest + (self.offset is not None) + (self.start is not None)
        return 1 + 2 * self.harmonics - fixed

    @property
    def periodic(self) -> bool:
        periods = self.duration / self.fundamental_period
        return abs(periods - round(periods)) < 1e-9 * periods and round(periods) >= 1

    @cached_property
    def omega(self) -> Array:
        """The angular frequency of every harmonic, in rad/s."""
        omega: Array = 2.0 * np.pi / self.fundamental_period * np.arange(1.0, self.harmonics + 1)
        return omega

    @cached_property
    def _free(self) -> tuple[Array, Array]:
        """(Z, y0): q₀, a, b = Z x + y0."""
        M = self.harmonics
        number = np.arange(1, M + 1)
        none = np.zeros(M)
        rows, right = [np.zeros((0, 1 + 2 * M))], []
        if self.rest:
            rows += [np.hstack([0.0, np.ones(M), none])[None], np.hstack([0.0, none, number])[None]]
            right += [0.0, 0.0]
        if self.offset is not None:
            rows, right = [*rows, np.eye(1, 1 + 2 * M)], [*right, self.offset]
        if self.start is not None:
            rows, right = [*rows, np.hstack([1.0, none, -1.0 / self.omega])[None]], [*right, self.start]
        return eliminate(np.vstack(rows), np.array(right), "Fourier series")

    def series(self, x: Array) -> tuple[float, Array, Array]:
        """q₀, a and b of the formula above."""
        Z, y0 = self._free
        y = Z @ x + y0
        M = self.harmonics
        return float(y[0]), y[1 : 1 + M], y[1 + M :]

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        Z, y0 = self._free
        W = waves(t, self.omega, derivative) / np.concatenate([self.omega, -self.omega])
        full = np.column_stack([np.full(len(t), float(derivative == 0)), W])
        return full @ Z, full @ y0

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        q0, a, b = self.series(x)
        amplitudes = np.concatenate([a, -b]) / np.tile(self.omega, 2)
        turned, constant = differentiate(amplitudes, self.omega, derivative), q0 if derivative == 0 else 0.0
        # Beyond one period nothing new comes.
        return sinusoid_extent(constant, turned, self.omega, min(self.duration, self.fundamental_period))

    def hold(self, position: float) -> Array:
        Z, y0 = self._free
        wanted = np.zeros(1 + 2 * self.harmonics)
        wanted[0] = position
        x: Array = Z.T @ (wanted - y0)
        return x

    def settings(self) -> dict[str, Any]:
        return asdict(self)
