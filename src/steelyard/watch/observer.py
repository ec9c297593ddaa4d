"""`MomentumObserver`: the external torque on every joint, from the balance of generalised momentum.

ṗ + d = τ + τ_ext, with p = M(q) q̇ and d = −∂T/∂q + gravity + friction of the identified model. Over an interval h

    e = [p]/h + mean of d − mean of τ        is the mean external torque, and
    r ← r + (1 − exp(−K h)) (e − r)          the observer of De Luca and Mattone (2003): e through a low-pass K.

The observer needs no acceleration, and it tolerates jitter, since h is measured. It is one traced function with the
model's parameters as constants, compiled to machine code. The C code of `export` does the same operations in the same
order.
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
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import StateArrays

# Cut-off without calibration. In a collision or a push the force rises within about 0.1 s. A low-pass of 5 Hz (time
# constant 32 ms) follows that and removes most of the gear ripple and velocity noise. Calibration chooses a cut-off
# from the residuals of the robot.
DEFAULT_CUTOFF_HZ = 5.0


class MomentumObserver:
    """Estimates the external torque from incoming samples; the split into batches does not matter.

    Args:
        model: Model of the robot, including friction and rotors.
        cutoff_hz: Cut-off frequency of the low-pass, K/2π [Hz].
    """

    def __init__(self, model: Model, cutoff_hz: float = DEFAULT_CUTOFF_HZ) -> None:
        if not (math.isfinite(cutoff_hz) and cutoff_hz > 0.0):
            raise SteelyardError(f"The cut-off frequency of the observer must be positive, not {cutoff_hz:g} Hz.")
        self.model, self.cutoff_hz = model, cutoff_hz
        self.balance = _lean_balance(model)
        self._scan = Scan(_observer_step(self.balance, model.robot.dof))
        self.rate = 2.0 * math.pi * cutoff_hz
        self._n, self._time = model.robot.dof, math.nan

    def observe(self, samples: SampleBatch) -> ObservedBatch:
        """Process the next `samples`."""
        count = len(samples)
        if count == 0:
            return ObservedBatch.of_table(samples, np.zeros((0, 4 * self._n)))
        rows, sample = samples.rows, self._scan.sample
        last, self._time = self._time, rows.item(count - 1, 0)
        if count == 1:
            sample[0], sample[1] = self.first_interval(samples, last)
            sample[2], sample[3:] = self.rate, rows[0, 1:]
            return ObservedBatch.of_table(samples, self._scan.step())
        return ObservedBatch.of_table(
            samples, self._scan(np.concatenate([self.intervals(samples, last), rows[:, 1:]], axis=1))
        )

    def intervals(self, samples: SampleBatch, last: float) -> Array:
        """Return the inputs of a step from the clock, shape (samples, 3): interval [s], flag of a first sample, K.

        Args:
            samples: The samples.
            last: Time of the previous sample [s]; NaN before the first sample: then the interval is 1 to avoid division
                by 0.
        """
        out = np.zeros((len(samples), 3))
        out[1:, 0] = samples.t[1:] - samples.t[:-1]
        out[:, 2] = self.rate
        out[0, :2] = self.first_interval(samples, last)
        return out

    @staticmethod
    def first_interval(samples: SampleBatch, last: float) -> tuple[float, float]:
        """Return the interval and the flag of the first sample.

        Args:
            samples: The samples.
            last: As for `intervals`.
        """
        return (1.0, 1.0) if samples.fresh or last != last else (samples.rows.item(0) - last, 0.0)

    def state(self) -> StateArrays:
        """Return all that the next sample needs, as arrays."""
        return {"observer": np.append(self._scan.state, self._time)}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` of an observer of the same model."""
        saved = np.array(state["observer"], dtype=float)
        if len(saved) != len(self._scan.state) + 1:
            raise SteelyardError("the state belongs to an observer of another model; start from scratch.")
        if not np.isfinite(saved[:-1]).all():
            raise SteelyardError("the state of the observer is damaged.")
        self._scan.state[:], self._time = saved[:-1], float(saved[-1])


@lru_cache(maxsize=4)
def _lean_balance(model: Model) -> MomentumBalance:
    """Return the momentum balance that all observers of a model share."""
    return momentum_balance(regrouped(model))


def dry_friction(model: Model, balance: MomentumBalance, q: Vector) -> list[Scalar]:
    """Compute the dry friction of every joint over scalars: half of the torque step when the direction changes.

    Args:
        model: The model.
        balance: Momentum balance of the model.
        q: Positions [rad, m].
    """
    # Fast enough for full dry friction, which is smoothed near rest; slow enough that other terms are negligible.
    sliding = [3.0 * SMOOTHING_SPEED[joint.kind] for joint in model.robot.joints]
    zeros, n = [0.0] * model.robot.dof, model.robot.dof
    values = []
    for way in (1.0, -1.0):
        inputs: dict[str, Vector] = {"q": q, "dq": [way * v for v in sliding], "ddq": zeros}
        inputs["s"] = [way] * len(balance.widths)
        values.append(balance.over_scalars({name: inputs[name] for name in balance.function.inputs})[n:])
    return [absolute(0.5 * (a - b)) for a, b in zip(*values, strict=True)]


def _observer_step(balance: MomentumBalance, n: int) -> Function:
    """Trace one step. `sample`: h, first-sample flag, K, q, dq, tau. State: dq, tau, p, d, r; u and s of stops."""
    stops = len(balance.widths)

    def step(sample: Vector, state: Vector) -> dict[tuple[int], Scalar]:
        h, goes_on = sample[0], 1.0 - sample[1]
        q, dq, tau = (sample[3 + k * n : 3 + (k + 1) * n] for k in range(3))
        dq0, tau0, p0, d0, r0 = (state[k * n : (k + 1) * n] for k in range(5))
        u0, s0 = state[5 * n : 5 * n + stops], state[5 * n + stops :]
        inputs: dict[str, Vector] = {"q": q, "dq": dq}
        if balance.needs_acceleration:
            inputs["ddq"] = [goes_on * ((a - b) / h) for a, b in zip(dq, dq0, strict=True)]
        u = balance.positions_over_scalars(q)
        # At the first sample the stops are assumed to be relaxed.
        s = [
            goes_on * minimum(maximum(x + (a - b) / w, -1.0), 1.0)
            for x, a, b, w in zip(s0, u, u0, balance.widths, strict=True)
        ]
        if stops:
            inputs["s"] = s
        values = balance.over_scalars(inputs)
        p, d = values[:n], values[n:]
        gain = 1.0 - exp(-1.0 * (sample[2] * h))
        e = [
            goes_on * ((p[k] - p0[k]) / h + 0.5 * (d[k] + d0[k]) - 0.5 * (tau[k] + tau0[k])) for k in range(n)
        ]  # fmt: skip
        r = [goes_on * (a + gain * (b - a)) for a, b in zip(r0, e, strict=True)]
        return flat_entries([dq, tau, p, d, r, u, s, p, d, e, r])

    width = 5 * n + 2 * stops
    return trace("observer_step", {"sample": 3 + 3 * n, "state": width}, step, (width + 4 * n,))
