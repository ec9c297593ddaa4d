"""Joint terms that depend on signals along the motion: friction with memory, friction under load, and torque delay.

An elasto-plastic *stop* is a spring with a limited force: s follows the position over a width and saturates at ±1,
s ← clip(s + Δu/width, −1, 1). Several stops in parallel are the Maxwell-slip model of presliding friction (Iwan 1966;
Lampaert et al. 2003). Gear friction grows with load: the load is the torque of links and rotors, |τ_rigid|.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, quick_length
from steelyard.ground.scalars import Scalar, minimum, sign, tanh
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.term import TERMS, Column, JointExcitation, MotionSignal, SimpleTerm, Term

# Default width of a stop [rad, m]: between the 0.3 mrad of bearings and the 0.1 rad of belts and cables.
STOP_WIDTH = {"revolute": 0.01, "prismatic": 0.002}
# Widths that a search tries, as multiples of the default, from stiff bearings to belts. A stop must slide several times
# within a joint's travel, or its level is not identifiable.
_WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_TIMES_WITHIN_TRAVEL = 5.0


@dataclass(frozen=True)
class Stop(MotionSignal):
    """The state s of an elasto-plastic stop, −1 … 1; its spring saturates after `width` [rad, m]."""

    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width > 0.0):
            raise SteelyardError(f"The width of a stop must be positive (rad, m), not {self.width:g}.")

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        return self.follow(u, self.first(u))

    def first(self, u: Array) -> float:
        """Return the state before a motion along `u` [rad, m]: set by its first travel beyond a width, else 0."""
        far = np.flatnonzero(np.abs(u - u[0]) > self.width) if len(u) else np.zeros(0, dtype=int)
        return float(np.sign(u[far[0]] - u[0])) if len(far) else 0.0

    def follow(self, u: Array, start: float) -> Array:
        """Compute s along a motion.

        Between turning points s is monotone, so one clip is exact there; only turning points need a loop.

        Args:
            u: Positions [rad, m].
            start: State at the first position.
        """
        if len(u) < 2:
            return np.full(len(u), start)
        x = u / self.width
        steps = np.diff(x)
        moves = np.flatnonzero(steps)
        turns = moves[1:][np.signbit(steps[moves[1:]]) != np.signbit(steps[moves[:-1]])]
        firsts = np.concatenate([[0], turns])
        s, levels = start, []
        ends = x[firsts].tolist()
        for here, after in zip(ends, [*ends[1:], ends[-1]], strict=True):
            levels.append(s)
            s = min(max(s + (after - here), -1.0), 1.0)
        counts = np.diff([*firsts, len(u)])
        return np.clip(np.repeat(np.array(levels) - x[firsts], counts) + x, -1.0, 1.0)

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return sign(du)

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(-1.0, 1.0, count)


@dataclass(frozen=True)
class RigidLoad(MotionSignal):
    """Absolute torque of links and rotors on the coordinate [N m, N], at most `limit` (0: no limit)."""

    of_torque: ClassVar[bool] = True
    limit: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.limit) and self.limit >= 0.0):
            raise SteelyardError(f"The limit of a load must be positive (N m, N), or 0 for none, not {self.limit:g}.")

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        return np.asarray(self.steady(0.0, np.abs(rigid)))

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return minimum(load, self.limit) if self.limit > 0.0 else load

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(0.0, 30.0, count)


@dataclass(frozen=True)
class Rate(MotionSignal):
    """Derivative of an `order` (1 or 2) of the torque of links and rotors, by central differences.

    Derivatives amplify high frequencies, so the torque is low-pass filtered at `band_hz`, the highest frequency in the
    identification data (zero-phase Butterworth of order 4). 0 means no filter.
    """

    of_torque: ClassVar[bool] = True
    order: int = 1
    band_hz: float = 0.0

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        if period is None or len(rigid) < 3:
            return np.zeros(len(rigid))
        if 0.0 < self.band_hz < 0.45 / period:
            rigid = _low_pass(rigid, self.band_hz, period)
        if self.order == 1:
            return np.asarray(np.gradient(rigid, period))
        inner = np.diff(rigid, 2) / period**2
        return np.concatenate([inner[:1], inner, inner[-1:]])

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return 0.0

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return 30.0 * rng.normal(size=count)


# Phase [rad] of a small shift: the first-order approximation is good to 5 %.
_SMALL_SHIFT = 0.3


def _low_pass(x: Array, cutoff_hz: float, period: float) -> Array:
    """Filter `x`, sampled every `period` [s], by a zero-phase Butterworth of order 4."""
    # Mirror the ends about their values, over the length of the impulse response.
    reach = min(int(3.0 / (cutoff_hz * period)), len(x) - 1)
    longer = np.concatenate([2.0 * x[0] - x[reach:0:-1], x, 2.0 * x[-1] - x[-2 : -reach - 2 : -1]])
    # Subtract a line, since the periodic transform would see a jump from the last sample to the first.
    line = np.linspace(longer[0], longer[-1], len(longer))
    # The rest ends at zero; pad it with zeros up to a length with a fast transform.
    length = max(quick_length(int(1.05 * len(longer))), len(longer))
    gain = 1.0 / (1.0 + (np.fft.rfftfreq(length, period) / cutoff_hz) ** 8)
    smooth = np.fft.irfft(gain * np.fft.rfft(longer - line, length), length)[: len(longer)] + line
    return np.asarray(smooth[reach : reach + len(x)])


@dataclass(frozen=True, kw_only=True)
class HistoryTerm(Term):
    """A term whose force depends on signals along the motion; `force` is that of a steady motion under unit load.

    A force that depends on `RigidLoad` is proportional to it, so that a simulation can solve for it.
    """

    @abstractmethod
    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]: ...

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        signals = [1.0 if isinstance(along, RigidLoad) else along.steady(du, 1.0) for along in self.history]
        return self.force_along(u, du, signals)


@dataclass(frozen=True, kw_only=True)
class LoadedTerm(HistoryTerm):
    """Friction that grows with the transmitted torque up to `load_limit` [N m, N] (0: no limit)."""

    load_limit: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.history


@dataclass(frozen=True, kw_only=True)
class _StopTerm(HistoryTerm):
    """A term with a stop, whose default width depends on the kind of the joint."""

    rounds: ClassVar[str] = "width"
    width: float = STOP_WIDTH["revolute"]

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.history

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return (Stop(self.width),)

    def with_rounding(self, joint_kind: str, times: float = 1.0) -> Term:
        return replace(self, width=STOP_WIDTH[joint_kind])

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        widths = [times * STOP_WIDTH[excitation.kind] for times in _WIDTHS]
        return [cls(width=w) for w in widths if _TIMES_WITHIN_TRAVEL * w <= excitation.travel]


@TERMS.register("stop")
@dataclass(frozen=True, kw_only=True)
class StopElement(_StopTerm):
    """Dry friction with memory of its reversals: Fm·s, s ← clip(s + Δu/width, −1, 1); `width` in rad or m.

    A spring of stiffness Fm/width in presliding, Coulomb friction Fm in sliding.
    """

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fm", "N m", "N", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0],)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(friction=values[0], omission="has memory; plain dry friction is written")


@TERMS.register("stop-loaded")
@dataclass(frozen=True, kw_only=True)
class LoadedStop(_StopTerm, LoadedTerm):
    """Friction with memory that grows with the transmitted torque: mum·abs(τ_rigid)·s, s as in `stop`.

    abs(τ_rigid) counts up to `load_limit` (N m, N; 0: no limit).
    """

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return (Stop(self.width), RigidLoad(self.load_limit))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("mum", "1", "1", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0] * history[1],)


@TERMS.register("coulomb-loaded")
@dataclass(frozen=True, kw_only=True)
class LoadedCoulomb(LoadedTerm):
    """Dry friction that grows with the transmitted torque: muc·abs(τ_rigid)·sign(u̇), smoothed by `smooth`.

    abs(τ_rigid) counts up to `load_limit` (N m, N; 0: no limit).
    """

    dry: ClassVar[bool] = True
    rounds: ClassVar[str] = "smooth"
    smooth: float = 0.0

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return (RigidLoad(self.load_limit),)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("muc", "1", "1", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        direction = tanh(du * (1.0 / self.smooth)) if self.smooth > 0.0 else sign(du)
        return (history[0] * direction,)

    def with_rounding(self, joint_kind: str, times: float = 1.0) -> Term:
        return replace(self, smooth=times * SMOOTHING_SPEED[joint_kind])

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        return [cls(smooth=SMOOTHING_SPEED[excitation.kind])]


@TERMS.register("lag")
@dataclass(frozen=True, kw_only=True)
class Lag(HistoryTerm):
    """Delay of the torque measurement: −Td·dτ_rigid/dt, with `order` 2 also Tdd·d²τ_rigid/dt²; no part of the robot.

    Both apply up to `band_hz`, the highest frequency in the identification data (0: no limit).
    """

    bias: ClassVar[bool] = True
    order: float = 1.0
    band_hz: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in (1.0, 2.0):
            raise SteelyardError(f"The order of a lag must be 1 or 2, not {self.order:g}.")

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        return tuple(Rate(k + 1, self.band_hz) for k in range(int(self.order)))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Td", "s", "s"), Column("Tdd", "s²", "s²"))[: int(self.order)]

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return [-1.0 * rate if k == 0 else rate for k, rate in enumerate(history)]

    @property
    def dissipative(self) -> bool:
        return False

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        return [cls(order=order, band_hz=excitation.cutoff_hz) for order in (1.0,)]

    def is_shift(self, late: float) -> bool:
        """Return whether a lag identified up to `band_hz` is a shift in time.

        Args:
            late: The lag [s]. Beyond a radian of phase Td·dτ/dt exceeds the torque itself and is no shift.
        """
        return abs(late) * 2.0 * np.pi * self.band_hz <= 1.0

    def widened_to_shift(self, late: float) -> Lag:
        """Return the term with a wider band: up to the frequency where a delay `late` [s] is a phase of `_SMALL_SHIFT`.

        Up to there Td·dτ/dt is a shift in time, which is valid beyond the identified band. It is never more than that
        fraction of the torque, so it stays bounded with the noise of faster motions. A wider band is unchanged.
        """
        return replace(self, band_hz=max(self.band_hz, _SMALL_SHIFT / (2.0 * np.pi * max(abs(late), 1e-9))))

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(omission="belongs to the measurement, so it is left out")
