"""`ResidualScale`: the standard deviation of the observer's external torque r without contact.

For each joint the variance of r is a sum of causes, each with a coefficient from calibration (`threshold.py`):

* moving, resting: base level in motion and at rest;
* changing: relative error of dry friction near reversals and where motion starts or ends;
* torque: relative error of gains and parameters;
* jerk: error of the mean torque between two samples, where the measured or the model torque changes much;
* speed: error of friction that grows with velocity;
* parameters: covariance of the identified parameters in this posture.

All causes pass the low-pass of the observer, like r. At rest, dry friction holds a joint with any torque between −F and
F, so r has an offset. While the whole robot rests, the offset changes slowly; it is tracked and subtracted, up to 2F,
which static friction rarely exceeds. While other joints move, the torque on a joint at rest changes, and r may deviate
by F more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.native.scan import Scan, flat_entries
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar, Vector, absolute, dot, exp, maximum, minimum, sign, sqrt
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import StateArrays
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.uncertain_model import UncertainModel

CAUSES = ("moving", "resting", "changing", "torque", "jerk", "speed", "parameters")
# Time constant of the offset at rest. Contacts change within some 0.1 s; slower changes at rest are friction.
_OFFSET_SECONDS = 1.0
# Velocity range of the cause "changing", as a multiple of the speed limit of a slow joint.
_NEAR = 3.0
# Tracking rate of the offset during a contact, so that a lasting contact is not taken for friction at once.
_CONTACT_RATE = 0.1
# Ratio of break-away to sliding friction.
_STATIC = 2.0
# The floor of the ratio follows slow changes at one limit per second; its width is that of noise.
_CREEPING = 1.0
_FLOOR = 1.0 / 6.0
# Quantities that depend on the posture alone are updated at this interval [s].
_POSTURE_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class ResidualTerms:
    """Residual torque and its variance components.

    Args:
        joints: Number of joints.
        table: One row per sample: residual, friction hold and causes of all joints, largest ratio to the limits.
    """

    joints: int
    table: Array

    @property
    def residual(self) -> Array:
        """r without dry friction at rest [N m, N], shape (samples, joints)."""
        return self.table[:, : self.joints]

    @property
    def friction_hold(self) -> Array:
        """Torque that static friction can hold [N m, N], shape (samples, joints); zero while any joint moves."""
        return self.table[:, self.joints : 2 * self.joints]

    @property
    def causes(self) -> Array:
        """Regressors of the variance, shape (samples, joints, causes)."""
        return np.asarray(self.table[:, 2 * self.joints : -1].reshape(len(self.table), self.joints, len(CAUSES)))

    @property
    def largest_ratio(self) -> float:
        """Largest value of `ratio`."""
        return float(self.table.item(-1) if len(self.table) == 1 else np.fmax.reduce(self.ratio))

    @property
    def ratio(self) -> Array:
        """Largest ratio of residual to limit over all joints, shape (samples,)."""
        return self.table[:, -1]

    def sigma(self, coefficients: Array) -> Array:
        """Compute the standard deviation of the residual [N m, N] from `coefficients`, shape (joints, causes)."""
        return np.asarray(np.sqrt(np.einsum("sjc,jc->sj", self.causes, coefficients)))


class ResidualScale:
    """Computes the variance components of r batch by batch; the split into batches does not matter.

    Args:
        uncertain_model: Model with its covariance.
        observer: Observer that computes r.
        squares: Coefficients of the squared limit, shape (joints, causes); None for ones.
    """

    def __init__(
        self, uncertain_model: UncertainModel, observer: MomentumObserver, squares: Array | None = None
    ) -> None:
        self._uncertain_model, self._observer, self._n = uncertain_model, observer, uncertain_model.model.robot.dof
        self._scan = Scan(_scale_step(observer, np.ones((self._n, len(CAUSES))) if squares is None else squares))
        self._last, self._stretch = math.nan, math.nan  # time of the last sample, number of its posture interval
        self._parameter_variance = np.zeros(self._n)  # of that posture

    def update(self, batch: ObservedBatch, touched: bool = False) -> ResidualTerms:
        """Process the next batch.

        Args:
            batch: The samples.
            touched: Whether a contact is present.
        """
        b, n, count = batch.samples, self._n, len(batch.samples)
        rows, last = b.rows, self._last
        parameters = self._postures(b)
        self._last = rows.item(count - 1, 0)
        if count == 1:
            sample = self._scan.sample
            sample[0], sample[1] = self._observer.first_interval(b, last)
            sample[2], sample[3], sample[4 : 5 + 3 * n] = self._observer.rate, touched, rows[0]
            sample[5 + 3 * n : -n], sample[-n:] = batch.table[0, n:], parameters[0]
            return ResidualTerms(n, self._scan.step())
        clock, flag = self._observer.intervals(b, last), np.full((count, 1), float(touched))
        parts = [clock, flag, rows, batch.table[:, n:], np.broadcast_to(parameters, (count, n))]
        return ResidualTerms(n, self._scan(np.concatenate(parts, axis=1)))

    @property
    def last_quiet(self) -> float:
        """Time when the ratio was last at its floor [s]."""
        return float(self._scan.state[-1])

    def end_contact(self, t: float) -> None:
        """End a contact at time `t` [s]: restart offset tracking, as if the robot had just stopped."""
        self._scan.state[-3:] = 0.0, np.inf, t

    def _postures(self, samples: SampleBatch) -> Array:
        """Return the torque variance due to the parameters, updated at the first sample of each posture interval."""
        before = math.nan if samples.fresh else self._stretch
        if len(samples) == 1:
            stretch = float(math.floor(samples.rows.item(0) / _POSTURE_SECONDS))
            if stretch != before:
                self._stretch, self._parameter_variance = (
                    stretch,
                    self._uncertain_model.torque_variance(samples.q, samples.dq)[0],
                )
            return self._parameter_variance[None]
        number = np.floor(samples.t / _POSTURE_SECONDS)
        self._stretch = float(number[-1])
        new = np.flatnonzero(np.diff(number, prepend=before) != 0.0)
        at = np.zeros(len(samples), dtype=int)
        at[new] = np.arange(1, len(new) + 1)
        variance = self._uncertain_model.torque_variance(samples.q[new], samples.dq[new])
        table = np.concatenate([self._parameter_variance[None], variance])
        self._parameter_variance = table[-1]
        return np.asarray(table[np.maximum.accumulate(at)])

    def state(self) -> StateArrays:
        """Return all that the next sample needs, as arrays."""
        return {"scatter": np.concatenate([[self._last, self._stretch], self._parameter_variance, self._scan.state])}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` of the same model."""
        saved, n = np.array(state["scatter"], dtype=float), self._n
        if len(saved) != 2 + n + len(self._scan.state):
            raise SteelyardError("the state belongs to a watch of another model; start from scratch.")
        self._last, self._stretch = float(saved[0]), float(saved[1])
        self._parameter_variance, self._scan.state[:] = saved[2 : 2 + n].copy(), saved[2 + n :]


def _scale_step(observer: MomentumObserver, squares: Array) -> Function:
    """Trace one step.

    `sample`: h, first-sample flag, K, contact flag, t; q, dq, tau, d, e, r, variance due to parameters. State: measured
    and model torque, velocity; smoothed: slow, near rest, model torque, jerk, offset; all slow, smoothed; duration of
    rest; floor of the ratio, and the last time at the floor.
    """
    model = observer.model
    n = model.robot.dof
    limits = [SMOOTHING_SPEED[joint.kind] for joint in model.robot.joints]

    def step(sample: Vector, state: Vector) -> dict[tuple[int], Scalar]:
        h, begins, rate, touched, t = sample[:5]
        goes_on = 1.0 - begins
        q, dq, tau, d, e, r, parameters = (sample[5 + k * n : 5 + (k + 1) * n] for k in range(7))
        tau0, torque0, dq0, still0, near0, torque_mean0, jerk_mean0, offset0 = (
            state[k * n : (k + 1) * n] for k in range(8)
        )
        slow = [maximum(sign(v - absolute(x)), 0.0) for v, x in zip(limits, dq, strict=True)]
        standing: Scalar = 1.0
        for x in slow:
            standing = standing * x
        standing_s = goes_on * standing * (state[8 * n + 1] + h)
        gain = 1.0 - exp(-1.0 * (rate * h))
        # The offset starts as the mean since the robot stopped.
        creep = h * (1.0 / _OFFSET_SECONDS) * (1.0 - (1.0 - _CONTACT_RATE) * touched)
        follow = minimum(maximum(creep, (1.0 - touched) * standing * h / maximum(standing_s, h)), 1.0)

        def smooth(before: Scalar, aim: Scalar, first: Scalar, share: Scalar = gain) -> Scalar:
            return goes_on * (before + share * (aim - before)) + begins * first

        all_still = smooth(state[8 * n], standing, 0.5)
        friction = dry_friction(model, observer.balance, q)
        parts: list[list[Scalar]] = [[] for _ in range(8)]
        outputs: list[list[Scalar]] = [[], [], []]
        largest: Scalar = 0.0
        for k in range(n):
            torque = goes_on * (e[k] + 0.5 * (tau[k] + tau0[k])) + begins * d[k]  # model torque
            torque_step, tau_step = torque - torque0[k], tau[k] - tau0[k]
            jerk = goes_on * (torque_step * torque_step + tau_step * tau_step)
            # Smallest speed within the interval; zero if the direction changes between two samples.
            earlier = goes_on * dq0[k] + begins * dq[k]
            lowest_speed = minimum(absolute(dq[k]), absolute(earlier)) * maximum(sign(dq[k] * earlier), 0.0)
            ratio = lowest_speed * (1.0 / (_NEAR * limits[k]))
            close = 1.0 / (1.0 + ratio * ratio)
            still = smooth(still0[k], slow[k], 0.5)
            near = smooth(near0[k], close, close)
            torque_mean = smooth(torque_mean0[k], torque, torque)
            jerk_mean = smooth(jerk_mean0[k], jerk, jerk)
            share = slow[k] * follow + (1.0 - slow[k]) * gain
            offset = smooth(offset0[k], slow[k] * r[k], slow[k] * r[k], share)
            for column, x in zip(
                parts, (tau[k], torque, dq[k], still, near, torque_mean, jerk_mean, offset), strict=True
            ):
                column.append(x)
            static = _STATIC * friction[k]
            excess = r[k] - minimum(maximum(offset, -1.0 * static), static)
            outputs[0].append(sign(excess) * maximum(absolute(excess) - friction[k] * still * (1.0 - all_still), 0.0))
            outputs[1].append(standing * static)
            causes = [
                1.0 - still,
                still,
                near * (1.0 - still),
                torque_mean * torque_mean,
                jerk_mean,
                dq[k] * dq[k],
                parameters[k],
            ]
            outputs[2] += causes
            largest = maximum(largest, outputs[0][k] * outputs[0][k] / dot(causes, squares[k].tolist()))
        largest = sqrt(largest)
        # A contact starts when the ratio was last at its floor.
        above = largest - _CREEPING * t
        floor = goes_on * minimum(state[8 * n + 2], above) + begins * above
        low = maximum(sign(floor + _FLOOR - above), 0.0)
        quiet = goes_on * (low * t + (1.0 - low) * state[8 * n + 3]) + begins * t
        return flat_entries([*parts, [all_still, standing_s, floor, quiet], *outputs, [largest]])

    width = 8 * n + 4
    return trace("scattered", {"sample": 5 + 7 * n, "state": width}, step, (width + 9 * n + 1,))
