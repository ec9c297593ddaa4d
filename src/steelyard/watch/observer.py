"""`MomentumObserver`: the external torque on every joint, from the balance of generalised momentum.

ṗ + d = τ + τ_ext, with p = M(q) q̇ and d = −∂T/∂q + gravity + friction of the identified model. Over an interval h

    e = [p]/h + mean of d − mean of τ        is the mean external torque, and
    r ← r + (1 − exp(−K h)) (e − r)          the observer of De Luca and Mattone (2003): e through a low-pass K.

No acceleration is needed, and h is measured, so that a clock that jitters does no harm. All of it is one traced
function with the model's numbers in it, run over samples by machine code. The C code that `export` writes does the same
operations in the same order.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.model import Model
from steelyard.dynamics.momentum import MomentumBalance, momentum_balance
from steelyard.dynamics.native.scan import Scan, flat_entries
from steelyard.errors import SteelyardError
from steelyard.export.c import regrouped
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, absolute, exp, maximum, minimum
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.parts import PartState

# Somebody who is run into, or who pushes, raises the force within a tenth of a second or so; a low-pass of 5 Hz
# (time constant 32 ms) follows that, and leaves out most of what ripples in gears and is noise in velocities. It is
# what an observer has that was not calibrated: calibration chooses by the residuals of the robot.
USUAL_CUTOFF_HZ = 5.0


class MomentumObserver:
    """External torque from samples as they come; where batches begin and end changes nothing.

    Args:
        model: of the robot, friction and rotors included.
        cutoff_hz: of the low-pass, K/2π.
    """

    def __init__(self, model: Model, cutoff_hz: float = USUAL_CUTOFF_HZ) -> None:
        if not (math.isfinite(cutoff_hz) and cutoff_hz > 0.0):
            raise SteelyardError(f"The observer's low-pass needs a positive frequency in Hz, not {cutoff_hz:g}.")
        self.model, self.cutoff_hz = model, cutoff_hz
        self.balance = _lean_balance(model)
        self._scan = Scan(_observed(self.balance, model.robot.dof))
        self.rate = 2.0 * math.pi * cutoff_hz
        self._n, self._time = model.robot.dof, math.nan

    def take(self, batch: SampleBatch) -> Seen:
        """What is seen of the next `batch`."""
        count = len(batch)
        if count == 0:
            return Seen.of_found(batch, np.zeros((0, 4 * self._n)))
        rows, given = batch.rows, self._scan.sample
        last, self._time = self._time, rows.item(count - 1, 0)
        if count == 1:
            given[0], given[1] = self.first_interval(batch, last)
            given[2], given[3:] = self.rate, rows[0, 1:]
            return Seen.of_found(batch, self._scan.step())
        return Seen.of_found(batch, self._scan(np.concatenate([self.intervals(batch, last), rows[:, 1:]], axis=1)))

    def intervals(self, batch: SampleBatch, last: float) -> Array:
        """What a step needs of the clock, (samples, 3): the time since the sample before, s; 1 where there is none; K.

        The sample before the `batch` was at the time `last`, s. Where there is none the time is 1, so that nothing is
        divided by zero.
        """
        out = np.zeros((len(batch), 3))
        out[1:, 0] = batch.t[1:] - batch.t[:-1]
        out[:, 2] = self.rate
        out[0, :2] = self.first_interval(batch, last)
        return out

    @staticmethod
    def first_interval(batch: SampleBatch, last: float) -> tuple[float, float]:
        """Of the first sample of a `batch` after a sample at the time `last`, s: time since it, and 1 for none."""
        return (1.0, 1.0) if batch.fresh or last != last else (batch.rows.item(0) - last, 0.0)

    def state(self) -> PartState:
        """All that the next sample needs, as arrays."""
        return {"observer": np.append(self._scan.state, self._time)}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of an observer of the same model."""
        kept = np.array(state["observer"], dtype=float)
        if len(kept) != len(self._scan.state) + 1:
            raise SteelyardError("The state is that of an observer of another model; begin anew.")
        if not np.isfinite(kept[:-1]).all():
            raise SteelyardError("the state of the observer is damaged.")
        self._scan.state[:], self._time = kept[:-1], float(kept[-1])


@lru_cache(maxsize=4)
def _lean_balance(model: Model) -> MomentumBalance:
    """Once for all observers of a model."""
    return momentum_balance(regrouped(model))


def dry_friction(model: Model, balance: MomentumBalance, q: Vector) -> list[Scalar]:
    """How much the torque of a `model` jumps with the direction of motion at `q` (rad, m), half of it, over scalars.

    `balance` is that of the model.
    """
    # Fast enough that dry friction, rounded off near rest, is all there; slow enough that nothing else counts.
    sliding = [3.0 * SMOOTHING_SPEED[joint.kind] for joint in model.robot.joints]
    still, n = [0.0] * model.robot.dof, model.robot.dof
    both = []
    for way in (1.0, -1.0):
        given: dict[str, Vector] = {"q": q, "dq": [way * v for v in sliding], "ddq": still}
        given["s"] = [way] * len(balance.widths)
        both.append(balance.over_scalars({name: given[name] for name in balance.function.inputs})[n:])
    return [absolute(0.5 * (a - b)) for a, b in zip(*both, strict=True)]


def _observed(balance: MomentumBalance, n: int) -> Function:
    """One step: `sample` is h, whether it begins, K, q, dq, tau; the state dq, tau, p, d, r, and of stops u and s."""
    stops = len(balance.widths)

    def step(sample: Vector, state: Vector) -> dict[tuple[int], Scalar]:
        h, goes_on = sample[0], 1.0 - sample[1]
        q, dq, tau = (sample[3 + k * n : 3 + (k + 1) * n] for k in range(3))
        dq0, tau0, p0, d0, r0 = (state[k * n : (k + 1) * n] for k in range(5))
        u0, s0 = state[5 * n : 5 * n + stops], state[5 * n + stops :]
        given: dict[str, Vector] = {"q": q, "dq": dq}
        if balance.needs_acceleration:
            given["ddq"] = [goes_on * ((a - b) / h) for a, b in zip(dq, dq0, strict=True)]
        u = balance.positions_over_scalars(q)
        # Where a motion begins nothing is known of the stops, and they are taken as relaxed.
        s = [
            goes_on * minimum(maximum(x + (a - b) / w, -1.0), 1.0)
            for x, a, b, w in zip(s0, u, u0, balance.widths, strict=True)
        ]
        if stops:
            given["s"] = s
        both = balance.over_scalars(given)
        p, d = both[:n], both[n:]
        gain = 1.0 - exp(-1.0 * (sample[2] * h))
        e = [
            goes_on * ((p[k] - p0[k]) / h + 0.5 * (d[k] + d0[k]) - 0.5 * (tau[k] + tau0[k])) for k in range(n)
        ]  # fmt: skip
        r = [goes_on * (a + gain * (b - a)) for a, b in zip(r0, e, strict=True)]
        return flat_entries([dq, tau, p, d, r, u, s, p, d, e, r])

    width = 5 * n + 2 * stops
    return trace("observed", {"sample": 3 + 3 * n, "state": width}, step, (width + 4 * n,))
