"""From balances to blocks: chunk by chunk, each equation through its own filter or window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.schemes.balance import EnergyBalance, MomentumBalance, Quadrature
from steelyard.regression.schemes.scheme import Motions, column_places
from steelyard.regression.schemes.still import Stillness
from steelyard.signals.prepare import Motion

# Samples whose regressors are in memory at once: two of 7 × 100 entries per sample are 45 MB each.
_CHUNK = 8192


class Accumulator(Protocol):
    """Takes the means over consecutive intervals and gives rows; `reset` forgets all that was."""

    def reset(self) -> None: ...

    def add(self, means: Array) -> Array: ...


def stream(
    balance: MomentumBalance | EnergyBalance,
    motions: Motions,
    quadrature: Quadrature,
    accumulator: Callable[[Motion], Accumulator],
    period: float,
    still: Stillness,
    none: str,
) -> RegressionData:
    """Rows over the balance's columns; `none` is said where not one row came about."""

    def source() -> Iterable[Block]:
        empty = True
        for motion in motions():
            for block in _blocks(balance, motion, quadrature, accumulator, still):
                empty = False
                yield block
        if empty:
            raise SteelyardError(none)

    return RegressionData(balance.equations, len(balance.dynamics.parameters), source, period)


def _blocks(
    balance: MomentumBalance | EnergyBalance,
    motion: Motion,
    quadrature: Quadrature,
    accumulator: Callable[[Motion], Accumulator],
    still: Stillness,
) -> Iterator[Block]:
    own = column_places(balance.columns, balance.equations)
    accumulators = [accumulator(motion) for _ in own]
    moved = [False] * len(own)
    for part in _parts(motion):
        means = _filtered_means(balance, motion, part, quadrature)
        moving = still.moving(motion.dq[part])[:, balance.joints]
        for e, one in enumerate(accumulators):
            for run in _runs(moving[:, e]):
                if run.start > 0 or not moved[e]:
                    one.reset()
                rows = one.add(means[run, e])
                if len(rows):
                    yield Block(e, rows[:, own[e]], rows[:, -1].copy())
            moved[e] = bool(moving[-1, e])


def _parts(motion: Motion) -> Iterator[slice]:
    """Samples of the motion in chunks that share their borders, so that no interval is lost."""
    start, stop, _ = motion.keep.indices(len(motion.t))
    for first in range(start, stop - 1, _CHUNK):
        yield slice(first, min(first + _CHUNK, stop - 1) + 1)


def _filtered_means(
    balance: MomentumBalance | EnergyBalance, motion: Motion, part: slice, quadrature: Quadrature
) -> Array:
    """Both sides through the motion's filter, too: it has smoothed the states, so the torque must not stay sharp."""
    reach = motion.filter.reach
    low, high = max(0, part.start - reach), min(len(motion.t), part.stop + reach)
    raw = balance.means(motion, slice(low, high), quadrature)
    return motion.filter(raw, slice(part.start - low, part.stop - 1 - low))


def _runs(moving: NDArray[np.bool_]) -> list[slice]:
    """The stretches without a still interval."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moving, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
