"""Rows that repeat the row before: a logger that asked more often than the robot answered, or one that had stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent
from steelyard.signals._clock import gap_limit
from steelyard.signals.log import Finding, Log, Severity

_Flags = NDArray[np.bool_]
# A signal that in fewer rows than this part of them keeps its value is not one that was sampled more slowly: a
# coarse one repeats itself now and then.
_HELD = 0.4
# While a logger has stopped a robot goes further than this part of what it does in a row at its fastest; the first
# step of one that stood is far less.
_JUMP = 0.2
# In a signal of coarse ticks most changes are fewer ticks than this.
_COARSE = 4.0
# Beyond this part of the rows it is how the logger works: values then stand under stamps that are not theirs.
_MANY = 0.1
_WORDS = {"q": "position", "dq": "velocity", "ddq": "acceleration", "tau": "torque"}


def without_repeats(log: Log) -> Log:
    """`log` without rows all of whose signals repeat the row before, and with single held signals interpolated.

    Where a logger reads faster than the robot answers, or two clocks beat, a value stands for longer than it was true.
    It belongs to the time at which it was first seen; the rows that repeat it are dropped, and positions or velocities
    that are renewed less often than the rest are drawn straight between the rows in which they are. A torque that is
    held is told only: that of a drive may well be. What is held for longer than a gap of
    the clock may last (judged by the rows that are new) is another matter: a robot that stands, in a log without noise,
    and nothing is dropped; or, where it has moved on when the next row comes, a logger that had stopped, and the log is
    cut there. `findings` tell. A log without such rows is returned as it is.
    """
    found = _holds(log, list(_present(log)))
    if found is not None:
        drop, dead = found
        if drop.any():
            log = _dropped(log, drop, dead)
    return _renewed(log)


def _present(log: Log) -> dict[str, Array]:
    return {name: x for name, x in log.signals.items() if x is not None}


def _held(log: Log, names: list[str]) -> _Flags:
    """Whether all named signals of a row are those of the row before, in the same segment."""
    signals = _present(log)
    rows = np.arange(1, len(log))
    for name in names:
        for column in signals[name].T:
            # Most logs are through after a look at one column.
            rows = rows[column[rows] == column[rows - 1]]
    for x in log.channels.values() if len(names) == len(signals) else ():
        other = x.reshape(len(log), -1)
        rows = rows[np.all(other[rows] == other[rows - 1], axis=1)]
    held = np.zeros(len(log), dtype=bool)
    held[rows] = True
    held[[start for start, _ in log.segments]] = False
    return held


def _holds(log: Log, names: list[str]) -> tuple[_Flags, list[int]] | None:
    """Which rows are to go, and before which rows that stay the log is broken; None where no row repeats another."""
    held = _held(log, names)
    if not held.any():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], held, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]  # rows begins … ends − 1 repeat row begins − 1
    fresh = np.flatnonzero(~held)
    if len(fresh) < 3:
        return None  # nothing ever changes: whether it was logged or stood, there is no clock in it
    steps = np.diff(log.t[fresh])
    inner = ~np.isin(fresh[1:], [start for start, _ in log.segments])
    limit = gap_limit(steps[inner])
    last = np.isin(ends, [stop for _, stop in log.segments])  # held up to the end: there is no next row
    until = np.where(last, ends - 1, np.minimum(ends, len(log) - 1))
    short = log.t[until] - log.t[begins - 1] <= limit
    moved = np.abs(log.q[until] - log.q[begins - 1])
    usual = np.abs(np.diff(log.q[fresh], axis=0))[inner & (steps <= limit)]
    jump = _JUMP * np.quantile(usual, 0.999, axis=0) if len(usual) else np.inf
    dead = ~short & ~last & np.any(moved > jump, axis=1)
    drop = np.zeros(len(log), dtype=bool)
    for begin, end in zip(begins[short | dead], ends[short | dead], strict=True):
        drop[begin:end] = True
    return drop, [int(end) for end in ends[dead]]


def _dropped(log: Log, drop: _Flags, dead: list[int]) -> Log:
    before = np.concatenate([[0], np.cumsum(~drop)])  # of each row, how many stay before it
    cuts = sorted({int(before[row]) for row in (*(start for start, _ in log.segments), *dead)} | {0})
    stops = [*cuts[1:], int(before[-1])]
    count = int(drop.sum())
    row = int(log.meta.get("rows", [1])[0]) + int(np.argmax(drop))
    share = 100.0 * count / len(log)
    message = f"{count} rows ({percent(share)}) repeat the row before in every signal; left out."
    severity: Severity = "note"
    if count > _MANY * len(log):
        severity, message = "warning", f"{message[:-1]}, but how old the values of the others are nobody knows."
    findings = [Finding("repeated", severity, message, "Log each of the robot's answers once.", count=count, row=row)]
    if dead:
        times = "once" if len(dead) == 1 else f"{len(dead)} times"
        message = f"The log stops {times} while the robot moves on, first until {log.t[dead[0]]:.4g} s; cut there."
        findings.append(Finding("frozen", "warning", message, "Find out why the logger stops.", count=len(dead)))
    kept = ~drop
    signals = {name: None if x is None else x[kept] for name, x in log.signals.items()}
    meta = dict(log.meta)
    if "core" in meta:
        meta["core"] = [int(before[row]) for row in meta["core"]]
    return replace(
        log,
        t=log.t[kept],
        **signals,  # type: ignore[arg-type]
        meta=meta,
        segments=tuple(zip(cuts, stops, strict=True)),
        findings=(*log.findings, *findings),
        channels={name: x[kept] for name, x in log.channels.items()},
    )


def _renewed(log: Log) -> Log:
    """Signals that are renewed in every second row or less often, between the rows in which they are."""
    changed: dict[str, Array] = {}
    findings = []
    for name, x in _present(log).items():
        found = _holds(log, [name])
        if found is None or np.mean(found[0]) < _HELD or _ticks(x[~found[0]]):
            continue
        drop = found[0]
        message = f"The {_WORDS[name]} is new in one of {len(log) / np.count_nonzero(~drop):.2g} rows only"
        if name != "tau":
            changed[name] = out = x.copy()
            for own in (slice(*ends) for ends in log.segments):
                t, new = log.t[own], ~drop[own]
                for column in range(x.shape[1]):
                    out[own, column] = np.interp(t, t[new], x[own, column][new])
            message += "; drawn straight between them"
        findings.append(Finding("held", "note", f"{message}.", "Log all signals equally often.", count=int(drop.sum())))
    return replace(log, **changed, findings=(*log.findings, *findings)) if findings else log  # type: ignore[arg-type]


def _ticks(x: Array) -> bool:
    """Whether a signal keeps its value because it is coarse: its changes are then a tick or two, all alike."""
    steps = [np.abs(np.diff(column)) for column in x.T]
    steps = [s[s > 0.0] for s in steps]
    return all(len(s) == 0 or np.median(s) < _COARSE * s.min() for s in steps)
