"""`SampleClock`: samples as they come become batches in the order of time; what is wrong with them is counted.

A sample that is not finite, or that no robot can have, is left out. So is one with the time of another (a duplicate)
and, unless some are held back to be sorted, one that comes late. Where the time makes a step that is too long (a gap),
or goes back by more than a late sample would (a jump: the clock was set, or its machine began anew), a fresh batch
begins. All of that is decided sample by sample, so that it makes no difference how they were batched on their way.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import pairwise
from operator import le
from statistics import median
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.watch.batch import SampleBatch
from steelyard.watch.parts import PartState
from steelyard.watch.tally import Tally

if TYPE_CHECKING:
    from steelyard.robot.robot import Robot

# A step is a gap if it is longer than _FEW periods and also longer than _MANY periods or _LONG_S: as in logs.
_FEW, _MANY, _LONG_S = 4.0, 10.0, 0.05
# Closer than this part of a period, two stamps are the same instant: their difference is rounding.
_SAME = 1e-3
# What is older than the newest by up to this was late on its way; by more, the clock was set back.
LATE_S = 1.0
# Longer steps than this are the clock's (a date that was not set yet), not the robot's.
_FAR_S = 86400.0
# The period is the median of so many steps: few at first, for no robot waits.
_FIRST, _WINDOW = 16, 256
# A robot that runs: so few samples are batches of one, since what is made for many takes longer than they do.
_ALONE = 4
# Beyond these no joint of a robot is (rad, m; their derivative; N m, N), and no clock of seconds.
_MOST_TIME, _MOST_POSITION, _MOST_SPEED, _MOST_TORQUE = 1e12, 1e5, 1e4, 1e7
# Beyond so many times its stated limit, a velocity or torque was not measured but mistaken.
_BEYOND = 10.0
_SEEN_AS = {
    "duplicate": "A sample has the time of another ({0:.6g} s); it is left out.",
    "late": "A sample comes {1:.3g} s late (at {0:.6g} s); it is left out: hold some back (--hold) to sort them.",
    "gap": "After {0:.6g} s there is a gap of {1:.3g} s; nothing is carried across.",
    "jump": "The source's clock jumps by {1:+.4g} s, to {0:.6g} s; nothing is carried across.",
}


def plausible_bounds(robot: Robot) -> Array:
    """The largest magnitude of t, every q, dq and tau that a sample of `robot` may have, (1 + 3 joints,)."""
    speed = [
        min(_BEYOND * joint.velocity, _MOST_SPEED) if joint.velocity > 0.0 else _MOST_SPEED for joint in robot.joints
    ]
    torque = [
        min(_BEYOND * joint.effort, _MOST_TORQUE) if joint.effort > 0.0 else _MOST_TORQUE for joint in robot.joints
    ]
    return np.array([_MOST_TIME, *[_MOST_POSITION] * robot.dof, *speed, *torque])


# Samples that may be held back.
_MOST_HELD = 1000


class SampleClock:
    """Orders samples, cuts them into batches without gaps, and counts what it had to leave out.

    Args:
        bounds: largest magnitudes, (1 + 3 joints,), by `plausible_bounds`.
        hold: so many samples are held back, so that late ones find their place; each costs a period of delay.
        gap_s: a longer step (s) is a gap; 0: by the period that is seen.
        tally: where things are counted: "samples", "not finite", "impossible", "duplicate", "late", "gap", "jump".
    """

    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "steps": ArrayRule(rows=_WINDOW - 1),
        "held": ArrayRule(rows=_MOST_HELD),
    }

    def __init__(self, bounds: Array, hold: int = 0, gap_s: float = 0.0, tally: Tally | None = None) -> None:
        self.bounds, self.hold, self.gap_s = np.asarray(bounds, dtype=float), hold, gap_s
        self._most = self.bounds.tolist()
        self.tally = tally or Tally()
        self.period, self.last, self._fresh = 0.0, float("nan"), True
        self._steps: list[float] = []
        self._held = np.zeros((0, len(self.bounds)))
        self._limit, self._same = gap_s or _LONG_S, 0.0

    @property
    def joints(self) -> int:
        return (len(self.bounds) - 1) // 3

    def cut(self) -> None:
        """The next sample begins a fresh batch: the source was lost meanwhile, or this process began anew."""
        self._fresh = True

    def take(self, rows: Array) -> list[SampleBatch]:
        """The batches that can be told after more `rows` have come, (samples, 1 + 3 joints): t, q, dq, tau."""
        if len(rows) <= _ALONE and not self.hold:
            return [batch for k, values in enumerate(rows.tolist()) for batch in self._alone(rows[k : k + 1], values)]
        good = np.abs(rows) <= self.bounds
        if not good.all():
            rows = self._without_bad(rows, np.asarray(good.all(axis=1)))
        if self.hold:
            rows = self._sorted(rows)
        return self._cut_at_breaks(rows) if len(rows) else []

    def end(self) -> list[SampleBatch]:
        """The batches of what is still held back, when no more will come."""
        rows: Array = self._held[np.argsort(self._held[:, 0], kind="stable")]
        self._held = self._held[:0]
        return self._cut_at_breaks(rows) if len(rows) else []

    def _without_bad(self, rows: Array, good: NDArray[np.bool_]) -> Array:
        bad = rows[~good]
        missing = int(np.count_nonzero(~np.isfinite(bad).all(axis=1)))
        if missing:
            self.tally.count("not finite", "A sample holds what is not a number (NaN, inf); it is left out.", missing)
        if missing < len(bad):
            column = int(np.argmax((np.abs(bad) > self.bounds).any(axis=0)))
            joints = self.joints
            what = (
                f"the {('position', 'velocity', 'torque')[(column - 1) // joints]} of joint {(column - 1) % joints + 1}"
            )
            sentence = (
                f"A sample is impossible ({'its time' if column == 0 else what}); it is left out: check the units."
            )
            self.tally.count("impossible", sentence, len(bad) - missing)
        left: Array = rows[good]
        return left

    def _sorted(self, rows: Array) -> Array:
        """What may go after these rows: a sample waits until `hold` others have come after it, and the oldest goes."""
        waiting = np.vstack([self._held, rows])
        count = max(0, len(waiting) - self.hold)
        if np.all(np.diff(waiting[:, 0]) >= 0.0):
            self._held = waiting[count:].copy()
            return waiting[:count]
        heap = [(t, k) for k, t in enumerate(waiting[: len(self._held), 0].tolist())]
        heapq.heapify(heap)
        gone: list[int] = []
        for k in range(len(self._held), len(waiting)):
            t = float(waiting[k, 0])
            if heap and t < max(heap)[0] - LATE_S:  # the clock was set back: what is held belongs to the time before
                gone += [heapq.heappop(heap)[1] for _ in range(len(heap))]
            heapq.heappush(heap, (t, k))
            if len(heap) > self.hold:
                gone.append(heapq.heappop(heap)[1])
        self._held = waiting[sorted(k for _, k in heap)]
        return waiting[gone]

    def _alone(self, row: Array, values: list[float]) -> list[SampleBatch]:
        """The batch of one sample, a `row` of these `values`; none where it is left out."""
        if not all(map(le, map(abs, values), self._most)):
            self._without_bad(row, np.zeros(1, dtype=bool))
            return []
        breaks: list[int] = []
        kept = self._one_by_one(values[:1], 0, breaks)
        if len(self._steps) >= (_WINDOW if self.period else _FIRST):
            self._know_period()
        self.tally.count("samples", times=len(kept))
        return [SampleBatch.of_rows(row, bool(breaks))] if kept else []

    def _cut_at_breaks(self, rows: Array) -> list[SampleBatch]:
        t = rows[:, 0]
        kept: list[int] = []
        breaks: list[int] = []  # by the place among those that are kept
        start = 0
        while start < len(t):
            stop = min(len(t), start + (_WINDOW if self.period else _FIRST) - len(self._steps))
            if self._flawless(t[start:stop]):
                kept += range(start, stop)
            else:
                kept += [start + k for k in self._one_by_one(t[start:stop].tolist(), len(kept), breaks)]
            start = stop
            if len(self._steps) >= (_WINDOW if self.period else _FIRST):
                self._know_period()
        count = len(kept)
        self.tally.count("samples", times=count)
        if count < len(t):
            rows = rows[kept]
        edges = [0, *(b for b in breaks if b), count]
        return [SampleBatch.of_rows(rows[a:b], fresh=a in breaks) for a, b in pairwise(edges) if b > a]

    def _flawless(self, t: Array) -> bool:
        """Whether these follow what was before, without anything to be told; then they are taken."""
        if self._fresh or len(t) <= 4:  # of so few, one by one is faster
            return False
        steps = np.diff(t, prepend=self.last)
        if not (steps.min() > self._same and steps.max() <= self._limit):
            return False
        self._steps += steps.tolist()
        self.last = float(t[-1])
        return True

    def _one_by_one(self, stamps: list[float], before: int, breaks: list[int]) -> list[int]:
        """Which stamps are kept, after so many (`before`) that were; `breaks` gets the places after breaks."""
        kept: list[int] = []
        for k, t in enumerate(stamps):
            step = t - self.last
            kind = ""
            if self.last != self.last:
                self._fresh = True
            elif abs(step) <= self._same:
                kind = "duplicate"
            elif -LATE_S <= step < 0.0 and not self._fresh:
                kind = "late"
            elif step < 0.0 or step > _FAR_S:
                kind = "jump"
            elif step > self._limit:
                kind = "gap"
            if kind:
                at, by = (self.last if kind == "gap" else t), (step if kind == "jump" else abs(step))
                self.tally.count(kind, _SEEN_AS[kind].format(at, by))
            if kind in ("duplicate", "late"):
                continue
            if self._fresh or kind:
                breaks.append(before + len(kept))
            if kind in ("", "gap") and self.last == self.last:
                self._steps.append(step)
            self._fresh, self.last = False, t
            kept.append(k)
        return kept

    def _know_period(self) -> None:
        self.period = median(self._steps)
        self._steps.clear()
        self._limit = self.gap_s or max(_FEW * self.period, min(_MANY * self.period, _LONG_S))
        self._same = _SAME * self.period

    def state(self) -> PartState:
        """All that decides about the next sample."""
        numbers = np.array([self.period, self.last, self._limit, self._same, float(self._fresh)])
        return {"clock": numbers, "steps": np.array(self._steps), "held": self._held}

    def restore(self, state: PartState) -> None:
        """Go on from a `state`."""
        period, last, limit, same, fresh = state["clock"].tolist()
        held = np.array(state["held"], dtype=float)
        if not (period >= 0.0 and limit > 0.0 and same >= 0.0 and np.all(np.abs(held) <= self.bounds)):
            raise SteelyardError("the state of the clock is damaged.")
        self.period, self.last, self._limit, self._same = period, last, limit, same
        self._fresh, self._steps, self._held = bool(fresh), state["steps"].tolist(), held
