"""`SampleBatch` and `Seen`: some samples that follow one another, and what the observer makes of them, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array


@dataclass(frozen=True, eq=False)
class SampleBatch:
    """Samples of a running robot, one or many, in the order of time and without a gap between them.

    Args:
        t: the source's clock, s, (samples,); it increases from batch to batch, but for those that are fresh.
        q, dq, tau: positions (rad, m), velocities and torques (N m, N) of the model's joints, (samples, joints).
        fresh: a gap, a jump of the clock or a restart lies before the first sample: nothing may be carried across.
    """

    t: Array
    q: Array
    dq: Array
    tau: Array
    fresh: bool = False

    def __len__(self) -> int:
        return len(self.t)

    @property
    def joints(self) -> int:
        return int(self.q.shape[1])

    @classmethod
    def of_rows(cls, rows: Array, fresh: bool = False) -> SampleBatch:
        """The batch of `rows` as sources make them, (samples, 1 + 3 joints): t, all q, all dq, all tau."""
        joints = (rows.shape[1] - 1) // 3
        q, dq, tau = (rows[:, 1 + k * joints : 1 + (k + 1) * joints] for k in range(3))
        return cls(rows[:, 0], q, dq, tau, fresh)


@dataclass(frozen=True, eq=False)
class Seen:
    """A batch with the balance of momentum over it, all (samples, joints), in N m s (N s) and N m (N).

    Args:
        batch: the samples.
        p: generalised momentum M(q) dq, rotors and couplings included.
        d: what changes it beside the measured torque, by the model: gravity, friction, −∂T/∂q.
        e: external torque by the balance over the interval that ends at each sample; 0 for the first of a fresh batch.
        r: the same through the observer's low-pass.
    """

    batch: SampleBatch
    p: Array
    d: Array
    e: Array
    r: Array


def joined(several: Sequence[Seen]) -> Seen:
    """What was seen in `several` batches, none but the first of them fresh, as of one."""
    if len(several) == 1:
        return several[0]
    batches = [seen.batch for seen in several]
    t, q, dq, tau = (np.concatenate([getattr(b, name) for b in batches]) for name in ("t", "q", "dq", "tau"))
    p, d, e, r = (np.concatenate([getattr(seen, name) for seen in several]) for name in ("p", "d", "e", "r"))
    return Seen(SampleBatch(t, q, dq, tau, batches[0].fresh), p, d, e, r)
