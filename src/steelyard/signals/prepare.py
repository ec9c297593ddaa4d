"""From a log to motions: uniform clock, smooth positions, velocities, accelerations, and torque beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array, placed_like
from steelyard.ground.field import Field
from steelyard.ground.renamed import renamed
from steelyard.signals.filters import Derivative, LowPass, derivative, motion_band
from steelyard.signals.log import Log
from steelyard.signals.repeats import without_repeats
from steelyard.signals.rounding import velocity_noise

# The cut-off that is chosen when none is given: this many times the band of the motion. Friction's jumps at reversals
# live above the motion; too low a cut-off blurs them into the viscous and inertial columns, too high a one lets in the
# noise of positions that are differentiated twice. docs/theory/preparation.md has the figures of eight robots: from
# 20 to 45 all is flat.
CUTOFF_FACTOR = 20.0
LOWEST_CUTOFF = 1.0
# Where torques are fitted, the motion is smoothed at this many times the cut-off of the equations. A filter that acts
# on both sides of y = A θ changes nothing; one that acts on the motion alone takes away, up to three times over, what
# the torque still has. (Other schemes differentiate energies and momenta, and want the motion as smooth as they are.)
MOTION_FACTOR = 2.0
# Mean over median of a clock's steps beyond which the mean is its period.
_UNEVEN = 1.15
# Gaps of at most this part of a log do not change the band of its motion.
_BRIDGED = 0.02
# A joint stands below this part of its own top speed.
STANDING_SHARE = 0.01
# Samples by which the source of the velocity is chosen: a standard deviation of so many is known to one percent.
_TELLING = 10_000


VelocitySource = Literal["auto", "measured", "differentiated"]


def as_velocity(name: str) -> VelocitySource:
    """The source of velocities that is called `name`; any other word is refused."""
    for known in get_args(VelocitySource):
        if name == known:
            return cast(VelocitySource, known)
    raise UnknownNameError("source of the velocity", name, get_args(VelocitySource))


@renamed(cutoff="cutoff_hz")
@dataclass(frozen=True)
class Preparation:
    """How signals are made ready; the same for fitting and, with its own cut-off, for scoring.

    `cutoff_hz` of the zero-phase Butterworth of the given order; None: twenty times the frequency below which
    99.9 % of the positions' power lies. `velocity` "measured" (filtered) or "differentiated" (of the filtered
    position); "auto" takes the measured one where it agrees with the other and is less noisy. `trim` seconds are cut at
    both ends of every piece (None: as long as the filter remembers), every `decimation`-th row is kept (None: as many
    as the cut-off needs). `mask` (rad/s, m/s) drops a joint's rows while it moves more slowly. `delay` (s) is how far
    the torque lags behind the positions, to the nearest sample: a motion is held against what was measured that much
    later. `standing` rows of a joint with dry friction are left out of the fit ("leave_out") or not ("keep"); "auto":
    `identify` leaves them out where its estimator takes rows one by one. The motion is smoothed at `motion_factor`
    times the cut-off; None: 1, and 2 where `identify` fits torques.
    """

    why_null: ClassVar = {
        "cutoff": "By the rule; cutoff_hz is what it gave.",
        "trim": "As long as the filter remembers.",
        "decimation": "As many as the cut-off needs.",
        "motion_factor": "The usual one of what is fitted.",
    }
    cutoff_hz: float | None = None
    order: int = 4
    velocity: VelocitySource = "auto"
    derivative: Derivative = "central"
    trim: float | None = None
    decimation: int | None = None
    mask: float = 0.0
    delay: float = 0.0
    standing: Literal["auto", "leave_out", "keep"] = "auto"
    motion_factor: float | None = None

    def __post_init__(self) -> None:
        ranges = {"cutoff_hz": (1e-9, 1e9), "order": (1, 12), "trim": (0.0, 1e9), "decimation": (1, 1e9),
                  "mask": (0.0, 1e9), "delay": (-1e6, 1e6), "motion_factor": (1e-3, 1e6)}  # fmt: skip
        for name, (low, high) in ranges.items():
            if getattr(self, name) is not None:
                Field(getattr(self, name), name, error=LogError).number(low=low, high=high)

    def for_rows(self, torques: bool, one_by_one: bool) -> Preparation:
        """With what it leaves open as a fit wants it: to `torques`, and to rows that may be left out `one_by_one`."""
        out = self.standing == "auto" and one_by_one
        factor = self.motion_factor or (MOTION_FACTOR if torques else 1.0)
        return replace(self, standing="leave_out" if out else self.standing, motion_factor=factor)


@dataclass(frozen=True, eq=False)
class Motion:
    """A gap-free piece of a log on a uniform clock.

    q, dq and ddq are smooth; `tau` is as measured. `filter` acts on both sides of y = A θ; `keep` are the rows
    that remain after trimming and decimation. `history` are signals that terms follow along the motion,
    `(samples, signals)`, where somebody has filled them in; `history_key` says which (`Terms.history_key`). `standing`
    `(samples, joints)` tells where a joint stands (None: nobody looked), and `fit_standing` whether its rows are fitted
    to even so.
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    filter: LowPass
    keep: slice
    velocity: str
    history: Array | None = None
    history_key: tuple[object, ...] = ()
    standing: NDArray[np.bool_] | None = None
    fit_standing: bool = True

    @property
    def rows(self) -> int:
        return len(range(*self.keep.indices(len(self.t))))

    @property
    def leaves_out(self) -> bool:
        """Whether rows of some joint may be left out of a fit, because it stands."""
        return not self.fit_standing and self.standing is not None and bool(self.standing.any())

    @property
    def long_enough(self) -> bool:
        """Whether a few rows remain to fit to; shorter pieces can still be judged by."""
        start, stop, step = self.keep.indices(len(self.t))
        return stop - start >= 4 * step

    @property
    def row_period(self) -> float:
        return self.filter.period * (self.keep.step or 1)


def segments_of(log: Log) -> Sequence[tuple[int, int]]:
    """The index ranges of `log` that are free of gaps."""
    return log.segments or ((0, len(log)),)


def chosen_cutoff(logs: Sequence[Log], settings: Preparation) -> float:
    """The cut-off (Hz) that `settings` give, or the rule's for these `logs`."""
    pieces = [_uniform(log, start, stop) for log in map(without_repeats, logs) for start, stop in _stretches(log)]
    slowest = max(p.period for p in pieces)
    if settings.cutoff_hz is not None:
        return LowPass(settings.cutoff_hz, slowest).cutoff_hz  # refuses what the sampling rate cannot bear
    bands = [motion_band(pieces[k].q, pieces[k].period) for k in deciding([len(p.t) for p in pieces])]
    if not bands or max(bands) == 0.0:
        raise LogError("Nothing moves in the log; a motion is needed, or a cut-off by hand.")
    return float(cutoffs_of(bands, slowest))


def deciding(lengths: Sequence[int]) -> list[int]:
    """Which of pieces of so many samples, `lengths`, choose the cut-off: a short one cannot tell a slow motion from a
    trend."""
    return [k for k, length in enumerate(lengths) if length >= max(32, max(lengths) // 2)]


def cutoffs_of(bands: Sequence[float] | Array, period: float) -> Array:
    """The cut-off (Hz) by the median of the `bands` (Hz) of some pieces, sampled every `period` (s); of many robots at
    once where bands are `(pieces, robots)`."""
    return np.asarray(np.clip(CUTOFF_FACTOR * np.median(bands, axis=0), LOWEST_CUTOFF, 0.4 / period))


def _stretches(log: Log) -> list[tuple[int, int]]:
    """Segments of `log` joined where a straight line may bridge the gap, as far as the band of the motion goes.

    A short piece makes any band look wide. The gap must be short beside the log, and not wider than the robot goes.
    """
    first, *others = segments_of(log)
    out = [first]
    for start, stop in others:
        begin, end = out[-1]
        gap = log.t[start] - log.t[end - 1]
        inner = slice(begin, end)
        pace = np.abs(np.diff(log.q[inner], axis=0)) / np.diff(log.t[inner])[:, None]
        near = end - begin > 1 and np.all(np.abs(log.q[start] - log.q[end - 1]) <= gap * pace.max(axis=0))
        if near and gap <= _BRIDGED * (log.t[-1] - log.t[0]):
            out[-1] = (begin, stop)
        else:
            out.append((start, stop))
    return out


@renamed(cutoff="cutoff_hz")
def prepare(log: Log, settings: Preparation, cutoff_hz: float, to_fit: bool = True) -> Iterator[Motion]:
    """The motions of a log; pieces too short for the filter are left out.

    Args:
        log: with torques.
        settings: how signals are made ready.
        cutoff_hz: of the low-pass, Hz.
        to_fit: leave out pieces of which too few rows remain to be fitted to; they can still be judged by.
    """
    if log.tau is None:
        raise LogError("The log has no torque; identification needs it (or a current with its constants).")
    log = without_repeats(log)
    for start, stop in segments_of(log):
        piece = _in_step(_uniform(log, start, stop), settings.delay)
        low_pass, keep = _kept(len(piece.t), piece.period, settings, cutoff_hz)
        if keep.stop - keep.start < max(8, 4 * keep.step if to_fit else 0):
            continue
        yield _motion(piece, low_pass, settings, keep)


def _kept(samples: int, period: float, settings: Preparation, cutoff_hz: float) -> tuple[LowPass, slice]:
    """The filter of both sides of y = A θ, and the rows that remain of so many samples."""
    low_pass = LowPass(min(cutoff_hz, 0.45 / period), period, settings.order)
    trim = max(low_pass.memory // 3 if settings.trim is None else round(settings.trim / period), 1)
    # Rows closer than a fifth of the cut-off's period say nothing new: the filter has made them alike.
    step = settings.decimation or max(1, int(0.2 / (low_pass.cutoff_hz * period)))
    return low_pass, slice(trim, samples - trim, step)


def _smoothing(low_pass: LowPass, settings: Preparation) -> LowPass:
    """The filter of the motion beside that of the equations."""
    h = low_pass.period
    return LowPass(min((settings.motion_factor or 1.0) * low_pass.cutoff_hz, 0.45 / h), h, settings.order)


def prepare_together(
    like: Motion, q: Array, tau: Array, settings: Preparation, cutoff_hz: float
) -> tuple[Motion, NDArray[np.bool_]]:
    """One motion of many robots, and where they hardly move: as `prepare` makes it of each robot's log alone.

    Args:
        like: that of one of them, whose velocities were differentiated; its clock is that of all.
        q: measured positions (rad, m), `(samples, joints, robots)`; they may lie on a GPU.
        tau: measured torques, beside them.
        settings: how signals are made ready.
        cutoff_hz: of the low-pass, Hz.
    """
    h = like.filter.period
    low_pass, keep = _kept(len(q), h, settings, cutoff_hz)
    smooth = _smoothing(low_pass, settings)
    x = smooth(q)
    dq = smooth(derivative(x, h, settings.derivative))
    ddq = smooth(derivative(dq, h, settings.derivative))
    slow = hardly_moving(x, dq, velocity_noise(q, smooth, False), low_pass)
    made = replace(like, q=x, dq=dq, ddq=ddq, tau=tau, filter=low_pass, keep=keep, standing=None)
    return made, slow


def _motion(piece: _Piece, low_pass: LowPass, settings: Preparation, keep: slice) -> Motion:
    h, smooth = piece.period, _smoothing(low_pass, settings)
    q, measured = _together(smooth, piece.q, piece.dq)
    slope = derivative(q, h, settings.derivative)
    how = settings.velocity
    if how == "auto":
        how = "measured" if _better(measured, slope, q, piece, smooth) else "differentiated"
    if how == "measured" and measured is None:
        raise LogError("The log has no velocity; use velocity='differentiated'.")
    # Differentiation raises what noise is left, so the filter acts once more after it.
    dq = measured if how == "measured" and measured is not None else smooth(slope)
    ddq = smooth(derivative(dq, h, settings.derivative))
    raw = piece.dq if how == "measured" and piece.dq is not None else piece.q
    still = standing(q, dq, velocity_noise(raw, smooth, how == "measured"), low_pass)
    kept = settings.standing != "leave_out"
    return Motion(piece.t, q, dq, ddq, piece.tau, low_pass, keep, how, standing=still, fit_standing=kept)


def standing(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Where each joint stands: friction is then whatever holds it, a set and not a number.

    That is where its speed cannot be told from zero (three standard deviations of its noise) or is less than a
    hundredth of its top speed, for longer than the filter remembers, and where it gets nowhere in as long a time before
    or after: a third of the way that it would go at that speed. Slow creeping is motion.

    Args:
        q: prepared positions (rad, m), `(samples, joints)`.
        dq: prepared velocities (rad/s, m/s).
        noise: standard deviation of these, per joint.
        low_pass: that they went through.
    """
    memory = min(low_pass.memory, len(q) - 1)
    return longer_than(memory, hardly_moving(q, dq, noise, low_pass))


def hardly_moving(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Where a joint is slow and gets nowhere, be it for ever so short: what `standing` looks at before it asks for how
    long. `q`, `dq`, `noise` and `low_pass` are as there; of many robots at once, `(samples, joints, robots)`, as well.
    """
    limits = np.maximum(3.0 * noise, STANDING_SHARE * np.quantile(np.abs(dq), 0.99, axis=0))
    memory = min(low_pass.memory, len(q) - 1)
    gone = np.abs(q[memory:] - q[:-memory]) > limits * memory * low_pass.period / 3.0
    rows = np.arange(len(q))
    # Of the window after a row and the one before it; at the ends there is only one.
    after, before = (placed_like(k, q) for k in (np.minimum(rows, len(gone) - 1), np.maximum(rows - memory, 0)))
    slow: NDArray[np.bool_] = (np.abs(dq) <= limits) & ~(gone[after] & gone[before])
    return slow


def longer_than(memory: int, slow: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What of `slow` `(samples, joints)` lasts for `memory` samples or more."""
    out = np.zeros(slow.shape, dtype=bool)
    for joint, column in enumerate(slow.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(np.int8)))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            out[a:b, joint] = b - a >= memory
    return out


def _together(low_pass: LowPass, q: Array, dq: Array | None) -> tuple[Array, Array | None]:
    """Both through the filter, in one go."""
    if dq is None:
        return low_pass(q), None
    smooth = low_pass.of(lambda start, stop: np.hstack([q[start:stop], dq[start:stop]]), len(q), slice(None))
    return smooth[:, : q.shape[1]].copy(), smooth[:, q.shape[1] :].copy()


def _better(measured: Array | None, slope: Array, q: Array, piece: _Piece, low_pass: LowPass) -> bool:
    """Whether the measured velocity is the derivative of the position, and less noisy before filtering.

    Some thousand samples tell; a long piece is looked at in steps.
    """
    if measured is None or piece.dq is None:
        return False
    some = slice(None, None, max(1, len(q) // _TELLING))
    differentiated = low_pass(slope, some)
    std = np.std(differentiated, axis=0)
    moving = std > 1e-3 * np.max(std)
    agree = np.std(measured[some] - differentiated, axis=0)[moving] < 0.1 * std[moving]
    # Of the derivative before filtering, what the filter takes away; the order of the two does not matter.
    rows = np.arange(len(q))[some]
    low, high = np.maximum(rows - 1, 0), np.minimum(rows + 1, len(q) - 1)
    rise = (piece.q[high] - q[high]) - (piece.q[low] - q[low])
    noise_of_difference = np.std(rise / ((high - low) * piece.period)[:, None], axis=0)[moving]
    noise_of_measured = np.std(piece.dq[some] - measured[some], axis=0)[moving]
    return bool(np.all(agree) and np.median(noise_of_measured / np.maximum(noise_of_difference, 1e-12)) < 1.0)


@dataclass(frozen=True, eq=False)
class _Piece:
    """A gap-free piece, resampled to its mean period where the clock jitters."""

    t: Array
    q: Array
    dq: Array | None
    tau: Array
    period: float


def _in_step(piece: _Piece, delay: float) -> _Piece:
    """The motion beside the torque of `delay` later. By whole samples, since between them we could only smooth."""
    late = round(delay / piece.period)
    if late == 0:
        return piece
    count = max(len(piece.t) - abs(late), 0)
    motion, torque = (slice(k, k + count) for k in (max(-late, 0), max(late, 0)))
    dq = None if piece.dq is None else piece.dq[motion]
    return _Piece(piece.t[motion], piece.q[motion], dq, piece.tau[torque], piece.period)


def _period(t: Array) -> float:
    """Of the uniform clock for stamps `t` (s): the median step, unless steps of two lengths take turns."""
    steps = np.diff(t)
    median = float(np.median(steps))
    # Where repeated rows were left out, the stamps are those of a slower clock, rounded to the ticks of a faster one.
    ordinary = float(np.mean(np.sort(steps)[: max(1, int(0.99 * len(steps)))]))
    return ordinary if ordinary > _UNEVEN * median else median


def _uniform(log: Log, start: int, stop: int) -> _Piece:
    t = log.t[start:stop]
    if len(t) < 2:
        return _Piece(t, log.q[start:stop], None, np.zeros_like(log.q[start:stop]), 1.0)
    period = _period(t)
    count = int(np.floor((t[-1] - t[0]) / period + 1e-6)) + 1
    clock = t[0] + period * np.arange(count)
    tau = log.tau if log.tau is not None else np.zeros_like(log.q)
    if len(clock) == len(t) and np.max(np.abs(clock - t)) < 1e-3 * period:
        dq = None if log.dq is None else log.dq[start:stop]
        return _Piece(t, log.q[start:stop], dq, tau[start:stop], period)

    def resampled(x: Array) -> Array:
        return np.column_stack([np.interp(clock, t, column) for column in x[start:stop].T])

    dq = None if log.dq is None else resampled(log.dq)
    return _Piece(clock, resampled(log.q), dq, resampled(tau), period)
