"""Where a joint stands: its friction is then whatever holds it, a set and not a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array, placed_like
from steelyard.signals.filters import LowPass

# A joint stands below this part of its own top speed.
STANDING_SHARE = 0.01


def standing(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Where each joint stands: friction is then whatever holds it, a set and not a number.

    That is where its speed cannot be told from zero (three standard deviations of its noise) or is less than a
    hundredth of its top speed, for longer than the filter remembers, and where it gets nowhere in as long a time before
    or after: a third of the way that it would go at that speed. Slow creeping is motion.

    Args:
        q: prepared positions (rad, m), `(samples, joints)`.
        dq: prepared velocities (rad/s, m/s).
        noise: standard deviation of these, per joint.
        low_pass: that they went through.
    """
    memory = min(low_pass.memory, len(q) - 1)
    return longer_than(memory, hardly_moving(q, dq, noise, low_pass))


def hardly_moving(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Where a joint is slow and gets nowhere, be it for ever so short: what `standing` looks at before it asks for how
    long. `q`, `dq`, `noise` and `low_pass` are as there; of many robots at once, `(samples, joints, robots)`, as well.
    """
    limits = np.maximum(3.0 * noise, STANDING_SHARE * np.quantile(np.abs(dq), 0.99, axis=0))
    memory = min(low_pass.memory, len(q) - 1)
    gone = np.abs(q[memory:] - q[:-memory]) > limits * memory * low_pass.period / 3.0
    rows = np.arange(len(q))
    # Of the window after a row and the one before it; at the ends there is only one.
    after, before = (placed_like(k, q) for k in (np.minimum(rows, len(gone) - 1), np.maximum(rows - memory, 0)))
    slow: NDArray[np.bool_] = (np.abs(dq) <= limits) & ~(gone[after] & gone[before])
    return slow


def longer_than(memory: int, slow: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What of `slow` `(samples, joints)` lasts for `memory` samples or more."""
    out = np.zeros(slow.shape, dtype=bool)
    for joint, column in enumerate(slow.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(np.int8)))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            out[a:b, joint] = b - a >= memory
    return out
