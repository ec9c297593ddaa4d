"""Rows of single instants, [A y] through the motion's filter, for equations that need the acceleration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.schemes.scheme import Motions, column_places
from steelyard.signals.prepare import Motion

# Samples whose regressor is in memory at once: 7 × 100 entries per sample are 45 MB.
_CHUNK = 8192

Table = Callable[[Motion, slice], Array]


def instants(
    dynamics: Dynamics,
    equations: tuple[Equation, ...],
    columns: NDArray[np.int64],
    table: Table,
    motions: Motions,
    mask: float,
    period: float,
) -> RegressionData:
    """`table(motion, part)` gives [A y] of samples, `(samples, equations, columns + 1)`."""
    joints = np.flatnonzero(dynamics.robot.torque_used)
    own = column_places(columns, equations)

    def source() -> Iterable[Block]:
        for motion in motions():
            for rows, speeds in _chunks(motion, table):
                for e in range(len(equations)):
                    kept = rows[speeds[:, joints[e]] >= mask, e] if mask > 0.0 else rows[:, e]
                    if len(kept):
                        yield Block(e, kept[:, own[e]], kept[:, -1].copy())

    return RegressionData(equations, len(dynamics.parameters), source, period)


def _chunks(motion: Motion, table: Table) -> Iterator[tuple[Array, Array]]:
    """Filtered rows and speeds, every `keep.step`-th sample."""
    start, stop, step = motion.keep.indices(len(motion.t))
    reach = motion.filter.reach
    size = max(_CHUNK // step * step, step)
    for first in range(start, stop, size):
        last = min(first + size, stop)
        low, high = max(0, first - reach), min(len(motion.t), last + reach)
        raw = table(motion, slice(low, high))
        yield motion.filter(raw, slice(first - low, last - low, step)), np.abs(motion.dq[first:last:step])
