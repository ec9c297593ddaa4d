"""The parts of a log in which something moves."""

from __future__ import annotations

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

# A joint stands still below this part of its own top speed; stand-stills shorter than `SHORTEST` seconds are reversals.
_SLOW = 0.01
SHORTEST = 0.5


def moving_ranges(log: Log, shortest: float = SHORTEST) -> list[tuple[int, int]]:
    """Index ranges without the times at which every joint stands still for at least `shortest` seconds.

    While nothing moves, static friction holds whatever torque the controller gives, so that such samples say nothing
    about the load on a joint and mislead a model whose friction is zero at zero speed.
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
        raise LogError(f"{log.meta.get('source', 'The log')}: nothing moves in it.")
    return out


def _still(log: Log, start: int, stop: int) -> Array:
    if log.dq is not None:
        speed = np.abs(log.dq[start:stop])
    else:
        speed = np.abs(np.gradient(log.q[start:stop], log.t[start:stop], axis=0))
    top = np.quantile(speed, 0.99, axis=0)
    return np.asarray(np.all(speed <= np.maximum(_SLOW * top, 1e-9), axis=1))
