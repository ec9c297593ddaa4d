"""`SampledMotions`: motions at given times as a linear map from coefficients to blocks of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.native.gram import SAMPLES, blocks_of, empty_blocks, samples_of
from steelyard.excitation.trajectories import Family
from steelyard.ground.arrays import Array

_Index = NDArray[np.int64]


class SampledMotions:
    """q, q̇, q̈ (`orders` 0, 1, 2, …) of all joints at `times`, for any coefficients `x`.

    Signals are `blocks` `(blocks, orders·joints, …)`, in the layout of machine code: row k·joints + j holds the k-th
    derivative of joint j at the samples of a block.

    Args:
        families: Family of each joint.
        times: Times of the samples [s].
        orders: Orders of the derivatives.
    """

    def __init__(self, families: Sequence[Family], times: Array, orders: Sequence[int] = (0, 1, 2)) -> None:
        self.families, self.times, self.orders = tuple(families), np.asarray(times, dtype=float), tuple(orders)
        self.joints, self.samples = len(self.families), len(self.times)
        self.blocks = -(-self.samples // SAMPLES)
        ends = np.cumsum([0, *(f.size for f in self.families)])
        self.size = int(ends[-1])
        # Joints of one family share their basis, so one matrix product serves them all.
        self._groups: list[tuple[_Index, _Index, list[tuple[Array, Array]]]] = []
        for family in dict.fromkeys(self.families):
            members = [j for j, f in enumerate(self.families) if f == family]
            where = np.array([np.arange(ends[j], ends[j + 1]) for j in members], dtype=np.int64)
            parts = [family.basis(self.times, order) for order in self.orders]
            bases = [(self._row(B), self._row(c[:, None])) for B, c in parts]
            self._groups.append((np.array(members, dtype=np.int64), where, bases))

    def parts(self, blocks: int) -> list[SampledMotions]:
        """Return the same motions in pieces of at most this number of `blocks`."""
        if self.blocks <= blocks:
            return [self]
        size = blocks * SAMPLES
        cuts = range(0, self.samples, size)
        return [SampledMotions(self.families, self.times[k : k + size], self.orders) for k in cuts]

    def _row(self, columns: Array) -> Array:
        """Convert samples `(samples, k)` to one row per column, all blocks in sequence."""
        return _in_rows(blocks_of(columns))

    def in_blocks(self, x: Array, out: Array | None = None) -> Array:
        """Compute the signals.

        Args:
            x: Coefficients.
            out: Array for the result; None: a new one.
        """
        n = self.joints
        if out is None:
            out = empty_blocks(self.blocks, len(self.orders) * n)
        for members, where, bases in self._groups:
            for k, (B, c) in enumerate(bases):
                values = (x[where] @ B + c).reshape(len(members), self.blocks, -1)
                out[:, k * n + members] = values.transpose(1, 0, 2)
        return out

    def pull(self, blocks: Array) -> Array:
        """Apply the transposed map: cotangents of the signals in `blocks` to cotangents of the coefficients."""
        n, gradient = self.joints, np.zeros(self.size)
        rows = _in_rows(blocks)
        for members, where, bases in self._groups:
            total = np.zeros(where.shape)
            for k, (B, _) in enumerate(bases):
                total += rows[k * n + members] @ B.T
            gradient[where] = total
        return gradient

    def signals(self, x: Array) -> list[Array]:
        """Compute the signals of `x`, one array `(samples, joints)` per order."""
        return self.unpack(self.in_blocks(x))

    def unpack(self, blocks: Array) -> list[Array]:
        """Convert signals in `blocks` to one array `(samples, joints)` per order."""
        return np.split(samples_of(blocks, self.samples), len(self.orders), axis=1)

    def pull_signals(self, cotangents: Sequence[Array]) -> Array:
        """Apply the transposed map to `cotangents` as arrays `(samples, joints)`, one per order."""
        return self.pull(blocks_of(np.hstack(list(cotangents))))


def _in_rows(blocks: Array) -> Array:
    """Reshape (blocks, k, …) to (k, all blocks in sequence)."""
    count, k, width = blocks.shape
    return np.ascontiguousarray(blocks.transpose(1, 0, 2)).reshape(k, count * width)
