"""Convert balances to blocks of rows: in chunks through the motion's filter, each equation through its own sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, SteelyardError, StructureError
from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.schemes.balance import BalanceRows, Quadrature
from steelyard.regression.schemes.still import Stillness
from steelyard.signals.filters import motion_band
from steelyard.signals.prepare import Motion

# Samples whose regressors are in memory at once: two of 7 × 100 entries per sample are 45 MB each.
_CHUNK = 8192

Motions = Callable[[], Iterable[Motion]]


class Sums(Protocol):
    """Converts means over consecutive intervals to rows; `reset` clears the state."""

    def reset(self) -> None: ...

    def add(self, means: Array) -> Array: ...


def first_of(motions: Motions) -> Motion:
    """Return the first motion, which defines the clock."""
    first = next(iter(motions()), None)
    if first is None:
        raise StructureError("No piece of the log is long enough for the filter; lower the trim or raise the cut-off.")
    return first


def band_of(motion: Motion) -> float:
    """Return the frequency below which 99.9 % of the positions' power is [Hz], for choosing time constants."""
    band = motion_band(motion.q, motion.filter.period)
    if band <= 0.0:
        raise LogError("Nothing moves in the log; use a log with motion, or state a cut-off or window.")
    return band


def at_instants(sides: BalanceRows, motions: Motions, mask: float) -> RegressionData:
    """Build rows of single instants without those of a joint slower than `mask`."""
    joints = np.flatnonzero(sides.dynamics.robot.torque_used)
    own = [e.among(sides.columns)[1] for e in sides.equations]

    def source() -> Iterable[Block]:
        for motion in motions():
            for rows, speeds in _instants(sides, motion):
                for e in range(len(own)):
                    kept = rows[speeds[:, joints[e]] >= mask, e] if mask > 0.0 else rows[:, e]
                    if len(kept):
                        yield Block(e, kept[:, own[e]], kept[:, -1].copy())

    return RegressionData(sides.equations, len(sides.dynamics.parameters), source, first_of(motions).row_period)


def _instants(sides: BalanceRows, motion: Motion) -> Iterator[tuple[Array, Array]]:
    """Yield filtered rows and speeds, every `keep.step`-th sample."""
    start, stop, step = motion.keep.indices(len(motion.t))
    reach = motion.filter.reach
    size = max(_CHUNK // step * step, step)
    for first in range(start, stop, size):
        last = min(first + size, stop)
        low, high = max(0, first - reach), min(len(motion.t), last + reach)
        raw = sides.instants(motion, slice(low, high))
        yield motion.filter(raw, slice(first - low, last - low, step)), np.abs(motion.dq[first:last:step])


def over_intervals(
    sides: BalanceRows,
    motions: Motions,
    quadrature: Quadrature,
    sums: Callable[[Motion], Sums],
    period: float,
    still: Stillness,
    none: str,
) -> RegressionData:
    """Build rows of the balance over sampling intervals, processed by sums.

    Args:
        sides: Both sides of the balance.
        motions: Starts a pass over the motions.
        quadrature: Rule for means over an interval.
        sums: Creates the sums for each equation's means of a motion.
        period: Time between rows [s].
        still: Intervals in which an equation is invalid; its sums restart afterwards.
        none: Error text if no row results.
    """

    def source() -> Iterable[Block]:
        empty = True
        for motion in motions():
            for block in _blocks(sides, motion, quadrature, sums, still):
                empty = False
                yield block
        if empty:
            raise SteelyardError(none)

    return RegressionData(sides.equations, len(sides.dynamics.parameters), source, period)


def _blocks(
    sides: BalanceRows, motion: Motion, quadrature: Quadrature, sums: Callable[[Motion], Sums], still: Stillness
) -> Iterator[Block]:
    own = [e.among(sides.columns)[1] for e in sides.equations]
    each = [sums(motion) for _ in own]
    moved = [False] * len(own)
    for part in _parts(motion):
        means = _filtered_means(sides, motion, part, quadrature)
        moving = still.moving(motion.dq[part])[:, sides.joints]
        for e, one in enumerate(each):
            for run in _runs(moving[:, e]):
                if run.start > 0 or not moved[e]:
                    one.reset()
                rows = one.add(means[run, e])
                if len(rows):
                    yield Block(e, rows[:, own[e]], rows[:, -1].copy())
            moved[e] = bool(moving[-1, e])


def _parts(motion: Motion) -> Iterator[slice]:
    """Yield samples of the motion in chunks that share their borders, so that no interval is lost."""
    start, stop, _ = motion.keep.indices(len(motion.t))
    for first in range(start, stop - 1, _CHUNK):
        yield slice(first, min(first + _CHUNK, stop - 1) + 1)


def _filtered_means(sides: BalanceRows, motion: Motion, part: slice, quadrature: Quadrature) -> Array:
    """Pass both sides through the motion's filter: it smoothed the states, so the torque needs it as well."""
    reach = motion.filter.reach
    low, high = max(0, part.start - reach), min(len(motion.t), part.stop + reach)
    raw = sides.means(motion, slice(low, high), quadrature)
    return motion.filter(raw, slice(part.start - low, part.stop - 1 - low))


def _runs(moving: NDArray[np.bool_]) -> list[slice]:
    """Return the stretches without a still interval."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moving, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
