"""Prepares logs for regression: uniform clock, smooth positions, velocities and accelerations, and torques."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.signals.between import TorqueBetween, as_torque_between, lag_s
from steelyard.signals.filters import Derivative, LowPass, derivative, earlier, motion_band
from steelyard.signals.log import Log
from steelyard.signals.repeats import without_repeats
from steelyard.signals.rounding import velocity_noise
from steelyard.signals.standing import hardly_moving, standing
from steelyard.signals.velocity import VelocityPlan, plan_velocity

# Highest default cut-off, relative to the band of the motion. Jumps of friction at reversals have higher frequencies
# than the motion; a low cut-off would smear them into viscous and inertial columns. No geared arm gains from more
# (docs/theory/preparation.md); cross-validation decides whether the noise allows as much (`regression/band.py`).
CUTOFF_FACTOR = 20.0
LOWEST_CUTOFF = 1.0
# In fits of torques the motion is smoothed at this multiple of the equations' cut-off. A filter on both sides of
# y = A θ is harmless; one on the motion alone (which acts up to three times) removes content that the torque has.
# Other schemes differentiate energies and momenta and need the smoother motion.
MOTION_FACTOR = 2.0
# Ratio of mean to median of a clock's steps above which the mean is its period.
_UNEVEN = 1.15
# Smaller shifts are rounding [samples].
_NO_SHIFT = 1e-3
# Gaps up to this fraction of a log do not change the band of its motion.
_BRIDGED = 0.02

VelocitySource = Literal["auto", "measured", "differentiated"]


def as_velocity(name: str) -> VelocitySource:
    """Check that `name` is one of `VelocitySource`."""
    if name not in get_args(VelocitySource):
        raise UnknownNameError("source of the velocity", name, get_args(VelocitySource))
    return cast(VelocitySource, name)


@dataclass(frozen=True)
class Preparation:
    """Settings for the preparation of signals, for fits and (with another cut-off) for scores.

    Attributes:
        cutoff_hz: Cut-off of the zero-phase Butterworth filter [Hz]. None: in fits of torques the logs choose it
            (`choose_cutoff`), up to twenty times the frequency below which 99.9 % of the positions' power is.
        order: Order of the filter.
        velocity: "measured" (filtered), or "differentiated" (from the filtered position). "auto": per joint, the
            measured one if it agrees with the other and is less noisy; its delay is corrected.
        derivative: Method of differentiation.
        trim: Time to cut at both ends of every piece [s]; None: the memory of the filter.
        decimation: Use every n-th row; None: as the cut-off allows.
        mask: Omit rows of a joint at lower speeds [rad/s or m/s].
        delay: Delay of the torque behind the positions [s], also between samples. None: zero, unless `identify` finds
            a delay common to all joints (`choose_cutoff`).
        torque_between: Torque between samples: "held" after its stamp, "sampled", or "averaged" up to its stamp.
            "auto": `identify` and `compare` determine it (`regression/torque_between.py`).
        standing: Rows of a standing joint with dry friction: "leave_out" or "keep". "auto": `identify` omits them if
            its estimator uses single rows.
        motion_factor: Cut-off of the motion relative to that of the equations; None: 1, or 2 if `identify` fits
            torques.
    """

    why_null: ClassVar = {
        "cutoff": "Chosen by the rule; cutoff_hz is the result.",
        "trim": "The memory of the filter.",
        "decimation": "As the cut-off allows.",
        "motion_factor": "The default of the fit.",
        "delay": "The logs do not show a delay common to all joints.",
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
        """Fill in the defaults of a fit.

        Args:
            torques, one_by_one: Whether the fit is to torques, and whether it can omit single rows.
        """
        out = self.standing == "auto" and one_by_one
        factor = self.motion_factor or (MOTION_FACTOR if torques else 1.0)
        return replace(self, standing="leave_out" if out else self.standing, motion_factor=factor)


@dataclass(frozen=True, eq=False)
class Motion:
    """A gap-free piece of a log on a uniform clock.

    Attributes:
        t: Times [s].
        q, dq, ddq: Smooth positions, velocities and accelerations, shape (samples, joints).
        tau: Measured torques [N m or N], shape (samples, joints).
        filter: Filter for both sides of y = A θ.
        keep: Rows that remain after trimming and decimation.
        velocity: Source of the velocities.
        history, history_key: Signals of terms with memory, shape (samples, signals), and their `Terms.history_key`.
        standing: Whether a joint stands, shape (samples, joints); None if not determined.
        fit_standing: Fit to the rows of standing joints as well.
        between: Torque between samples; "" if not determined. If it is held or averaged, the motion is shifted by half
            a sample to match the torque.
        smooth_hz: Cut-off of the filter that smoothed q, dq and ddq [Hz]; None if unknown.
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
        """Whether rows of a standing joint are omitted from a fit."""
        return not self.fit_standing and self.standing is not None and bool(self.standing.any())

    @property
    def long_enough(self) -> bool:
        """Whether enough rows remain for a fit; shorter pieces can still be used for scores."""
        start, stop, step = self.keep.indices(len(self.t))
        return stop - start >= 4 * step

    @property
    def row_period(self) -> float:
        return self.filter.period * (self.keep.step or 1)

    def with_torque(self, between: TorqueBetween) -> Motion:
        """Shift the motion to the time of the torques by their form `between` samples; "auto" shifts nothing."""
        if between == "auto":
            return self
        return replace(self.with_delay(lag_s(between, self.filter.period)), between=between)

    def with_delay(self, delay: float) -> Motion:
        """Correct a `delay` of the torques [s]: cut whole samples and shift the smooth motion, never the torque."""
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
    """Return the gap-free index ranges of `log`."""
    return log.segments or ((0, len(log)),)


def chosen_cutoff(logs: Sequence[Log], settings: Preparation) -> float:
    """Return the stated cut-off, or that of the rule [Hz].

    Args:
        logs: Logs of one robot.
        settings: Preparation, which may state a cut-off.
    """
    pieces = [_uniform(log, start, stop) for log in map(without_repeats, logs) for start, stop in _stretches(log)]
    slowest = max(p.period for p in pieces)
    if settings.cutoff_hz is not None:
        return LowPass(settings.cutoff_hz, slowest).cutoff_hz  # refuses a cut-off above half the sampling rate
    return float(cutoffs_of(_bands(pieces), slowest))


def motion_frequency(logs: Sequence[Log]) -> float:
    """Compute the band of the motion of `logs` [Hz]: median over the longer pieces; trends count as slow motions."""
    pieces = [_uniform(log, start, stop) for log in map(without_repeats, logs) for start, stop in _stretches(log)]
    return float(np.median(_bands(pieces, trends=True)))


def _bands(pieces: Sequence[_Piece], trends: bool = False) -> list[float]:
    longer = long_pieces([len(p.t) for p in pieces])
    bands = [motion_band(pieces[k].q, pieces[k].period, trends=trends) for k in longer]
    if not bands or max(bands) == 0.0:
        raise LogError("No joint moves in the log; log a motion, or set the cut-off.")
    return bands


def velocity_plan(logs: Sequence[Log], settings: Preparation) -> VelocityPlan:
    """Choose the source of every joint's velocity.

    Args:
        logs: Logs to decide by.
        settings: "measured" and "differentiated" apply to all joints; with "auto" the logs decide per joint.
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


def long_pieces(lengths: Sequence[int]) -> list[int]:
    """Select the pieces that determine the cut-off by their `lengths` [samples]; short ones may show trends."""
    return [k for k, length in enumerate(lengths) if length >= max(32, max(lengths) // 2)]


def cutoffs_of(bands: Sequence[float] | Array, period: float) -> Array:
    """Compute the cut-off [Hz] of the rule.

    Args:
        bands: Bands of the motion [Hz], shape (pieces,) or (pieces, robots).
        period: Time between samples [s].
    """
    return np.asarray(np.clip(CUTOFF_FACTOR * np.median(bands, axis=0), LOWEST_CUTOFF, 0.4 / period))


def _stretches(log: Log) -> list[tuple[int, int]]:
    """Join segments across short, plausible gaps, only for the band of the motion: short pieces overestimate it."""
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


def prepare(
    log: Log, settings: Preparation, cutoff_hz: float, to_fit: bool = True, velocity: VelocityPlan | None = None
) -> Iterator[Motion]:
    """Compute the motions of a log; pieces that are too short for the filter are omitted.

    Args:
        log: Log with torques.
        settings: Settings of the preparation.
        cutoff_hz: Cut-off of the low-pass [Hz].
        to_fit: Omit pieces with too few rows for a fit, which could still be used for scores.
        velocity: Source of every joint's velocity; None: chosen by this log and the settings.
    """
    if log.tau is None:
        raise LogError("The log has no torque; identification needs torques, or currents with torque_constants.")
    log = without_repeats(log)
    plan = velocity or velocity_plan([log], settings)
    for start, stop in segments_of(log):
        piece = _uniform(log, start, stop)
        low_pass, keep = _rows_to_keep(len(piece.t), piece.period, settings, cutoff_hz)
        delay = settings.delay or 0.0
        if keep.stop - keep.start - abs(round(delay / piece.period)) < max(8, 4 * keep.step if to_fit else 0):
            continue
        yield _motion(piece, low_pass, settings, keep, plan).with_delay(delay).with_torque(settings.torque_between)


def _rows_to_keep(samples: int, period: float, settings: Preparation, cutoff_hz: float) -> tuple[LowPass, slice]:
    """Return the filter of both sides of y = A θ, and the rows that remain after trimming and decimation."""
    low_pass = LowPass(min(cutoff_hz, 0.45 / period), period, settings.order)
    trim = max(low_pass.memory // 3 if settings.trim is None else round(settings.trim / period), 1)
    # Rows closer than a fifth of the cut-off's period are redundant after the filter.
    step = settings.decimation or max(1, int(0.2 / (low_pass.cutoff_hz * period)))
    return low_pass, slice(trim, samples - trim, step)


def _smoothing(low_pass: LowPass, settings: Preparation) -> LowPass:
    """Return the filter of the motion."""
    h = low_pass.period
    return LowPass(min((settings.motion_factor or 1.0) * low_pass.cutoff_hz, 0.45 / h), h, settings.order)


def prepare_together(
    like: Motion, q: Array, tau: Array, settings: Preparation, cutoff_hz: float
) -> tuple[Motion, NDArray[np.bool_]]:
    """Prepare one motion of many robots as `prepare` does for each; also return where they hardly move.

    Args:
        like: Motion of one of them with differentiated velocities; its clock is that of all.
        q: Measured positions [rad or m], shape (samples, joints, robots), possibly on a GPU.
        tau: Measured torques [N m or N], of the same shape.
        settings: Settings of the preparation.
        cutoff_hz: Cut-off of the low-pass [Hz].
    """
    h = like.filter.period
    low_pass, keep = _rows_to_keep(len(q), h, settings, cutoff_hz)
    smooth = _smoothing(low_pass, settings)
    x = smooth(q)
    dq = smooth(derivative(x, h, settings.derivative))
    ddq = smooth(derivative(dq, h, settings.derivative))
    slow = hardly_moving(x, dq, velocity_noise(q, smooth, False), low_pass)
    return replace(like, q=x, dq=dq, ddq=ddq, tau=tau, filter=low_pass, keep=keep, standing=None), slow


def _motion(piece: _Piece, low_pass: LowPass, settings: Preparation, keep: slice, plan: VelocityPlan) -> Motion:
    h, smooth = piece.period, _smoothing(low_pass, settings)
    q, measured = _together(smooth, piece.q, piece.dq if any(plan.measured) else None)
    if measured is None and any(plan.measured):
        raise LogError("The log has no velocity; differentiate positions (in Python: velocity='differentiated').")
    # Differentiation amplifies the remaining noise, so the filter is applied again.
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
    """Filter both signals at once."""
    if dq is None:
        return low_pass(q), None
    smooth = low_pass.of(lambda start, stop: np.hstack([q[start:stop], dq[start:stop]]), len(q), slice(None))
    return smooth[:, : q.shape[1]].copy(), smooth[:, q.shape[1] :].copy()


@dataclass(frozen=True, eq=False)
class _Piece:
    """A gap-free piece, resampled to a uniform clock if its clock jitters."""

    t: Array
    q: Array
    dq: Array | None
    tau: Array
    period: float


def _period(t: Array) -> float:
    """Return the period of the uniform clock: the median step, or the mean if two lengths of steps alternate."""
    steps = np.diff(t)
    median = float(np.median(steps))
    # Without repeated rows, the stamps are those of a slower clock, rounded to the ticks of a faster one.
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
