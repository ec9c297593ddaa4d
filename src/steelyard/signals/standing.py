"""Detects standing joints, whose friction is not determined by a friction law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array, placed_like
from steelyard.signals.filters import LowPass

# A joint stands below this fraction of its top speed.
STANDING_SHARE = 0.01


def standing(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Find the samples at which each joint stands; its friction can then have any value up to the static limit.

    Its speed must be insignificant (three standard deviations of the noise) or below 1 % of its top speed, for longer
    than the memory of the filter, and its distance in an equally long window before or after must be below a third of
    that at this speed. Slow creeping counts as motion.

    Args:
        q: Prepared positions [rad or m], shape (samples, joints).
        dq: Prepared velocities [rad/s or m/s], shape (samples, joints).
        noise: Standard deviation of each joint's velocity noise.
        low_pass: Filter of the preparation.
    """
    memory = min(low_pass.memory, len(q) - 1)
    return longer_than(memory, hardly_moving(q, dq, noise, low_pass))


def hardly_moving(q: Array, dq: Array, noise: Array, low_pass: LowPass) -> NDArray[np.bool_]:
    """Find samples that meet all conditions of `standing` except the duration, also for many robots at once.

    Args:
        q: As for `standing`, or shape (samples, joints, robots).
        dq: As for `standing`, or shape (samples, joints, robots).
        noise: As for `standing`.
        low_pass: As for `standing`.
    """
    limits = np.maximum(3.0 * noise, STANDING_SHARE * np.quantile(np.abs(dq), 0.99, axis=0))
    memory = min(low_pass.memory, len(q) - 1)
    moved = np.abs(q[memory:] - q[:-memory]) > limits * memory * low_pass.period / 3.0
    rows = np.arange(len(q))
    # Windows after and before each row; at the ends only one exists.
    after, before = (placed_like(k, q) for k in (np.minimum(rows, len(moved) - 1), np.maximum(rows - memory, 0)))
    slow: NDArray[np.bool_] = (np.abs(dq) <= limits) & ~(moved[after] & moved[before])
    return slow


def longer_than(memory: int, slow: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Clear the flags of intervals that are shorter than a minimum duration.

    Args:
        memory: Minimum duration [samples].
        slow: Flags, shape (samples, joints).
    """
    out = np.zeros(slow.shape, dtype=bool)
    for joint, column in enumerate(slow.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(np.int8)))
        for a, b in zip(edges[::2], edges[1::2], strict=True):
            out[a:b, joint] = b - a >= memory
    return out
