"""`SampleBatch`: consecutive samples of a robot. `ObservedBatch`: the same with the output of the observer.

Each class holds one table and returns columns of it as views, so that a single sample is passed on without new arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.ground.arrays import Array


class SampleBatch:
    """One or more samples of a running robot, in the order of time, without a gap between them.

    Args:
        t: Time by the clock of the source [s], shape (samples,). It increases from batch to batch unless one is fresh.
        q: Positions of the model's joints [rad, m], shape (samples, joints).
        dq: Velocities [rad/s, m/s], shape (samples, joints).
        tau: Torques [N m, N], shape (samples, joints).
        fresh: Whether a gap, a clock jump or a restart precedes the first sample; then no state may be carried over.
    """

    __slots__ = ("fresh", "rows")

    def __init__(self, t: Array, q: Array, dq: Array, tau: Array, fresh: bool = False) -> None:
        self.rows: Array = np.column_stack([t, q, dq, tau])
        self.fresh = fresh

    @classmethod
    def of_rows(cls, rows: Array, fresh: bool = False) -> SampleBatch:
        """Wrap a table of samples without copying it.

        Args:
            rows: Columns t, all q, all dq, all tau, shape (samples, 1 + 3 joints).
            fresh: As for the class.
        """
        batch = cls.__new__(cls)
        batch.rows, batch.fresh = rows, fresh
        return batch

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def joints(self) -> int:
        return int(self.rows.shape[1] - 1) // 3

    @property
    def t(self) -> Array:
        return self.rows[:, 0]

    @property
    def q(self) -> Array:
        return self.rows[:, 1 : 1 + self.joints]

    @property
    def dq(self) -> Array:
        return self.rows[:, 1 + self.joints : 1 + 2 * self.joints]

    @property
    def tau(self) -> Array:
        return self.rows[:, 1 + 2 * self.joints :]


class ObservedBatch:
    """A batch with its momentum balance; all arrays have the shape (samples, joints).

    Args:
        samples: The samples.
        p: Generalised momentum M(q) dq, rotors and couplings included [N m s, N s].
        d: Model torque that changes p besides the measured torque: gravity, friction, −∂T/∂q [N m, N].
        e: Mean external torque over the interval that ends at each sample [N m, N]; 0 for the first of a fresh batch.
        r: External torque after the observer's low-pass [N m, N].
    """

    __slots__ = ("samples", "table")

    def __init__(self, samples: SampleBatch, p: Array, d: Array, e: Array, r: Array) -> None:
        self.samples = samples
        self.table: Array = np.concatenate([p, d, e, r], axis=1)

    @classmethod
    def of_table(cls, samples: SampleBatch, table: Array) -> ObservedBatch:
        """Wrap the observer's output without copying it.

        Args:
            samples: The samples.
            table: Columns all p, all d, all e, all r, shape (samples, 4 joints).
        """
        batch = cls.__new__(cls)
        batch.samples, batch.table = samples, table
        return batch

    def section(self, start: int, stop: int) -> ObservedBatch:
        """Select consecutive samples.

        Args:
            start: Index of the first sample.
            stop: Index after the last sample.
        """
        samples = SampleBatch.of_rows(self.samples.rows[start:stop], self.samples.fresh and start == 0)
        return ObservedBatch.of_table(samples, self.table[start:stop])

    def after_gap(self) -> ObservedBatch:
        """Return the same batch marked as fresh."""
        return ObservedBatch.of_table(SampleBatch.of_rows(self.samples.rows, True), self.table)

    def _quarter(self, k: int) -> Array:
        n = self.table.shape[1] // 4
        return self.table[:, k * n : (k + 1) * n]

    @property
    def p(self) -> Array:
        return self._quarter(0)

    @property
    def d(self) -> Array:
        return self._quarter(1)

    @property
    def e(self) -> Array:
        return self._quarter(2)

    @property
    def r(self) -> Array:
        return self._quarter(3)


def join_batches(batches: Sequence[ObservedBatch]) -> ObservedBatch:
    """Join consecutive `batches` to one; only the first may be fresh."""
    if len(batches) == 1:
        return batches[0]
    samples = SampleBatch.of_rows(np.concatenate([b.samples.rows for b in batches]), batches[0].samples.fresh)
    return ObservedBatch.of_table(samples, np.concatenate([b.table for b in batches]))
