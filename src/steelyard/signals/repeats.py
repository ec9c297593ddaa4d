"""Removes repeated rows: a logger samples faster than the robot answers, or has stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.ground.numbers import percent
from steelyard.signals._clock import gap_limit
from steelyard.signals.log import Finding, Log, Severity

_Flags = NDArray[np.bool_]
# Least share of repeated values of a signal that is sampled more slowly; coarse signals repeat values less often.
_HELD = 0.4
# After a stop of the logger the robot has moved further than this fraction of its fastest step; a robot that starts
# from rest has not.
_JUMP = 0.2
# Median change of a coarsely quantised signal, in ticks.
_COARSE = 4.0
# Share of repeated rows above which the time stamps of the other rows are uncertain as well.
_MANY = 0.1
_WORDS = {"q": "position", "dq": "velocity", "ddq": "acceleration", "tau": "torque"}


def without_repeats(log: Log) -> Log:
    """Remove rows of `log` that repeat all signals of the previous row, and interpolate single repeated signals.

    A logger that reads faster than the robot answers, or two beating clocks, repeat values, which are only valid at
    their first time. Repeated rows are dropped. Positions and velocities that are updated less often than the other
    signals are interpolated linearly; torques that are held are only reported, since drives may hold them. Repetition
    for longer than a gap of the clock is either a standing robot in a log without noise (nothing is dropped), or, if
    the robot has moved afterwards, a logger that has stopped (the log is cut there). `findings` report it.
    """
    result = _find_repeats(log, list(_present(log)))
    if result is not None:
        drop, dead = result
        if drop.any():
            log = _without_rows(log, drop, dead)
    return _interpolate_slow(log)


def _present(log: Log) -> dict[str, Array]:
    return {name: x for name, x in log.signals.items() if x is not None}


def _repeated(log: Log, names: list[str]) -> _Flags:
    """Return the rows whose named signals all equal those of the previous row, in the same segment."""
    signals = _present(log)
    rows = np.arange(1, len(log))
    for name in names:
        for column in signals[name].T:
            # For most logs one column is sufficient.
            rows = rows[column[rows] == column[rows - 1]]
    for x in log.channels.values() if len(names) == len(signals) else ():
        other = x.reshape(len(log), -1)
        rows = rows[np.all(other[rows] == other[rows - 1], axis=1)]
    repeated = np.zeros(len(log), dtype=bool)
    repeated[rows] = True
    repeated[[start for start, _ in log.segments]] = False
    return repeated


def _find_repeats(log: Log, names: list[str]) -> tuple[_Flags, list[int]] | None:
    """Return rows to drop, and rows that follow a stop of the logger; None without repeated rows."""
    repeated = _repeated(log, names)
    if not repeated.any():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[False], repeated, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]  # rows begins … ends − 1 repeat row begins − 1
    fresh = np.flatnonzero(~repeated)
    if len(fresh) < 3:
        return None  # the signals are constant, so they do not show a clock
    steps = np.diff(log.t[fresh])
    inner = ~np.isin(fresh[1:], [start for start, _ in log.segments])
    limit = gap_limit(steps[inner])
    last = np.isin(ends, [stop for _, stop in log.segments])  # repeated up to the end, without a next row
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


def _without_rows(log: Log, drop: _Flags, dead: list[int]) -> Log:
    before = np.concatenate([[0], np.cumsum(~drop)])  # number of remaining rows before each row
    cuts = sorted({int(before[row]) for row in (*(start for start, _ in log.segments), *dead)} | {0})
    stops = [*cuts[1:], int(before[-1])]
    count = int(drop.sum())
    row = int(log.meta.get("rows", [1])[0]) + int(np.argmax(drop))
    share = 100.0 * count / len(log)
    message = f"{count} rows ({percent(share)}) repeat the previous row in every signal; left out."
    severity: Severity = "note"
    if count > _MANY * len(log):
        severity, message = "warning", f"{message[:-1]}, but the age of the values in other rows is unknown."
    findings = [Finding("repeated", severity, message, "Log each answer of the robot once.", count=count, row=row)]
    if dead:
        times = "once" if len(dead) == 1 else f"{len(dead)} times"
        message = f"The log stops {times} while the robot moves, first until {log.t[dead[0]]:.4g} s; cut there."
        findings.append(Finding("frozen", "warning", message, "Find out why the logger stops.", count=len(dead)))
    used = ~drop
    signals = {name: None if x is None else x[used] for name, x in log.signals.items()}
    meta = dict(log.meta)
    if "core" in meta:
        meta["core"] = [int(before[row]) for row in meta["core"]]
    return replace(
        log,
        t=log.t[used],
        **signals,  # type: ignore[arg-type]
        meta=meta,
        segments=tuple(zip(cuts, stops, strict=True)),
        findings=(*log.findings, *findings),
        channels={name: x[used] for name, x in log.channels.items()},
    )


def _interpolate_slow(log: Log) -> Log:
    """Interpolate signals that are updated in every second row or less often."""
    changed: dict[str, Array] = {}
    findings = []
    for name, x in _present(log).items():
        result = _find_repeats(log, [name])
        if result is None or np.mean(result[0]) < _HELD or _is_coarse(x[~result[0]]):
            continue
        drop = result[0]
        message = f"The {_WORDS[name]} is only updated in one of {len(log) / np.count_nonzero(~drop):.2g} rows"
        if name != "tau":
            changed[name] = out = x.copy()
            for own in (slice(*ends) for ends in log.segments):
                t, new = log.t[own], ~drop[own]
                for column in range(x.shape[1]):
                    out[own, column] = np.interp(t, t[new], x[own, column][new])
            message += "; interpolated linearly between these"
        findings.append(Finding("held", "note", f"{message}.", "Log all signals equally often.", count=int(drop.sum())))
    return replace(log, **changed, findings=(*log.findings, *findings)) if findings else log  # type: ignore[arg-type]


def _is_coarse(x: Array) -> bool:
    """Whether a signal repeats values because of coarse quantisation: its changes are one or two ticks."""
    steps = [np.abs(np.diff(column)) for column in x.T]
    steps = [s[s > 0.0] for s in steps]
    return all(len(s) == 0 or np.median(s) < _COARSE * s.min() for s in steps)
