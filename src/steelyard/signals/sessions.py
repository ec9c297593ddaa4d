"""`find_sessions`: tell a clock that was set back from rows that merely come late."""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array

# In a shuffled file every second step goes back; where rows come late now and then, or a clock was set back, few do.
SHUFFLED = 0.2
# In a hole wider than this many periods there is room for a row that comes late.
HOLE = 1.5
# How many rows after a step back, and how many before it, are looked at.
AFTER, BEFORE = 64, 512


def find_sessions(t: Array) -> list[tuple[int, int]]:
    """Ranges of rows (half-open) whose stamps belong to one run of the clock each; rows may be sorted within them.

    A step back is a reset if the rows after it run through times that rows before it had already sampled, or end
    well before these began. If instead they fill a hole, they come late. A file whose rows make one regular clock
    when sorted is a single session, in whatever order they come.
    """
    steps = np.diff(t)
    back = np.flatnonzero(steps < 0.0) + 1
    if len(back) == 0 or len(back) > SHUFFLED * len(t) or _regular_when_sorted(t, steps):
        return [(0, len(t))]
    period = float(np.median(steps[steps > 0.0]))
    highest = np.empty_like(t)  # the latest time so far, within the session
    starts, done = [0], 0
    ends = [*(int(row) for row in back[1:]), len(t)]
    for row, end in zip((int(row) for row in back), ends, strict=True):
        start = starts[-1]
        before = highest[done - 1] if done > start else -np.inf
        highest[done:row] = np.maximum(np.maximum.accumulate(t[done:row]), before)
        done = row
        if _is_reset(t, highest, start, row, end, period):
            starts.append(row)
    return list(zip(starts, [*starts[1:], len(t)], strict=True))


def _regular_when_sorted(t: Array, steps: Array) -> bool:
    ordered = np.diff(np.sort(t))
    if ordered[0] <= 0.0 and not np.any(ordered > 0.0):
        return False
    period = float(np.median(ordered))
    # Two runs that interleave by chance look regular at twice the rate; the steps in the file tell.
    interleaved = float(np.median(steps[steps > 0.0])) > HOLE * period if np.any(steps > 0.0) else False
    return bool(ordered.min() > 0.6 * period and ordered.max() < 1.4 * period and not interleaved)


def _is_reset(t: Array, highest: Array, start: int, row: int, end: int, period: float) -> bool:
    run = t[row:end]
    first = start + int(np.searchsorted(highest[start:row], run[0] - 2.0 * HOLE * period))
    # One row more, or the hole that the run may fill would have no beginning.
    past = np.sort(t[max(start, first - 1) : min(row, first + BEFORE)])
    again = run[:AFTER]
    again = again[(again >= past[0]) & (again <= past[-1])]
    if len(again) == 0:  # all of the run's beginning lies before this session
        ahead = run[run < past[0]]
        return bool(len(ahead) > 0 and past[0] - ahead[-1] > HOLE * period)
    after = np.clip(np.searchsorted(past, again), 1, len(past) - 1)
    sampled = (past[after] - past[after - 1] <= HOLE * period) | (past[after] == again) | (past[after - 1] == again)
    return bool(sampled.sum() >= 2 and sampled.mean() > 0.5)
