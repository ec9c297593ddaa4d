"""`LogPiece`: a gap-free piece of a log on a uniform clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.log import Log


@dataclass(frozen=True, eq=False)
class LogPiece:
    """A gap-free piece of a log on a uniform clock.

    Attributes:
        t: Times [s].
        q, dq, tau: Signals of the joints; None: not measured.
        channels: Signals of base, passive joints and contacts by name.
        period: Time between samples [s].
    """

    t: Array
    q: Array
    dq: Array | None
    tau: Array | None
    channels: dict[str, Array]
    period: float

    @classmethod
    def of(cls, log: Log, start: int, stop: int) -> LogPiece | None:
        """Return a part of a log, resampled if the clock jitters; None if it has too few samples.

        Args:
            log: Log.
            start: First sample.
            stop: Sample after the last one.
        """
        t = log.t[start:stop]
        if len(t) < 3:
            return None
        period = float(np.median(np.diff(t)))
        clock = t[0] + period * np.arange(int(np.floor((t[-1] - t[0]) / period + 1e-6)) + 1)
        same = len(clock) == len(t) and float(np.max(np.abs(clock - t))) < 1e-3 * period

        def at(x: Array | None) -> Array | None:
            if x is None or same:
                return None if x is None else x[start:stop]
            return np.column_stack([np.interp(clock, t, c) for c in x[start:stop].T]).reshape(len(clock), x.shape[1])

        channels = {name: np.asarray(at(x)) for name, x in log.channels.items()}
        for name in channels:
            if name.endswith(".orientation") and not same:
                channels[name] = _nearest(log.channels[name][start:stop], t, clock)
        return cls(clock, np.asarray(at(log.q)), at(log.dq), at(log.tau), channels, period)


def _nearest(x: Array, t: Array, clock: Array) -> Array:
    """Resample quaternions between neighbours of one sign."""
    flips = np.concatenate([[1.0], np.where(np.sum(x[1:] * x[:-1], axis=1) < 0.0, -1.0, 1.0)])
    whole = x * np.cumprod(flips)[:, None]
    made = np.column_stack([np.interp(clock, t, c) for c in whole.T])
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))
