"""`SampleClock`: turns incoming samples into batches in the order of time, and counts faulty samples.

It drops samples with values that are not finite or impossible for a robot, duplicates (same time as another sample),
and late samples, unless some samples are held back for sorting. A fresh batch begins after a gap (a long step of time)
and after a jump (the clock was set, or its machine restarted). Each sample is judged alone, so that the result does not
depend on how the samples arrive.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import pairwise
from operator import le
from statistics import fmean, median
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.watch.batch import SampleBatch
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.monitor_base import StateArrays

if TYPE_CHECKING:
    from steelyard.robot.robot import Robot

# A step is a gap if it is longer than the first number of periods, and also longer than the second number or the time
# [s]: the same rule as in logs.
_MIN_GAP_PERIODS, _GAP_PERIODS, _GAP_S = 4.0, 10.0, 0.05
# Stamps that differ by less than this share of a period are equal up to rounding.
_SAME_SHARE = 1e-3
# A sample that is older than the newest by up to this is late; by more, the clock was set back.
LATE_S = 1.0
# A longer step is a change of the clock (a date that was not set before), not a pause of the robot.
_MAX_STEP_S = 86400.0
# The period is the median of this many steps; the first estimate uses fewer, to be available soon.
_FIRST_STEPS, _WINDOW_STEPS = 16, 256
# Up to this many samples are processed one by one, which is faster than array operations.
_MAX_SINGLE = 4
# Largest plausible time [s], position [rad, m], velocity [rad/s, m/s] and torque [N m, N].
_MAX_TIME, _MAX_POSITION, _MAX_SPEED, _MAX_TORQUE = 1e12, 1e5, 1e4, 1e7
# A velocity or torque beyond this many times its limit in the robot description is an error.
_MAX_LIMIT_RATIO = 10.0
_MESSAGES = {
    "duplicate": "A sample has the same time as another ({0:.6g} s) and is dropped.",
    "late": "A sample at {0:.6g} s comes {1:.3g} s late and is dropped. To sort late samples, use --hold.",
    "gap": "After {0:.6g} s there is a gap of {1:.3g} s; the observer restarts.",
    "jump": "The clock of the source jumps by {1:+.4g} s to {0:.6g} s; the observer restarts.",
}


def plausible_bounds(robot: Robot) -> Array:
    """Return the largest plausible magnitudes of t, q, dq and tau of a `robot`, shape (1 + 3 joints,)."""
    speed = [
        min(_MAX_LIMIT_RATIO * joint.velocity, _MAX_SPEED) if joint.velocity > 0.0 else _MAX_SPEED
        for joint in robot.joints
    ]
    torque = [
        min(_MAX_LIMIT_RATIO * joint.effort, _MAX_TORQUE) if joint.effort > 0.0 else _MAX_TORQUE
        for joint in robot.joints
    ]
    return np.array([_MAX_TIME, *[_MAX_POSITION] * robot.dof, *speed, *torque])


# Largest number of samples that may be held back.
_MAX_HELD = 1000


class SampleClock:
    """Orders samples, cuts them into batches without gaps, and counts dropped samples.

    Args:
        bounds: Largest magnitudes by `plausible_bounds`, shape (1 + 3 joints,).
        hold: Number of samples that are held back to sort late ones; each adds one period of delay.
        gap_s: Longest step without a gap [s]; 0: from the measured period.
        diagnostics: Counts "samples", "not finite", "impossible", "duplicate", "late", "gap" and "jump".
    """

    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "steps": ArrayRule(rows=_WINDOW_STEPS - 1),
        "held": ArrayRule(rows=_MAX_HELD),
    }

    def __init__(
        self, bounds: Array, hold: int = 0, gap_s: float = 0.0, diagnostics: Diagnostics | None = None
    ) -> None:
        self.bounds, self.hold, self.gap_s = np.asarray(bounds, dtype=float), hold, gap_s
        self._max_values = self.bounds.tolist()
        self.diagnostics = diagnostics or Diagnostics()
        self.period, self.last, self._fresh = 0.0, float("nan"), True
        self._mean_step = 0.0
        self._steps: list[float] = []
        self._held = np.zeros((0, len(self.bounds)))
        self._limit, self._same = gap_s or _GAP_S, 0.0

    @property
    def joints(self) -> int:
        return (len(self.bounds) - 1) // 3

    def mark_gap(self) -> None:
        """Make the next sample start a fresh batch, because the source was lost or this process restarted."""
        self._fresh = True

    def add(self, rows: Array) -> list[SampleBatch]:
        """Add samples (`rows`: t, q, dq, tau, shape (samples, 1 + 3 joints)); return the batches that are ready."""
        if len(rows) <= _MAX_SINGLE and not self.hold:
            return [batch for k, values in enumerate(rows.tolist()) for batch in self._single(rows[k : k + 1], values)]
        good = np.abs(rows) <= self.bounds
        if not good.all():
            rows = self._without_bad(rows, np.asarray(good.all(axis=1)))
        if self.hold:
            rows = self._sorted(rows)
        return self._cut_at_breaks(rows) if len(rows) else []

    def finish(self) -> list[SampleBatch]:
        """Return the batches of the samples that are still held back, at the end of the source."""
        rows: Array = self._held[np.argsort(self._held[:, 0], kind="stable")]
        self._held = self._held[:0]
        return self._cut_at_breaks(rows) if len(rows) else []

    def _without_bad(self, rows: Array, good: NDArray[np.bool_]) -> Array:
        bad = rows[~good]
        missing = int(np.count_nonzero(~np.isfinite(bad).all(axis=1)))
        if missing:
            self.diagnostics.count(
                "not finite", "A sample has a value that is not finite (NaN, inf) and is dropped.", missing
            )
        if missing < len(bad):
            column = int(np.argmax((np.abs(bad) > self.bounds).any(axis=0)))
            joints = self.joints
            signal = ("position", "velocity", "torque")[(column - 1) // joints]
            value = f"the {signal} of joint {(column - 1) % joints + 1}" if column else "its time"
            message = f"A sample has an impossible value ({value}) and is dropped. Check the units."
            self.diagnostics.count("impossible", message, len(bad) - missing)
        remaining: Array = rows[good]
        return remaining

    def _sorted(self, rows: Array) -> Array:
        """Add rows to the held samples; return the oldest ones, so that `hold` samples remain."""
        waiting = np.vstack([self._held, rows])
        count = max(0, len(waiting) - self.hold)
        if np.all(np.diff(waiting[:, 0]) >= 0.0):
            self._held = waiting[count:].copy()
            return waiting[:count]
        heap = [(t, k) for k, t in enumerate(waiting[: len(self._held), 0].tolist())]
        heapq.heapify(heap)
        order: list[int] = []
        for k in range(len(self._held), len(waiting)):
            t = float(waiting[k, 0])
            if heap and t < max(heap)[0] - LATE_S:  # the clock was set back: held samples come first
                order += [heapq.heappop(heap)[1] for _ in range(len(heap))]
            heapq.heappush(heap, (t, k))
            if len(heap) > self.hold:
                order.append(heapq.heappop(heap)[1])
        self._held = waiting[sorted(k for _, k in heap)]
        return waiting[order]

    def _single(self, row: Array, values: list[float]) -> list[SampleBatch]:
        """Return the batch of one sample, or nothing if it is dropped."""
        if not all(map(le, map(abs, values), self._max_values)):
            self._without_bad(row, np.zeros(1, dtype=bool))
            return []
        breaks: list[int] = []
        accepted = self._one_by_one(values[:1], 0, breaks)
        if len(self._steps) >= (_WINDOW_STEPS if self.period else _FIRST_STEPS):
            self._update_period()
        self.diagnostics.count("samples", times=len(accepted))
        return [SampleBatch.of_rows(row, bool(breaks))] if accepted else []

    def _cut_at_breaks(self, rows: Array) -> list[SampleBatch]:
        t = rows[:, 0]
        accepted: list[int] = []
        breaks: list[int] = []  # indices among the accepted samples
        start = 0
        while start < len(t):
            stop = min(len(t), start + (_WINDOW_STEPS if self.period else _FIRST_STEPS) - len(self._steps))
            if self._append_regular(t[start:stop]):
                accepted += range(start, stop)
            else:
                accepted += [start + k for k in self._one_by_one(t[start:stop].tolist(), len(accepted), breaks)]
            start = stop
            if len(self._steps) >= (_WINDOW_STEPS if self.period else _FIRST_STEPS):
                self._update_period()
        count = len(accepted)
        self.diagnostics.count("samples", times=count)
        if count < len(t):
            rows = rows[accepted]
        edges = [0, *(b for b in breaks if b), count]
        return [SampleBatch.of_rows(rows[a:b], fresh=a in breaks) for a, b in pairwise(edges) if b > a]

    def _append_regular(self, t: Array) -> bool:
        """Accept all stamps at once if their steps are regular; return whether they were."""
        if self._fresh or len(t) <= _MAX_SINGLE:
            return False
        steps = np.diff(t, prepend=self.last)
        if not (steps.min() > self._same and steps.max() <= self._limit):
            return False
        self._steps += steps.tolist()
        self.last = float(t[-1])
        return True

    def _one_by_one(self, stamps: list[float], before: int, breaks: list[int]) -> list[int]:
        """Return the indices of accepted stamps; add breaks to `breaks`, counted from `before` accepted samples."""
        accepted: list[int] = []
        for k, t in enumerate(stamps):
            step = t - self.last
            kind = ""
            if self.last != self.last:
                self._fresh = True
            elif abs(step) <= self._same:
                kind = "duplicate"
            elif -LATE_S <= step < 0.0 and not self._fresh:
                kind = "late"
            elif step < 0.0 or step > _MAX_STEP_S:
                kind = "jump"
            elif step > self._limit:
                kind = "gap"
            if kind:
                at, by = (self.last if kind == "gap" else t), (step if kind == "jump" else abs(step))
                self.diagnostics.count(kind, _MESSAGES[kind].format(at, by))
            if kind in ("duplicate", "late"):
                continue
            if self._fresh or kind:
                breaks.append(before + len(accepted))
            if kind in ("", "gap") and self.last == self.last:
                self._steps.append(step)
            self._fresh, self.last = False, t
            accepted.append(k)
        return accepted

    @property
    def mean_period(self) -> float:
        """Mean step of the latest samples without gaps [s]. Jitter makes it differ from `period`, the median."""
        return self._mean_step or self.period

    def _update_period(self) -> None:
        self.period = median(self._steps)
        self._mean_step = fmean(step for step in self._steps if step <= _GAP_PERIODS * self.period)
        self._steps.clear()
        self._limit = self.gap_s or max(_MIN_GAP_PERIODS * self.period, min(_GAP_PERIODS * self.period, _GAP_S))
        self._same = _SAME_SHARE * self.period

    def state(self) -> StateArrays:
        """Return all that the next sample needs."""
        numbers = np.array([self.period, self.last, self._limit, self._same, float(self._fresh)])
        return {"clock": numbers, "steps": np.array(self._steps), "held": self._held}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state`."""
        period, last, limit, same, fresh = state["clock"].tolist()
        held_rows = np.array(state["held"], dtype=float)
        if not (period >= 0.0 and limit > 0.0 and same >= 0.0 and np.all(np.abs(held_rows) <= self.bounds)):
            raise SteelyardError("the state of the clock is damaged.")
        self.period, self.last, self._limit, self._same = period, last, limit, same
        self._fresh, self._steps, self._held = bool(fresh), state["steps"].tolist(), held_rows
