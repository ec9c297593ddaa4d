"""`SampleBatch` and `Seen`: some samples that follow one another, and what the observer makes of them, once.

Both are one table each, of which columns are looked at: a sample that comes alone is passed on without an array being
made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.ground.arrays import Array


class SampleBatch:
    """Samples of a running robot, one or many, in the order of time and without a gap between them.

    Args:
        t: the source's clock, s, (samples,); it increases from batch to batch, but for those that are fresh.
        q, dq, tau: positions (rad, m), velocities and torques (N m, N) of the model's joints, (samples, joints).
        fresh: a gap, a jump of the clock or a restart lies before the first sample: nothing may be carried across.
    """

    __slots__ = ("fresh", "rows")

    def __init__(self, t: Array, q: Array, dq: Array, tau: Array, fresh: bool = False) -> None:
        self.rows: Array = np.column_stack([t, q, dq, tau])
        self.fresh = fresh

    @classmethod
    def of_rows(cls, rows: Array, fresh: bool = False) -> SampleBatch:
        """The batch of `rows` as sources make them, (samples, 1 + 3 joints): t, all q, all dq, all tau."""
        made = cls.__new__(cls)
        made.rows, made.fresh = rows, fresh
        return made

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


class Seen:
    """A batch with the balance of momentum over it, all (samples, joints), in N m s (N s) and N m (N).

    Args:
        batch: the samples.
        p: generalised momentum M(q) dq, rotors and couplings included.
        d: what changes it beside the measured torque, by the model: gravity, friction, −∂T/∂q.
        e: external torque by the balance over the interval that ends at each sample; 0 for the first of a fresh batch.
        r: the same through the observer's low-pass.
    """

    __slots__ = ("batch", "found")

    def __init__(self, batch: SampleBatch, p: Array, d: Array, e: Array, r: Array) -> None:
        self.batch = batch
        self.found: Array = np.concatenate([p, d, e, r], axis=1)

    @classmethod
    def of_found(cls, batch: SampleBatch, found: Array) -> Seen:
        """The `batch` with what was `found` of it, (samples, 4 joints): all p, all d, all e, all r."""
        made = cls.__new__(cls)
        made.batch, made.found = batch, found
        return made

    def part(self, first: int, last: int) -> Seen:
        """The samples from `first` to before `last`."""
        batch = SampleBatch.of_rows(self.batch.rows[first:last], self.batch.fresh and first == 0)
        return Seen.of_found(batch, self.found[first:last])

    def anew(self) -> Seen:
        """The same after a gap."""
        return Seen.of_found(SampleBatch.of_rows(self.batch.rows, True), self.found)

    def _quarter(self, k: int) -> Array:
        n = self.found.shape[1] // 4
        return self.found[:, k * n : (k + 1) * n]

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


def joined(several: Sequence[Seen]) -> Seen:
    """What was seen in `several` batches, none but the first of them fresh, as of one."""
    if len(several) == 1:
        return several[0]
    rows = np.concatenate([seen.batch.rows for seen in several])
    return Seen.of_found(
        SampleBatch.of_rows(rows, several[0].batch.fresh), np.concatenate([seen.found for seen in several])
    )
