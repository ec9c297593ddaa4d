"""Average a periodic motion over its periods: noise falls with the square root of their number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log


def average_periods(log: Log, period: float) -> Log:
    """One mean period of the motion, from all whole periods of the log's gap-free pieces.

    Pieces are aligned by time modulo the period, which must be known well: an error of it adds up from one to the next.
    """
    if not (np.isfinite(period) and period > 0.0):
        raise LogError(f"A period of {period:g} s cannot be averaged over; give a positive time.")
    step = float(np.median(np.diff(log.t)))
    count = round(period / step)
    if count < 16:
        raise LogError(f"A period of {period:g} s has only {count} samples; averaging needs at least 16.")
    phase = period / count * np.arange(count)
    sums: dict[str, Array] = {}
    found = 0
    for start, stop in log.segments or ((0, len(log)),):
        t = log.t[start:stop] - log.t[0]
        first = int(np.ceil(t[0] / period - 1e-9))
        for k in range(first, int(np.floor(t[-1] / period + 1e-9))):
            clock = k * period + phase
            for name, x in log.signals.items():
                if x is not None:
                    part = np.column_stack([np.interp(clock, t, column) for column in x[start:stop].T])
                    sums[name] = sums.get(name, np.zeros_like(part)) + part
            found += 1
    if found == 0:
        raise LogError(f"The log holds no whole period of {period:g} s; it lasts {log.t[-1] - log.t[0]:g} s.")
    means = {name: total / found for name, total in sums.items()}
    meta = {**log.meta, "periods_averaged": found}
    return replace(log, t=log.t[0] + phase, meta=meta, segments=(), channels={}, **means)  # type: ignore[arg-type]
