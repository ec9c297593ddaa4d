"""From a log to motions: uniform clock, smooth positions, velocities, accelerations, and torque beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.renamed import renamed
from steelyard.signals.between import TorqueBetween, as_torque_between, lag_s
from steelyard.signals.filters import Derivative, LowPass, derivative, earlier, motion_band
from steelyard.signals.log import Log
from steelyard.signals.repeats import without_repeats
from steelyard.signals.rounding import velocity_noise
from steelyard.signals.standing import hardly_moving, standing
from steelyard.signals.velocity import VelocityPlan, plan_velocity

# The highest cut-off that is offered when none is given: this many times the band of the motion. Friction's jumps at
# reversals live above the motion; too low a cut-off blurs them into the viscous and inertial columns. Up to here no
# geared arm gains any more (docs/theory/preparation.md); whether the noise of the columns allows as much is decided by
# left-out blocks (`regression/band.py`).
CUTOFF_FACTOR = 20.0
LOWEST_CUTOFF = 1.0
# Where torques are fitted, the motion is smoothed at this many times the cut-off of the equations. A filter that acts
# on both sides of y = A θ changes nothing; one that acts on the motion alone takes away, up to three times over, what
# the torque still has. (Other schemes differentiate energies and momenta, and want the motion as smooth as they are.)
MOTION_FACTOR = 2.0
# Mean over median of a clock's steps beyond which the mean is its period.
_UNEVEN = 1.15
# Of a sample; a shift by less is rounding.
_NO_SHIFT = 1e-3
# Gaps of at most this part of a log do not change the band of its motion.
_BRIDGED = 0.02

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

    `cutoff_hz` of the zero-phase Butterworth of the given order; None: where torques are fitted the logs choose
    (`choose_cutoff`), up to twenty times the frequency below which 99.9 % of the positions' power lies. `velocity`
    "measured" (filtered) or "differentiated" (of the filtered position); "auto" takes the measured one, joint by joint,
    where it agrees with the other and is less noisy, and shifts it where it is late. `trim` seconds are cut at
    both ends of every piece (None: as long as the filter remembers), every `decimation`-th row is kept (None: as many
    as the cut-off needs). `mask` (rad/s, m/s) drops a joint's rows while it moves more slowly. `delay` (s) is how far
    the torque lags behind the positions: each torque is compared with the motion that much earlier, also between
    samples; None: zero, unless `identify` finds a delay that all joints share (`choose_cutoff`). `torque_between`
    says how the torque runs between samples: "held" from its stamp on, "sampled", or "averaged" up to its stamp;
    "auto": `identify` and `compare` find out (`regression/torque_between.py`). `standing` rows of a joint with dry
    friction are left out of the fit ("leave_out") or not ("keep"); "auto": `identify` leaves them out where its
    estimator takes rows one by one. The motion is smoothed at `motion_factor` times the cut-off; None: 1, and 2 where
    `identify` fits torques.
    """

    why_null: ClassVar = {
        "cutoff": "By the rule; cutoff_hz is what it gave.",
        "trim": "As long as the filter remembers.",
        "decimation": "As many as the cut-off needs.",
        "motion_factor": "The usual one of what is fitted.",
        "delay": "The logs show no delay that all joints share.",
    }
    cutoff_hz: float | None = None
    order: int = 4
    velocity: VelocitySource = "auto"
    derivative: Derivative = "central"
    trim: float | None = None
    decimation: int | None = None
    mask: float = 0.0
    delay: float | None = None
    torque_between: TorqueBetween = "auto"
    standing: Literal["auto", "leave_out", "keep"] = "auto"
    motion_factor: float | None = None

    def __post_init__(self) -> None:
        as_torque_between(self.torque_between)
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
    to even so. `between` says how the torque runs between samples ("": nobody looked); where it is held or averaged,
    the motion is that of half a sample later or earlier, so that it belongs to the torque beside it. q, dq and ddq went
    through a filter with the cut-off `smooth_hz` (None: nobody knows).
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
    between: str = ""
    smooth_hz: float | None = None

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

    def with_torque(self, between: TorqueBetween) -> Motion:
        """Put each torque beside the motion of the instant that it belongs to.

        Args:
            between: How the torque runs between samples; "auto": nothing is known, and nothing is shifted.
        """
        if between == "auto":
            return self
        return replace(self.with_delay(lag_s(between, self.filter.period)), between=between)

    def with_delay(self, delay: float) -> Motion:
        """Put each torque beside the motion that is earlier.

        Whole samples are cut off, and the smooth motion is shifted by the rest; the torque is never interpolated.

        Args:
            delay: How far the torque lags behind the positions [s].
        """
        h = self.filter.period
        late = round(delay / h)
        rest = delay - late * h
        if late == 0 and abs(rest) < _NO_SHIFT * h:
            return self
        count = max(len(self.t) - abs(late), 0)
        motion, torque = (slice(k, k + count) for k in (max(-late, 0), max(late, 0)))
        q, dq, ddq = (x[motion] for x in (self.q, self.dq, self.ddq))
        if abs(rest) >= _NO_SHIFT * h:
            q, dq, ddq = (earlier(x, rest / h) for x in (q, dq, ddq))
        still = None if self.standing is None else self.standing[motion]
        keep = slice(self.keep.start, self.keep.stop - abs(late), self.keep.step)
        t, tau = self.t[motion] - rest, self.tau[torque]
        return replace(self, t=t, q=q, dq=dq, ddq=ddq, tau=tau, keep=keep, standing=still, history=None, history_key=())


def segments_of(log: Log) -> Sequence[tuple[int, int]]:
    """The index ranges of `log` that are free of gaps."""
    return log.segments or ((0, len(log)),)


def chosen_cutoff(logs: Sequence[Log], settings: Preparation) -> float:
    """The cut-off (Hz) that `settings` give, or the rule's for these `logs`."""
    pieces = [_uniform(log, start, stop) for log in map(without_repeats, logs) for start, stop in _stretches(log)]
    slowest = max(p.period for p in pieces)
    if settings.cutoff_hz is not None:
        return LowPass(settings.cutoff_hz, slowest).cutoff_hz  # refuses what the sampling rate cannot bear
    return float(cutoffs_of(_bands(pieces), slowest))


def motion_frequency(logs: Sequence[Log]) -> float:
    """Find the band of the motion [Hz]: the median over the longer pieces, in which a trend is a slow motion.

    Args:
        logs: Logs of one robot.
    """
    pieces = [_uniform(log, start, stop) for log in map(without_repeats, logs) for start, stop in _stretches(log)]
    return float(np.median(_bands(pieces, trends=True)))


def _bands(pieces: Sequence[_Piece], trends: bool = False) -> list[float]:
    longer = deciding([len(p.t) for p in pieces])
    bands = [motion_band(pieces[k].q, pieces[k].period, trends=trends) for k in longer]
    if not bands or max(bands) == 0.0:
        raise LogError("Nothing moves in the log; a motion is needed, or a cut-off by hand.")
    return bands


def velocity_plan(logs: Sequence[Log], settings: Preparation) -> VelocityPlan:
    """The source of every joint's velocity in some logs.

    Args:
        logs: Logs that decide together.
        settings: "measured" and "differentiated" hold for all joints; "auto" lets the logs choose joint by joint.
    """
    joints = logs[0].q.shape[1]
    if settings.velocity != "auto":
        return VelocityPlan.uniform(joints, settings.velocity == "measured")
    pieces = []
    for log in map(without_repeats, logs):
        for start, stop in segments_of(log):
            piece = _uniform(log, start, stop)
            if piece.dq is None:
                return VelocityPlan.uniform(joints, False)
            pieces.append((piece.q, piece.dq, piece.period))
    return plan_velocity(pieces)


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
def prepare(
    log: Log, settings: Preparation, cutoff_hz: float, to_fit: bool = True, velocity: VelocityPlan | None = None
) -> Iterator[Motion]:
    """The motions of a log; pieces too short for the filter are left out.

    Args:
        log: with torques.
        settings: how signals are made ready.
        cutoff_hz: of the low-pass, Hz.
        to_fit: leave out pieces of which too few rows remain to be fitted to; they can still be judged by.
        velocity: The source of every joint's velocity; None: chosen by this log as the settings say.
    """
    if log.tau is None:
        raise LogError("The log has no torque; identification needs it (or a current with its constants).")
    log = without_repeats(log)
    plan = velocity or velocity_plan([log], settings)
    for start, stop in segments_of(log):
        piece = _uniform(log, start, stop)
        low_pass, keep = _kept(len(piece.t), piece.period, settings, cutoff_hz)
        delay = settings.delay or 0.0
        if keep.stop - keep.start - abs(round(delay / piece.period)) < max(8, 4 * keep.step if to_fit else 0):
            continue
        yield _motion(piece, low_pass, settings, keep, plan).with_delay(delay).with_torque(settings.torque_between)


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


def _motion(piece: _Piece, low_pass: LowPass, settings: Preparation, keep: slice, plan: VelocityPlan) -> Motion:
    h, smooth = piece.period, _smoothing(low_pass, settings)
    q, measured = _together(smooth, piece.q, piece.dq if any(plan.measured) else None)
    if measured is None and any(plan.measured):
        raise LogError("The log has no velocity; differentiate positions (in Python: velocity='differentiated').")
    # Differentiation raises what noise is left, so the filter acts once more after it.
    if measured is not None and all(plan.measured):
        dq = plan.merge(measured, measured, h)
    else:
        dq = smooth(derivative(q, h, settings.derivative))
        dq = dq if measured is None else plan.merge(measured, dq, h)
    ddq = smooth(derivative(dq, h, settings.derivative))
    noise = velocity_noise(piece.q, smooth, False)
    if piece.dq is not None and any(plan.measured):
        noise = np.where(plan.measured, velocity_noise(piece.dq, smooth, True), noise)
    return Motion(
        piece.t, q, dq, ddq, piece.tau, low_pass, keep, plan.text, smooth_hz=smooth.cutoff_hz,
        standing=standing(q, dq, noise, low_pass), fit_standing=settings.standing != "leave_out",
    )  # fmt: skip


def _together(low_pass: LowPass, q: Array, dq: Array | None) -> tuple[Array, Array | None]:
    """Both through the filter, in one go."""
    if dq is None:
        return low_pass(q), None
    smooth = low_pass.of(lambda start, stop: np.hstack([q[start:stop], dq[start:stop]]), len(q), slice(None))
    return smooth[:, : q.shape[1]].copy(), smooth[:, q.shape[1] :].copy()


@dataclass(frozen=True, eq=False)
class _Piece:
    """A gap-free piece, resampled to its mean period where the clock jitters."""

    t: Array
    q: Array
    dq: Array | None
    tau: Array
    period: float


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
