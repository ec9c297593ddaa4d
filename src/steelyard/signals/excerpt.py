"""Extracts parts of a log: samples, motion, the mean period of a periodic motion; gives it equal time steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of
from steelyard.signals.standing import STANDING_SHARE

# Standstills shorter than this are reversals [s].
SHORTEST = 0.5


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join consecutive index ranges without a gap between them.

    Args:
        ranges: Half-open ranges of samples, in order.
    """
    out: list[tuple[int, int]] = []
    for first, last in ranges:
        if out and out[-1][1] == first:
            out[-1] = (out[-1][0], last)
        else:
            out.append((first, last))
    return out


def part_of(log: Log, ranges: list[tuple[int, int]]) -> Log | None:
    """Extract ranges of samples as a new log, with each range as a separate segment; None if they are empty.

    Args:
        log: Log.
        ranges: Half-open ranges of samples.
    """
    pieces: list[tuple[int, int]] = []
    for start, stop in ranges:
        for a, b in log.segments or ((0, len(log)),):
            low, high = max(start, a), min(stop, b)
            if high - low > 1:
                pieces.append((low, high))
    if not pieces:
        return None
    index = np.concatenate([np.arange(a, b) for a, b in pieces])
    ends = np.cumsum([b - a for a, b in pieces])
    starts = np.concatenate([[0], ends[:-1]])
    signals: dict[str, Any] = {name: None if x is None else x[index] for name, x in log.signals.items()}
    meta = dict(log.meta)
    if len(ranges) == 1 and "rows" in meta:
        first, last = meta.pop("rows")
        if last - first + 1 == len(log):  # without omitted rows, samples are rows
            meta["rows"] = [first + int(index[0]), first + int(index[-1])]
    segments = tuple((int(a), int(b)) for a, b in zip(starts, ends, strict=True))
    channels = {name: x[index] for name, x in log.channels.items()}
    return replace(log, t=log.t[index], **signals, meta=meta, segments=segments, channels=channels)


def moving_ranges(log: Log, shortest: float = SHORTEST) -> list[tuple[int, int]]:
    """Find the index ranges of a log outside of standstills of all joints.

    At standstill static friction balances any torque of the controller. Such samples have no information about the load
    on a joint, and mislead a model whose friction is zero at zero speed.

    Args:
        log: Log.
        shortest: Least duration of a standstill [s].
    """
    out: list[tuple[int, int]] = []
    for start, stop in segments_of(log):
        still = _still(log, start, stop)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
        cut = start
        for a, b in zip(edges[::2] + start, edges[1::2] + start, strict=True):
            if log.t[min(b, stop - 1)] - log.t[a] >= shortest:
                if a > cut:
                    out.append((cut, int(a)))
                cut = int(b)
        if cut < stop:
            out.append((cut, stop))
    if not out:
        raise LogError(f"{log.meta.get('source', 'The log')}: no joint moves in it.")
    return out


def _still(log: Log, start: int, stop: int) -> Array:
    if log.dq is not None:
        speed = np.abs(log.dq[start:stop])
    else:
        speed = np.abs(np.gradient(log.q[start:stop], log.t[start:stop], axis=0))
    top = np.quantile(speed, 0.99, axis=0)
    return np.asarray(np.all(speed <= np.maximum(STANDING_SHARE * top, 1e-9), axis=1))


def average_periods(log: Log, period: float) -> Log:
    """Average all whole periods of a periodic motion; noise falls with the square root of their number.

    Pieces are aligned by time modulo the period, so errors of the period accumulate.

    Args:
        log: Log.
        period: Period of the motion [s].
    """
    Field(period, "period", error=LogError).positive()
    if period > log.t[-1] - log.t[0]:
        raise LogError(f"The log of {log.t[-1] - log.t[0]:g} s is shorter than a period of {period:g} s.")
    step = float(np.median(np.diff(log.t)))
    count = round(period / step)
    if count < 16:
        raise LogError(f"A period of {period:g} s has only {count} samples; averaging needs at least 16.")
    phase = period / count * np.arange(count)
    sums: dict[str, Array] = {}
    periods = 0
    for start, stop in log.segments or ((0, len(log)),):
        t = log.t[start:stop] - log.t[0]
        first = int(np.ceil(t[0] / period - 1e-9))
        for k in range(first, int(np.floor(t[-1] / period + 1e-9))):
            clock = k * period + phase
            for name, x in log.signals.items():
                if x is not None:
                    part = np.column_stack([np.interp(clock, t, column) for column in x[start:stop].T])
                    sums[name] = sums.get(name, np.zeros_like(part)) + part
            periods += 1
    if periods == 0:
        raise LogError(f"The log does not contain a whole period of {period:g} s; it lasts {log.t[-1] - log.t[0]:g} s.")
    means = {name: total / periods for name, total in sums.items()}
    meta = {**log.meta, "periods_averaged": periods}
    return replace(log, t=log.t[0] + phase, meta=meta, segments=(), channels={}, **means)  # type: ignore[arg-type]


def on_even_clock(log: Log) -> Log:
    """Resample a `log` with equal time steps and add velocities, by differentiation if none were measured."""
    clock = np.linspace(log.t[0], log.t[-1], len(log))
    speed = np.gradient(log.q, log.t, axis=0) if log.dq is None else log.dq

    def resampled(x: Array | None) -> Array | None:
        return None if x is None else np.column_stack([np.interp(clock, log.t, column) for column in x.T])

    q, dq, tau = resampled(log.q), resampled(speed), resampled(log.tau)
    return replace(log, t=clock, q=q, dq=dq, ddq=None, tau=tau, channels={}, segments=())  # type: ignore[arg-type]
