"""`MomentumObserver`: the external torque on every joint, from the balance of generalised momentum.

ṗ + d = τ + τ_ext, with p = M(q) q̇ and d = −∂T/∂q + gravity + friction of the identified model. Over an interval h

    e = [p]/h + mean of d − mean of τ        is the mean external torque, and
    r ← r + (1 − exp(−K h)) (e − r)          the observer of De Luca and Mattone (2003): e through a low-pass K.

No acceleration is needed, and h is measured, so that a clock that jitters does no harm. The C code that `export` writes
does the same operations in the same order.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.model import Model
from steelyard.dynamics.momentum import follow_stops, momentum_balance
from steelyard.errors import SteelyardError
from steelyard.export.c import regrouped
from steelyard.ground.arrays import Array
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
        self._n = model.robot.dof
        self._balance = momentum_balance(regrouped(model))
        self._both = Evaluator(self._balance.function)
        self._both.compile()  # else the first samples are interpreted, and round differently
        positions = self._balance.positions
        self._positions = None if positions is None else Evaluator(positions)
        if self._positions is not None:
            self._positions.compile()
        # Fast enough that dry friction, rounded off near rest, is all there; slow enough that nothing else counts.
        self._sliding = np.array([3.0 * SMOOTHING_SPEED[joint.kind] for joint in model.robot.joints])
        self._widths = np.array(self._balance.widths)
        self._last = np.full(1 + 4 * self._n, np.nan)  # t, dq, tau, p, d of the last sample
        self._u, self._s = np.zeros(len(self._widths)), np.zeros(len(self._widths))
        self._r = np.zeros(self._n)

    def take(self, batch: SampleBatch) -> Seen:
        """What is seen of the next `batch`."""
        if len(batch) == 0:
            none = np.zeros((0, self._n))
            return Seen(batch, none, none, none, none)
        n = self._n
        before = np.full(1 + 4 * n, np.nan) if batch.fresh else self._last
        h = np.diff(batch.t, prepend=before[:1])
        begins = not np.isfinite(h[0])
        inputs = {"q": batch.q, "dq": batch.dq}
        if self._balance.needs_acceleration:
            ddq = np.diff(batch.dq, axis=0, prepend=before[None, 1 : 1 + n]) / h[:, None]
            inputs["ddq"] = np.where(np.isfinite(ddq), ddq, 0.0)
        if self._positions is not None:
            inputs["s"] = self._followed(batch, begins)
        found = self._both(inputs, threads=1)
        p, d = found[:, :n], found[:, n:]
        columns = np.concatenate([batch.t[:, None], batch.dq, batch.tau, p, d], axis=1)
        old = np.concatenate([before[None], columns[:-1]])
        tau, p_old, d_old = (old[:, 1 + k * n : 1 + (k + 1) * n] for k in (1, 2, 3))
        e = (p - p_old) / h[:, None] + 0.5 * (d + d_old) - 0.5 * (batch.tau + tau)
        if begins:
            e[0] = 0.0
        r = self._filtered(e, h, begins)
        self._last = columns[-1].copy()
        return Seen(batch, p, d, e, r)

    def _followed(self, batch: SampleBatch, begins: bool) -> Array:
        """The states of the stops at every sample; unknown, and so taken as relaxed, where a motion begins."""
        assert self._positions is not None
        positions = self._positions({"q": batch.q}, threads=1)
        out = np.empty_like(positions)
        s, before = self._s, self._u
        if begins:
            s, before = np.zeros_like(s), positions[0]
        for k, u in enumerate(positions):
            out[k] = s = follow_stops(s, u, before, self._widths)
            before = u
        self._s, self._u = out[-1].copy(), positions[-1].copy()
        return out

    def _filtered(self, e: Array, h: Array, begins: bool) -> Array:
        gains = 1.0 - np.exp(-(2.0 * math.pi * self.cutoff_hz) * h)
        r = np.zeros(self._n) if begins else self._r
        out = np.empty_like(e)
        first = 0
        if begins:
            out[0], first = r, 1
        for k in range(first, len(e)):
            r = r + gains[k] * (e[k] - r)
            out[k] = r
        self._r = out[-1].copy()
        return out

    def dry_friction(self, q: Array) -> Array:
        """How much the torque jumps with the direction of motion at `q` (rad, m), half of it, (samples, joints)."""
        both = []
        for way in (1.0, -1.0):
            inputs = {"q": q, "dq": np.broadcast_to(way * self._sliding, q.shape)}
            if self._balance.needs_acceleration:
                inputs["ddq"] = np.zeros_like(q)
            if self._positions is not None:
                inputs["s"] = np.full((len(q), len(self._widths)), way)
            both.append(self._both(inputs, threads=1)[:, self._n :])
        return np.asarray(0.5 * np.abs(both[0] - both[1]))

    def state(self) -> PartState:
        """All that the next sample needs, as arrays."""
        return {"last": self._last.copy(), "r": self._r.copy(), "u": self._u.copy(), "s": self._s.copy()}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of an observer of the same model."""
        self._last, self._r, self._u, self._s = (np.array(state[k], dtype=float) for k in ("last", "r", "u", "s"))
