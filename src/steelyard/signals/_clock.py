"""`repair_clock`: makes one increasing clock of the time stamps of a log, and reports their faults."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError
from steelyard.ground.arrays import Array, frozen
from steelyard.signals.log import Finding, Severity

# Share of backward steps above which a file is shuffled: there it is one half; late rows and clock resets are rare.
SHUFFLED = 0.2
# A hole wider than this many periods can contain a late row.
HOLE = 1.5
# Rows to examine after and before a backward step.
AFTER, BEFORE = 64, 512


def find_sessions(t: Array) -> list[tuple[int, int]]:
    """Split the rows of time stamps `t` [s] into half-open ranges, one per run of the clock, to be sorted within.

    A backward step is a reset of the clock if the rows after it repeat times that were already sampled, or end well
    before these. Rows that fill a hole are late. A file with one regular clock after sorting is a single session.
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
    # A step that occurs: where two runs overlap in half of the file, the mean of the middle steps is none of theirs.
    period = float(np.sort(ordered)[len(ordered) // 2])
    # Two runs that interleave by chance look regular at twice the rate, and no step in the file is that short. Where
    # neighbours are exchanged, at least each third step in the file is one period, forward or back.
    interleaved = float(np.quantile(np.abs(steps), 0.25)) > HOLE * period
    return bool(ordered.min() > 0.6 * period and ordered.max() < 1.4 * period and not interleaved)


def _is_reset(t: Array, highest: Array, start: int, row: int, end: int, period: float) -> bool:
    run = t[row:end]
    first = start + int(np.searchsorted(highest[start:row], run[0] - 2.0 * HOLE * period))
    # One more row is needed for the beginning of a hole that the run may fill.
    past = np.sort(t[max(start, first - 1) : min(row, first + BEFORE)])
    again = run[:AFTER]
    again = again[(again >= past[0]) & (again <= past[-1])]
    if len(again) == 0:  # the run begins before this session
        ahead = run[run < past[0]]
        return bool(len(ahead) > 0 and past[0] - ahead[-1] > HOLE * period)
    after = np.clip(np.searchsorted(past, again), 1, len(past) - 1)
    sampled = (past[after] - past[after - 1] <= HOLE * period) | (past[after] == again) | (past[after - 1] == again)
    return bool(sampled.sum() >= 2 and sampled.mean() > 0.5)


Rows = NDArray[np.intp]
RowNumbers = range | Rows  # numbers in the file, from 1, of the rows that were read

# Least number of samples of a log or segment; shorter ones do not allow derivatives.
FEWEST = 10
# Stamps closer than this fraction of a period are equal up to rounding.
SAME_INSTANT = 1e-3
# A step is a gap if it is longer than FEW periods and also longer than MANY periods or LONG seconds. So one or two lost
# packets are always bridged, and a motion of the robot never is.
FEW, MANY, LONG = 4.0, 10.0, 0.05
# Variation of the period (root mean square, relative) below which it is not reported.
STEADY = 0.01


@dataclass(frozen=True)
class Jitter:
    """Statistics of a clock's steps within its segments [s]."""

    median: float
    mean: float
    std: float
    shortest: float
    longest: float


@dataclass(frozen=True, eq=False)
class Clock:
    """The repaired clock of a log.

    Attributes:
        order: Row of the file (from 0) of each sample.
        t: Times of the samples [s]: those of the file, shifted after a reset so that they continue after a gap.
        dropped: Rows that are left out.
        segments: Consecutive half-open ranges of samples; nothing may be interpolated across their borders.
        period: Median step, the nominal period [s].
        jitter: Statistics of the steps.
        findings: Faults of the time stamps.
    """

    order: Rows
    t: Array
    dropped: Rows
    segments: tuple[tuple[int, int], ...]
    period: float
    jitter: Jitter
    findings: tuple[Finding, ...]


def repair_clock(t: Array, *, numbers: RowNumbers | int = 1, gap: float | None = None, part: str = "") -> Clock:
    """Make one clock of the time stamps of a file's rows.

    Rows out of order are sorted; rows with equal times are dropped. A new segment begins after a gap, and where the
    clock was reset and repeats earlier times. Segments of fewer than ten samples are dropped. The findings report it.

    Args:
        t: Time stamps [s].
        numbers: Row numbers in the file, from 1, or that of the first row.
        gap: Longest step that is not a gap [s]; default: 4 periods and also 10 periods or 50 ms.
        part: Name of the parts whose clocks begin anew on purpose, such as "episode"; "": a reset is a fault.
    """
    t = np.asarray(t, dtype=np.float64)
    numbered = range(numbers, numbers + len(t)) if isinstance(numbers, int) else numbers
    _check(t, numbered)
    findings: list[Finding] = []
    sessions = find_sessions(t)
    orders = [start + np.argsort(t[start:stop], kind="stable") for start, stop in sessions]
    _find_disorder(t, sessions, numbered, findings, part)
    orders = _without_duplicates(t, orders, numbered, findings)
    limit = gap_limit(np.concatenate([np.diff(t[order]) for order in orders])) if gap is None else gap
    pieces, times = _split(t, orders, limit, numbered, findings)
    pieces, times = _long_enough(pieces, times, numbered, findings)
    steps = np.concatenate([np.diff(x) for x in times])
    jitter = Jitter(*(float(f(steps)) for f in (np.median, np.mean, np.std, np.min, np.max)))
    _find_jitter(jitter, steps, findings)
    order = np.concatenate(pieces)
    used = np.zeros(len(t), dtype=bool)
    used[order] = True
    edges = np.cumsum([0, *(len(piece) for piece in pieces)])
    segments = tuple((int(a), int(b)) for a, b in itertools.pairwise(edges))
    return Clock(
        order, frozen(np.concatenate(times)), np.flatnonzero(~used), segments, jitter.median, jitter, tuple(findings)
    )


def _check(t: Array, numbered: RowNumbers) -> None:
    if len(t) < FEWEST:
        raise LogError(f"there are only {len(t)} samples; a log needs at least {FEWEST}, preferably thousands.")
    finite = np.isfinite(t)
    if not finite.all():
        raise LogError(f"the time is not a finite number in row {numbered[int(np.argmin(finite))]}.")
    if np.all(t == t[0]):
        raise LogError(f"the time never changes (always {t[0]:g} s); name another column as time, or give its rate.")


def _find_disorder(
    t: Array, sessions: list[tuple[int, int]], numbered: RowNumbers, findings: list[Finding], part: str
) -> None:
    late = [start + 1 + np.flatnonzero(_behind(t[start:stop])) for start, stop in sessions]
    rows = np.concatenate(late)
    if len(rows):
        row = int(numbered[int(rows[0])])
        findings.append(
            Finding(
                "out_of_order",
                "note",
                f"{len(rows)} rows are out of order, the first is row {row}; sorted.",
                count=len(rows),
                row=row,
            )
        )
    if len(sessions) > 1 and part:
        message = f"{len(sessions)} {part}s, each with its own clock; nothing is interpolated between them."
        findings.append(Finding("parts", "ok", message, count=len(sessions)))
    elif len(sessions) > 1:
        (begin, end), (start, _) = sessions[:2]
        row, count = int(numbered[start]), len(sessions) - 1
        times = "once" if count == 1 else f"{count} times"
        message = (
            f"The clock jumps back {times}, first in row {row} by {float(t[begin:end].max() - t[start]):g} s; a new "
            f"segment begins there."
        )
        findings.append(Finding("reset", "warning", message, count=count, row=row))


def _behind(t: Array) -> NDArray[np.bool_]:
    behind: NDArray[np.bool_] = t[1:] < np.maximum.accumulate(t)[:-1]
    return behind


def _without_duplicates(t: Array, orders: list[Rows], numbered: RowNumbers, findings: list[Finding]) -> list[Rows]:
    steps = np.concatenate([np.diff(t[order]) for order in orders])
    nearest = SAME_INSTANT * float(np.median(steps[steps > 0.0])) if np.any(steps > 0.0) else 0.0
    unique, count, first = [], 0, len(t)
    for order in orders:
        double = np.append(False, np.diff(t[order]) <= nearest)
        if double.any():
            count += int(double.sum())
            first = min(first, int(order[double].min()))
        unique.append(order[~double])
    if count:
        row = int(numbered[first])
        message = f"{count} rows repeat the time of another, the first is row {row}; the first of each is kept."
        severity: Severity = "warning" if count > 0.01 * len(t) else "note"
        findings.append(Finding("duplicate", severity, message, count=count, row=row))
    return unique


def gap_limit(steps: Array) -> float:
    """Return the longest of a clock's `steps` [s] that is not a gap."""
    if len(steps) == 0:
        return np.inf
    median = float(np.median(steps))
    # Stamps that come in bursts have a short median; the mean of all but the longest steps is then the period. Where
    # there are many gaps that mean is too long, but LONG bounds what it can do.
    ordinary = np.sort(steps)[: max(1, int(0.99 * len(steps)))]
    return max(FEW * median, min(MANY * max(median, float(ordinary.mean())), LONG))


def _split(
    t: Array, orders: list[Rows], limit: float, numbered: RowNumbers, findings: list[Finding]
) -> tuple[list[Rows], list[Array]]:
    """Cut rows and times at gaps; shift later sessions behind earlier ones by more than a gap."""
    pieces: list[Rows] = []
    times: list[Array] = []
    gaps: list[tuple[int, float]] = []
    end = -np.inf
    for order in orders:
        shift = max(0.0, end + 2.0 * limit - float(t[order[0]])) if np.isfinite(end) else 0.0
        stamps = t[order] + shift
        end = float(stamps[-1])
        steps = np.diff(stamps)
        cuts = np.flatnonzero(steps > limit) + 1
        gaps += [(int(order[cut]), float(steps[cut - 1])) for cut in cuts]
        pieces += np.split(order, cuts)
        times += np.split(stamps, cuts)
    if gaps:
        row = int(numbered[gaps[0][0]])
        longest = max(length for _, length in gaps)
        many = "1 gap" if len(gaps) == 1 else f"{len(gaps)} gaps"
        message = (
            f"{many} of more than {limit:.3g} s, the longest {longest:g} s, the first before row {row}; not bridged."
        )
        findings.append(Finding("gap", "warning", message, count=len(gaps), row=row))
    return pieces, times


def _long_enough(
    pieces: list[Rows], times: list[Array], numbered: RowNumbers, findings: list[Finding]
) -> tuple[list[Rows], list[Array]]:
    short = [piece for piece in pieces if len(piece) < FEWEST]
    if len(short) == len(pieces):
        raise LogError(
            f"the clock has breaks after fewer than {FEWEST} samples everywhere; name another column as time, "
            f"give its unit or rate, or allow longer gaps with time = {{gap = seconds}}."
        )
    if short:
        rows = np.concatenate(short)
        row = int(numbered[int(rows.min())])
        message = f"{len(rows)} rows are isolated between breaks of the clock, the first is row {row}; left out."
        findings.append(Finding("isolated", "warning", message, count=len(rows), row=row))
    long = [k for k, piece in enumerate(pieces) if len(piece) >= FEWEST]
    return [pieces[k] for k in long], [times[k] for k in long]


def _find_jitter(jitter: Jitter, steps: Array, findings: list[Finding]) -> None:
    if jitter.std <= STEADY * jitter.median:
        return
    lost = int(np.count_nonzero(steps > 1.5 * jitter.median))
    message = (
        f"The period varies: {1e3 * jitter.mean:.4g} ms on average, {1e3 * jitter.shortest:.4g} to "
        f"{1e3 * jitter.longest:.4g} ms; {lost} steps are longer than one and a half periods."
    )
    findings.append(Finding("jitter", "note", message, count=lost))
