"""Sums of sinusoids, of free frequencies (`Cosines`) or harmonic (`Fourier`), with bounds at all times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from steelyard.excitation.trajectories.family import TrajectoryError, check_duration, register_family
from steelyard.ground.arrays import Array


def eliminate(A: Array, b: Array, what: str) -> tuple[Array, Array]:
    """Return (Z, y0) such that y = Z x + y0 are all solutions of A y = b; Z is orthonormal, y0 the shortest solution.

    Householder QR of Aᵀ is used instead of an SVD, because its signs are the same on every machine.

    Args:
        A: Matrix of the conditions.
        b: Right side.
        what: Name of the family, for errors.
    """
    # Rows of unit length give conditions in rad, rad/s and rad/s² the same weight in the rank test.
    lengths = np.linalg.norm(A, axis=1)
    rows, right = A / lengths[:, None], b / lengths
    Q, R = np.linalg.qr(rows.T, mode="complete")
    count = len(rows)
    if count > rows.shape[1] or np.min(np.abs(np.diag(R)[:count]), initial=1.0) < 1e-9:
        raise TrajectoryError(f"{what}: too few coefficients for its conditions; give more.")
    y0: Array = Q[:, :count] @ np.linalg.solve(R[:count].T, right) if count else np.zeros(rows.shape[1])
    return Q[:, count:], y0


# Grid steps per radian of the fastest wave; with the remainder's bound the extent is too wide by less than 0.1 %.
_STEPS_PER_RADIAN = 16.0
_MOST_STEPS = 20_000_000  # times waves: 300 MB


def _waves(t: Array, omega: Array, derivative: int) -> Array:
    """Return derivatives of sin ω₁t … sin ω_k t, cos ω₁t … cos ω_k t, shape (samples, 2·waves)."""
    # Exchange sine and cosine instead of adding π/2, so that zeros at t = 0 stay exact.
    turned = np.outer(t, omega)
    s, c = np.sin(turned), np.cos(turned)
    sine, cosine = ((s, c), (c, -s), (-s, -c), (-c, s))[derivative % 4]
    scale = omega**derivative
    return np.hstack([sine * scale, cosine * scale])


def _differentiate(amplitudes: Array, omega: Array, derivative: int) -> Array:
    """Return the sin and cos amplitudes of a derivative of Σ s sin ωt + c cos ωt."""
    sine, cosine = np.split(amplitudes, 2)
    for _ in range(derivative):
        sine, cosine = -omega * cosine, omega * sine
    return np.concatenate([sine, cosine])


def _sinusoid_extent(constant: float, amplitudes: Array, omega: Array, duration: float) -> tuple[float, float]:
    """Return bounds of constant + Σ over [0, duration]; `amplitudes` are those of sin…, cos….

    Between points of a grid of step h a function exceeds its neighbours by at most h²/8·max|f″| (the error of linear
    interpolation). max|f″| is bounded in the same way from the grid and f⁗, and f⁗ by Σ ω⁴·√(a² + b²) at all times.
    """
    values_of, seconds_of, share = _grid(tuple(omega.tolist()), duration)
    k = len(omega)
    fourth = float(np.hypot(amplitudes[:k], amplitudes[k:]) @ omega**4)
    second = float(np.abs(seconds_of @ amplitudes).max())
    values = constant + values_of @ amplitudes
    rounding = 1e-14 * (abs(constant) + float(np.abs(amplitudes).sum()))
    remainder = share * (second + share * fourth) + rounding
    return float(values.min()) - remainder, float(values.max()) + remainder


@lru_cache(maxsize=32)
def _grid(omega: tuple[float, ...], duration: float) -> tuple[Array, Array, float]:
    """Return the waves and their second derivatives on a grid, and h²/8; cached for optimisers."""
    steps = max(2, int(np.ceil(duration * max(omega) * _STEPS_PER_RADIAN)))
    if steps * len(omega) > _MOST_STEPS:
        raise TrajectoryError(
            f"Waves of up to {max(omega):g} rad/s over {duration:g} s need too many samples; reduce one of them."
        )
    t = np.linspace(0.0, duration, steps + 1)
    return _waves(t, np.array(omega), 0), _waves(t, np.array(omega), 2), (duration / steps) ** 2 / 8.0


@register_family
@dataclass(frozen=True)
class Cosines:
    """q(t) = q₀ + Σ s_k sin ω_k t + c_k cos ω_k t.

    The start trajectories of Kozłowski & Dutkiewicz 1996 are of this kind. The motion does not end at rest.

    Args:
        duration: Duration [s].
        frequencies: ω [rad/s].
        rest: Whether velocity and acceleration are zero at the start. The coefficients are q₀, s₁ …, c₁ … [rad, m] or,
            with `rest`, coordinates of the null space of these conditions.
        t, x, derivative, position: Arguments of the methods, as in `Family`.
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
        """Return the family and coefficients of offset + Σ amplitude·cos(ω t + phase).

        Args:
            duration: Duration [s].
            offset: Offset [rad, m].
            terms: (amplitude [rad, m], ω [rad/s], phase [rad]).
        """
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
        full = np.column_stack([np.full(len(t), float(derivative == 0)), _waves(t, self.omega, derivative)])
        return full @ Z, full @ y0

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        Z, y0 = self._free
        y = Z @ x + y0
        turned = _differentiate(y[1:], self.omega, derivative)
        return _sinusoid_extent(float(y[0]) if derivative == 0 else 0.0, turned, self.omega, self.duration)

    def hold(self, position: float) -> Array:
        Z, _ = self._free
        x: Array = position * Z[0]
        return x

    def settings(self) -> dict[str, Any]:
        return asdict(self)


@register_family
@dataclass(frozen=True)
class Fourier:
    """q(t) = q₀ + Σ_l a_l/(ω l) sin ω l t − b_l/(ω l) cos ω l t, l = 1 … harmonics, ω = 2π/period.

    Swevers, Ganseman et al. 1997, eq. 3: a and b are amplitudes of velocity [rad/s], q₀ an offset [rad]. Without
    conditions the coefficients are q₀, a₁ …, b₁ …; with conditions they are coordinates of their null space.

    Args:
        harmonics: Number of harmonics.
        duration: Duration [s].
        period: Fundamental period [s]; None: the duration.
        rest: Whether velocity and acceleration are zero at the start (and after every period): Σ a_l = 0, Σ l b_l = 0.
        offset: q₀ [rad, m]; None: free.
        start: q(0) [rad, m]; None: free.
        t, x, derivative, position: Arguments of the methods, as in `Family`.
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
            raise TrajectoryError(f"A Fourier series with {self.harmonics} harmonics does not move; give one or more.")
        if self.size < 0 or (self.rest and self.harmonics < 2):
            raise TrajectoryError(
                f"A Fourier series that starts at rest needs 2 harmonics or more (--harmonics), not "
                f"{self.harmonics} (in Python: or let it start moving, rest=False)."
            )

    @staticmethod
    def szabo(harmonics: int = 5, fundamental: float = 0.1, duration: float = 10.0) -> Fourier:
        """Return the series of Szabó & Szádeczky-Kardoss 2021, eq. 22, with an offset, which the paper omits.

        Args:
            harmonics: Number of harmonics.
            fundamental: Frequency of the first harmonic [Hz].
            duration: Duration [s].
        """
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
        """Angular frequency of every harmonic [rad/s]."""
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
        """Return q₀, a and b of the formula above for coefficients `x`."""
        Z, y0 = self._free
        y = Z @ x + y0
        M = self.harmonics
        return float(y[0]), y[1 : 1 + M], y[1 + M :]

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        Z, y0 = self._free
        W = _waves(t, self.omega, derivative) / np.concatenate([self.omega, -self.omega])
        full = np.column_stack([np.full(len(t), float(derivative == 0)), W])
        return full @ Z, full @ y0

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        q0, a, b = self.series(x)
        amplitudes = np.concatenate([a, -b]) / np.tile(self.omega, 2)
        turned, constant = _differentiate(amplitudes, self.omega, derivative), q0 if derivative == 0 else 0.0
        # The motion repeats after one period.
        return _sinusoid_extent(constant, turned, self.omega, min(self.duration, self.fundamental_period))

    def hold(self, position: float) -> Array:
        Z, y0 = self._free
        y = np.zeros(1 + 2 * self.harmonics)
        y[0] = position
        x: Array = Z.T @ (y - y0)
        return x

    def settings(self) -> dict[str, Any]:
        return asdict(self)
