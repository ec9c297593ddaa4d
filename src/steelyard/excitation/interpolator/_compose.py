"""Sequences of moves: with fly-by the next move starts while the last one slows down; limits are always kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from steelyard.errors import ProgramError
from steelyard.excitation.interpolator.profile import MotionLimits, Profile, Ramp, profile
from steelyard.excitation.trajectories._pieces import evaluate, piece_extents, refine, taylor
from steelyard.ground.arrays import Array

# Margin of all limits for rounding.
_MARGIN = 1.0 - 1e-9
# Smaller steps [rad, m] are rounding of zero.
NOTHING = 1e-12


@dataclass(frozen=True)
class Pace:
    """Slow-down factors of a move: of the whole, and of its first and last ramp."""

    whole: float = 1.0
    first: float = 1.0
    last: float = 1.0


class Segment(Profile):
    """Displacement of all joints from the start of a move; `table` has shape (pieces, powers of u, joints)."""


class Course(Protocol):
    """The path of a move at any pace; `fly` is the share of its deceleration that overlaps with the next move."""

    @property
    def fly(self) -> float: ...

    def at(self, pace: Pace) -> Segment: ...


@dataclass(frozen=True, eq=False)
class PauseCourse:
    seconds: float
    joints: int
    fly: float = 0.0

    def at(self, pace: Pace) -> Segment:
        return Segment(np.array([0.0, self.seconds]), np.zeros((1, 4, self.joints)), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class _Course:
    """A path from 0 to 1 at `velocity` [1/s] between its ramps."""

    velocity: float
    ramp: Ramp
    fly: float

    def shape(self, pace: Pace) -> Profile:
        whole = self.ramp.soften(pace.whole)
        return profile(self.velocity / pace.whole, whole.soften(pace.first), whole.soften(pace.last))


@dataclass(frozen=True, eq=False)
class StraightCourse(_Course):
    """All joints move synchronously on a straight line in joint space."""

    step: Array

    def at(self, pace: Pace) -> Segment:
        shape = self.shape(pace)
        return Segment(shape.breaks, shape.table[:, :, None] * self.step, shape.speeding, shape.slowing)


@dataclass(frozen=True, eq=False)
class CurvedCourse(_Course):
    """A curve of postures, `curve(s)` for s from 0 to 1, in `count` pieces of time."""

    curve: Any
    count: int

    def at(self, pace: Pace) -> Segment:
        from scipy.interpolate import make_interp_spline

        shape = self.shape(pace)
        t = np.linspace(0.0, shape.duration, self.count + 1)
        s = np.clip(evaluate(shape.breaks, shape.table[:, :, None], t, 0)[:, 0], 0.0, 1.0)
        q = self.curve(s)
        still = np.zeros(q.shape[1])
        smooth = np.isfinite(self.ramp.jerk)
        rest = [(1, still), (2, still)] if smooth else [(1, still)]
        spline = make_interp_spline(t, q - q[0], k=5 if smooth else 3, bc_type=(rest, rest))
        return Segment(t, taylor(spline, t), shape.speeding, shape.slowing)


def straight(step: Array, speed: float, fly: float, limits: MotionLimits) -> StraightCourse | None:
    """Return the fastest synchronised motion over a step of all joints; None for a step of zero."""
    if np.abs(step).max() <= NOTHING:
        return None
    velocity, acceleration, jerk = path_rates(step, np.array(speed), limits).tolist()
    return StraightCourse(velocity, Ramp(acceleration, jerk), fly, step)


def path_rates(steps: Array, speed: Array, limits: MotionLimits) -> Array:
    """Return the largest velocity, acceleration and jerk of straight moves as shares of their path, shape (…, 3).

    `steps` (…, joints) belong to any number of programs; `speed` has one dimension less than the moves.
    """
    share = speed.reshape(*speed.shape, *(1,) * (steps.ndim - speed.ndim))
    with np.errstate(divide="ignore"):  # joints at rest set no bound
        bounds = [bound / np.abs(steps) for bound in (share * limits.velocity, limits.acceleration, limits.jerk)]
    return np.stack([np.min(rates, axis=-1) for rates in bounds], axis=-1) * _MARGIN


_ROUNDS = 100
# A larger slow-down factor indicates a singular posture.
_SLOWEST = 200.0
# Larger than the rounding of the bounds, and negligible.
_HAIR = 1e-9


@dataclass(frozen=True, eq=False)
class Row:
    """A sequence of moves: segments, their start times, overlaps with the next, and their sum in pieces."""

    segments: tuple[Segment, ...]
    starts: Array
    overlaps: Array
    breaks: Array
    table: Array


def compose_moves(courses: Sequence[Course], limits: MotionLimits) -> Row:
    """Return the fastest sequence of all moves within the limits at all times.

    The accelerations of two overlapping moves add up: the two ramps are softened until the sum is within the limits. If
    stopping between the moves is faster, they stop. Lines and circles that demand too much of a joint are slowed down
    as a whole.
    """
    flies = [course.fly for course in courses]
    while True:
        row, paces = _fit_paces(courses, flies, limits)
        stops = [k for k in range(len(courses) - 1) if flies[k] and _stop_is_quicker(k, courses, paces, row)]
        if not stops:
            return row
        for k in stops:
            flies[k] = 0.0


def _fit_paces(courses: Sequence[Course], flies: Sequence[float], limits: MotionLimits) -> tuple[Row, list[Pace]]:
    count = len(courses)
    whole, first, last = np.ones((3, count))
    for _ in range(_ROUNDS):
        paces = [Pace(*map(float, factors)) for factors in zip(whole, first, last, strict=True)]
        row = superpose([course.at(pace) for course, pace in zip(courses, paces, strict=True)], flies)
        quick, rough = _excess(row, limits)
        if max(quick.max(), rough.max()) <= 1.0:
            return row, paces
        for k in range(count):
            begin, end = row.starts[k], row.starts[k] + row.segments[k].duration
            shared = float(row.overlaps[k])
            before = float(row.overlaps[k - 1]) if k else 0.0
            alone = _worst(np.maximum(quick, rough), row.breaks, begin + before, end - shared)
            whole[k] *= max(alone, _worst(quick, row.breaks, begin, end))
            if shared:
                softer = _worst(rough, row.breaks, end - shared, end)
                last[k], first[k + 1] = last[k] * softer, first[k + 1] * softer
        if whole.max() > _SLOWEST:
            raise ProgramError(
                f"Move {int(whole.argmax()) + 1} would have to be {whole.max():.0f} times slower to keep the joints' "
                "limits: the tool passes close to a singular posture. Shift the path, or use a joint move."
            )
    raise ProgramError(
        "The overlapping moves break the joints' limits at every speed that was tried; reduce their overlap (fly)."
    )


def _stop_is_quicker(k: int, courses: Sequence[Course], paces: Sequence[Pace], row: Row) -> bool:
    one, other = paces[k], paces[k + 1]
    stopping = courses[k].at(Pace(one.whole, one.first, 1.0)).duration
    stopping += courses[k + 1].at(Pace(other.whole, 1.0, other.last)).duration
    flying = row.segments[k].duration + row.segments[k + 1].duration - row.overlaps[k]
    return bool(stopping < flying * (1.0 - 1e-6))


def superpose(segments: Sequence[Segment], flies: Sequence[float]) -> Row:
    """Return the sum of the moves' displacements, each starting before its predecessor ends."""
    pairs = zip(pairwise(segments), flies, strict=False)
    overlaps = np.array([fly * min(one.slowing, other.speeding) for (one, other), fly in pairs] + [0.0])
    lengths = np.array([segment.duration for segment in segments])
    starts = np.concatenate([[0.0], np.cumsum((lengths - overlaps)[:-1])])
    own = [start + segment.breaks for start, segment in zip(starts, segments, strict=True)]
    breaks = _merge(np.concatenate(own))
    degree = max(segment.table.shape[1] for segment in segments)
    table = np.zeros((len(breaks) - 1, degree, segments[0].table.shape[2]))
    for times, segment in zip(own, segments, strict=True):
        table[:, : segment.table.shape[1]] += refine(times, segment.table, breaks)
    return Row(tuple(segments), starts, overlaps, breaks, table)


def _merge(times: Array) -> Array:
    """Sort the times and merge those that differ only by rounding."""
    ordered = np.sort(times)
    distinct = np.append(True, np.diff(ordered) > 1e-12 * max(1.0, float(ordered[-1])))
    return np.asarray(ordered[distinct])


def _excess(row: Row, limits: MotionLimits) -> tuple[Array, Array]:
    """Return the necessary slow-down factor of every piece: for the velocity; for acceleration and jerk."""
    shares = []
    for order, bound in enumerate((limits.velocity, limits.acceleration, limits.jerk), start=1):
        low, high = piece_extents(row.breaks, row.table, order)
        share = np.max(np.maximum(-low, high) / bound, axis=1)
        shares.append(np.maximum(share, 0.0) ** (1.0 / order))
    return shares[0], np.maximum(shares[1], shares[2])


def _worst(excess: Array, breaks: Array, begin: float, end: float) -> float:
    """Return the largest necessary slow-down factor between `begin` and `end`, at least 1."""
    middles = (breaks[:-1] + breaks[1:]) / 2.0
    worst = float(excess[(middles > begin) & (middles < end)].max(initial=0.0))
    return worst * (1.0 + _HAIR) if worst > 1.0 else 1.0
