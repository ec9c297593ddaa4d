"""Joint terms that remember: friction that knows where it reversed and what it carries, and torque that comes late.

An elasto-plastic *stop* is a spring that gives way: s follows the position over a width and stands at ±1 beyond,
s ← clip(s + Δu/width, −1, 1). Several beside each other are the Maxwell-slip model of presliding friction (Iwan 1966;
Lampaert et al. 2003). Gears rub the more the more they carry: the load is the torque of links and rotors, |τ_rigid|.
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
from steelyard.parameters.term import TERMS, Along, Column, Excited, Simple, Term

# The width of a stop by name (rad, m): between the 0.3 mrad of bearings and the 0.1 rad of belts and cables.
STOP_WIDTH = {"revolute": 0.01, "prismatic": 0.002}
# Widths that a search tries, as multiples of it, from stiff bearings to belts; a stop must give way several times
# within a joint's travel, or it is a spring whose level nobody has seen.
_WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_TIMES_WITHIN_TRAVEL = 5.0


@dataclass(frozen=True)
class Stop(Along):
    """The state s of an elasto-plastic stop, −1 … 1; its spring gives way after `width` (rad, m)."""

    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width > 0.0):
            raise SteelyardError(f"The width of a stop is positive (rad, m), not {self.width:g}.")

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        return self.follow(u, self.first(u))

    def first(self, u: Array) -> float:
        """How the stop stood before a motion along `u`: as its first travel beyond a width leaves it, or 0."""
        far = np.flatnonzero(np.abs(u - u[0]) > self.width) if len(u) else np.zeros(0, dtype=int)
        return float(np.sign(u[far[0]] - u[0])) if len(far) else 0.0

    def follow(self, u: Array, start: float) -> Array:
        """s along the positions `u` (rad, m), from `start` at the first of them.

        Between turning points s moves one way, so that one clip is exact there; only they are gone through one by one.
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
class RigidLoad(Along):
    """What the coordinate carries: the size of the torque of links and rotors, N m or N, at most `limit` (0: any)."""

    of_torque: ClassVar[bool] = True
    limit: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.limit) and self.limit >= 0.0):
            raise SteelyardError(f"The limit of a load is positive (N m, N), or 0 for none, not {self.limit:g}.")

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        return np.asarray(self.steady(0.0, np.abs(rigid)))

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return minimum(load, self.limit) if self.limit > 0.0 else load

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return rng.uniform(0.0, 30.0, count)


@dataclass(frozen=True)
class Rate(Along):
    """The derivative of the given `order` (1 or 2) of the torque of links and rotors, by central differences.

    Derivatives grow without end with frequency: above `band_hz`, where nobody has seen the lag, the torque is taken
    off first (zero-phase Butterworth of order 4). 0 leaves it as it is.
    """

    of_torque: ClassVar[bool] = True
    order: int = 1
    band_hz: float = 0.0

    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        if period is None or len(rigid) < 3:
            return np.zeros(len(rigid))
        if 0.0 < self.band_hz < 0.45 / period:
            rigid = _band_limited(rigid, self.band_hz, period)
        if self.order == 1:
            return np.asarray(np.gradient(rigid, period))
        inner = np.diff(rigid, 2) / period**2
        return np.concatenate([inner[:1], inner, inner[-1:]])

    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        return 0.0

    def random(self, rng: np.random.Generator, count: int) -> Array:
        return 30.0 * rng.normal(size=count)


# rad; a sine that is shifted by so much is changed by this part of it, and its slope says that to 5 %.
_SMALL_SHIFT = 0.3


def _band_limited(x: Array, cutoff_hz: float, period: float) -> Array:
    """`x`, sampled every `period` (s), up to `cutoff_hz`, as a Butterworth of order 4 run both ways leaves it."""
    # Ends are mirrored about their values, for as long as such a filter remembers.
    reach = min(int(3.0 / (cutoff_hz * period)), len(x) - 1)
    longer = np.concatenate([2.0 * x[0] - x[reach:0:-1], x, 2.0 * x[-1] - x[-2 : -reach - 2 : -1]])
    # The jump from the last sample to the first, which a transform takes for neighbours, is taken off as a line.
    line = np.linspace(longer[0], longer[-1], len(longer))
    # What is left ends at zero; zeros are put after it up to a length that is quick to transform.
    length = max(quick_length(int(1.05 * len(longer))), len(longer))
    gain = 1.0 / (1.0 + (np.fft.rfftfreq(length, period) / cutoff_hz) ** 8)
    smooth = np.fft.irfft(gain * np.fft.rfft(longer - line, length), length)[: len(longer)] + line
    return np.asarray(smooth[reach : reach + len(x)])


@dataclass(frozen=True, kw_only=True)
class RememberingTerm(Term):
    """A term whose force depends on signals along the motion; `force` is that of a steady motion under unit load.

    A force that depends on `RigidLoad` is proportional to that signal, so that a simulation can solve for it.
    """

    @abstractmethod
    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]: ...

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        signals = [1.0 if isinstance(along, RigidLoad) else along.steady(du, 1.0) for along in self.history]
        return self.force_along(u, du, signals)


@dataclass(frozen=True, kw_only=True)
class LoadedTerm(RememberingTerm):
    """Friction that grows with what the joint carries up to `load_limit` (N m, N; 0: without end), and then stays."""

    load_limit: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.history


@dataclass(frozen=True, kw_only=True)
class _StopTerm(RememberingTerm):
    """What has a stop, of a width that identification chooses by the kind of the joint."""

    rounds: ClassVar[str] = "width"
    width: float = STOP_WIDTH["revolute"]

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.history

    @property
    def history(self) -> tuple[Along, ...]:
        return (Stop(self.width),)

    def rounded(self, joint_kind: str, times: float = 1.0) -> Term:
        return replace(self, width=STOP_WIDTH[joint_kind])

    @classmethod
    def candidates(cls, excited: Excited) -> Sequence[Term]:
        widths = [times * STOP_WIDTH[excited.kind] for times in _WIDTHS]
        return [cls(width=w) for w in widths if _TIMES_WITHIN_TRAVEL * w <= excited.travel]


@TERMS.register("stop")
@dataclass(frozen=True, kw_only=True)
class StopElement(_StopTerm):
    """Dry friction that remembers where it reversed: Fm·s, s ← clip(s + Δu/width, −1, 1); `width` in rad or m.

    A spring of stiffness Fm/width in presliding, Coulomb friction Fm in sliding.
    """

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fm", "N m", "N", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0],)

    def simple(self, values: Sequence[float]) -> Simple:
        return Simple(friction=values[0], less="remembers where it reversed; plain dry friction is written")


@TERMS.register("stop-loaded")
@dataclass(frozen=True, kw_only=True)
class LoadedStop(_StopTerm, LoadedTerm):
    """Friction that remembers and grows with what the joint carries: mum·abs(τ_rigid)·s, s as in `stop`.

    abs(τ_rigid) counts up to `load_limit` (N m, N; 0: without end).
    """

    @property
    def history(self) -> tuple[Along, ...]:
        return (Stop(self.width), RigidLoad(self.load_limit))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("mum", "1", "1", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        return (history[0] * history[1],)


@TERMS.register("coulomb-loaded")
@dataclass(frozen=True, kw_only=True)
class LoadedCoulomb(LoadedTerm):
    """Dry friction that grows with what the joint carries: muc·abs(τ_rigid)·sign(u̇), rounded by `smooth`.

    abs(τ_rigid) counts up to `load_limit` (N m, N; 0: without end).
    """

    dry: ClassVar[bool] = True
    rounds: ClassVar[str] = "smooth"
    smooth: float = 0.0

    @property
    def history(self) -> tuple[Along, ...]:
        return (RigidLoad(self.load_limit),)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("muc", "1", "1", lower=0.0),)

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        direction = tanh(du * (1.0 / self.smooth)) if self.smooth > 0.0 else sign(du)
        return (history[0] * direction,)

    def rounded(self, joint_kind: str, times: float = 1.0) -> Term:
        return replace(self, smooth=times * SMOOTHING_SPEED[joint_kind])

    @classmethod
    def candidates(cls, excited: Excited) -> Sequence[Term]:
        return [cls(smooth=SMOOTHING_SPEED[excited.kind])]


@TERMS.register("lag")
@dataclass(frozen=True, kw_only=True)
class Lag(RememberingTerm):
    """Torque that is measured late: −Td·dτ_rigid/dt, with `order` 2 also Tdd·d²τ_rigid/dt²; no part of the robot.

    Both up to `band_hz`, the frequency up to which it was seen (0: without end).
    """

    bias: ClassVar[bool] = True
    order: float = 1.0
    band_hz: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in (1.0, 2.0):
            raise SteelyardError(f"The order of a lag is 1 or 2, not {self.order:g}.")

    @property
    def history(self) -> tuple[Along, ...]:
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
    def candidates(cls, excited: Excited) -> Sequence[Term]:
        return [cls(order=order, band_hz=excited.cutoff_hz) for order in (1.0,)]

    def is_shift(self, late: float) -> bool:
        """Tell whether a lag found up to `band_hz` is a shift in time.

        Args:
            late: The lag [s]. Beyond a radian of phase Td·dτ/dt is larger than the torque itself, and something else.
        """
        return abs(late) * 2.0 * np.pi * self.band_hz <= 1.0

    def as_far_as_a_shift(self, late: float) -> Lag:
        """The same up to the frequency at which a torque that is `late` (s) is shifted by `_SMALL_SHIFT`, if higher.

        Up to there Td·dτ/dt is a shift in time, which does not end with the band that it was seen in, and it is never
        more than that part of the torque: whatever noise a faster motion brings, it cannot run away.
        """
        return replace(self, band_hz=max(self.band_hz, _SMALL_SHIFT / (2.0 * np.pi * max(abs(late), 1e-9))))

    def simple(self, values: Sequence[float]) -> Simple:
        return Simple(less="belongs to the measurement, so it is left out")
