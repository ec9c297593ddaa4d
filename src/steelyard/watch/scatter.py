"""`Scatter`: how far the observer's external torque may be from zero though nothing touches the robot.

A model errs in ways that hold for any robot, and the variance of r is taken as a sum of them, joint by joint, each with
a coefficient that calibration finds (`threshold.py`):

* moving, resting: the level in motion and at rest;
* changing: near reversals and where motion begins or ends, dry friction is known to a part of itself only;
* torque: gains and parameters are wrong by a part of the torque;
* jerk: between two samples the torque is not seen; where it changes much, or should, its mean is not known;
* speed: friction is wrong by a part that grows with velocity.

* parameters: what the covariance of the identified parameters makes of the torque in this posture.

All of them pass the observer's own low-pass, since what they excuse does, too. At rest dry friction holds a joint with
any torque between −F and F, and r has an offset. While the whole robot rests the offset changes slowly: it is followed
and taken away, but never more than twice F, which static friction rarely exceeds. While other joints move, what a held
joint carries changes, and its friction with it: r may be off by F more.
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
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.model import WatchedModel
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.parts import PartState

CAUSES = ("moving", "resting", "changing", "torque", "jerk", "speed", "parameters")
# Somebody who touches a robot does so within some tenths of a second; what creeps more slowly at rest is friction.
_OFFSET_SECONDS = 1.0
# Up to so many times the speed at which a joint counts as slow, the way friction turns over is doubted.
_NEAR = 3.0
# While something touches it, the offset is nearly held, so that a touch that lasts does not become friction at once.
_HELD = 0.1
# Break-away torque over that of sliding.
_STATIC = 2.0
# The floor of what is felt follows what creeps, at one limit a second, and has the width of noise.
_CREEPING = 1.0
_FLOOR = 1.0 / 6.0
# Postures change little within this time (s): what hangs on them alone is worked out so often.
_POSTURE_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class Excused:
    """What may be without contact.

    Args:
        joints: how many.
        found: for every sample and joint what is beyond and held, the causes; and how much of the limits it is.
    """

    joints: int
    found: Array

    @property
    def beyond(self) -> Array:
        """r less what dry friction explains at rest, N m (N), (samples, joints)."""
        return self.found[:, : self.joints]

    @property
    def held(self) -> Array:
        """How much dry friction may hold at rest, N m (N), (samples, joints); zero while any joint moves."""
        return self.found[:, self.joints : 2 * self.joints]

    @property
    def causes(self) -> Array:
        """The squares that coefficients multiply, (samples, joints, causes), N² m² (N²) or without unit."""
        return np.asarray(self.found[:, 2 * self.joints : -1].reshape(len(self.found), self.joints, len(CAUSES)))

    @property
    def largest(self) -> float:
        """The largest of `most`."""
        return float(self.found.item(-1) if len(self.found) == 1 else np.fmax.reduce(self.most))

    @property
    def most(self) -> Array:
        """What is beyond as a part of its limit, the largest of all joints, (samples,)."""
        return self.found[:, -1]

    def sigma(self, coefficients: Array) -> Array:
        """The standard deviation of what is beyond, N m (N); `coefficients` are (joints, causes)."""
        return np.asarray(np.sqrt(np.einsum("sjc,jc->sj", self.causes, coefficients)))


class Scatter:
    """Follows what the scatter of r depends on, batch by batch; where batches begin and end changes nothing.

    Args:
        watched: the model with the errors of its parameters.
        observer: the one whose external torque is judged.
        squares: (joints, causes), with which the causes add up to the square of the limit; None for ones.
    """

    def __init__(self, watched: WatchedModel, observer: MomentumObserver, squares: Array | None = None) -> None:
        self._watched, self._observer, self._n = watched, observer, watched.model.robot.dof
        self._scan = Scan(_scattered(observer, np.ones((self._n, len(CAUSES))) if squares is None else squares))
        self._last, self._stretch = math.nan, math.nan  # time of the last sample, number of its stretch of posture
        self._parameters = np.zeros(self._n)  # variance by the errors of parameters, of that posture

    def take(self, seen: Seen, touched: bool = False) -> Excused:
        """What is excused at every sample of `seen`; `touched` says that a contact goes on."""
        b, n, count = seen.batch, self._n, len(seen.batch)
        rows, last = b.rows, self._last
        parameters = self._postures(b)
        self._last = rows.item(count - 1, 0)
        if count == 1:
            given = self._scan.sample
            given[0], given[1] = self._observer.first_interval(b, last)
            given[2], given[3], given[4 : 5 + 3 * n] = self._observer.rate, touched, rows[0]
            given[5 + 3 * n : -n], given[-n:] = seen.found[0, n:], parameters[0]
            return Excused(n, self._scan.step())
        clock, flag = self._observer.intervals(b, last), np.full((count, 1), float(touched))
        parts = [clock, flag, rows, seen.found[:, n:], np.broadcast_to(parameters, (count, n))]
        return Excused(n, self._scan(np.concatenate(parts, axis=1)))

    @property
    def quiet(self) -> float:
        """When all joints were last as quiet as they get, s."""
        return float(self._scan.state[-1])

    def let_go(self, t: float) -> None:
        """A contact was over at `t` (s): where the robot stands, friction holds what is left, as if it had just come to
        rest; and it is quiet."""
        self._scan.state[-3:] = 0.0, np.inf, t

    def _postures(self, batch: SampleBatch) -> Array:
        """What the errors of parameters make of the torque, worked out at the first sample of each stretch."""
        before = math.nan if batch.fresh else self._stretch
        if len(batch) == 1:
            stretch = float(math.floor(batch.rows.item(0) / _POSTURE_SECONDS))
            if stretch != before:
                self._stretch, self._parameters = stretch, self._watched.torque_variance(batch.q, batch.dq)[0]
            return self._parameters[None]
        number = np.floor(batch.t / _POSTURE_SECONDS)
        self._stretch = float(number[-1])
        new = np.flatnonzero(np.diff(number, prepend=before) != 0.0)
        at = np.zeros(len(batch), dtype=int)
        at[new] = np.arange(1, len(new) + 1)
        found = self._watched.torque_variance(batch.q[new], batch.dq[new])
        table = np.concatenate([self._parameters[None], found])
        self._parameters = table[-1]
        return np.asarray(table[np.maximum.accumulate(at)])

    def state(self) -> PartState:
        """All that the next sample needs, as arrays."""
        return {"scatter": np.concatenate([[self._last, self._stretch], self._parameters, self._scan.state])}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same model."""
        kept, n = np.array(state["scatter"], dtype=float), self._n
        if len(kept) != 2 + n + len(self._scan.state):
            raise SteelyardError("The state is that of a watch of another model; begin anew.")
        self._last, self._stretch = float(kept[0]), float(kept[1])
        self._parameters, self._scan.state[:] = kept[2 : 2 + n].copy(), kept[2 + n :]


def _scattered(observer: MomentumObserver, squares: Array) -> Function:
    """One step. `sample`: h, whether it begins, K, whether touched, t; q, dq, tau, d, e, r, variance by parameters. The
    state: measured and model torque, velocity; slow, near rest, model torque, jerk and offset, smoothed; all slow,
    smoothed; how long all stand; the floor of what is felt, and when it was last there.
    """
    model = observer.model
    n = model.robot.dof
    limits = [SMOOTHING_SPEED[joint.kind] for joint in model.robot.joints]

    def step(sample: Vector, state: Vector) -> dict[tuple[int], Scalar]:
        h, begins, rate, touched, t = sample[:5]
        goes_on = 1.0 - begins
        q, dq, tau, d, e, r, parameters = (sample[5 + k * n : 5 + (k + 1) * n] for k in range(7))
        tau0, torque0, dq0, still0, near0, carried0, jerked0, offset0 = (state[k * n : (k + 1) * n] for k in range(8))
        slow = [maximum(sign(v - absolute(x)), 0.0) for v, x in zip(limits, dq, strict=True)]
        standing: Scalar = 1.0
        for x in slow:
            standing = standing * x
        stood = goes_on * standing * (state[8 * n + 1] + h)
        gain = 1.0 - exp(-1.0 * (rate * h))
        # The offset is the mean since the robot stands, until that is long enough.
        creep = h * (1.0 / _OFFSET_SECONDS) * (1.0 - (1.0 - _HELD) * touched)
        follow = minimum(maximum(creep, (1.0 - touched) * standing * h / maximum(stood, h)), 1.0)

        def smooth(before: Scalar, aim: Scalar, first: Scalar, share: Scalar = gain) -> Scalar:
            return goes_on * (before + share * (aim - before)) + begins * first

        all_still = smooth(state[8 * n], standing, 0.5)
        friction = dry_friction(model, observer.balance, q)
        parts: list[list[Scalar]] = [[] for _ in range(8)]
        told: list[list[Scalar]] = [[], [], []]
        most: Scalar = 0.0
        for k in range(n):
            torque = goes_on * (e[k] + 0.5 * (tau[k] + tau0[k])) + begins * d[k]  # what the model asks for
            asked, given = torque - torque0[k], tau[k] - tau0[k]
            jerk = goes_on * (asked * asked + given * given)
            # The least speed within the interval: zero where the direction changes between two samples.
            earlier = goes_on * dq0[k] + begins * dq[k]
            least = minimum(absolute(dq[k]), absolute(earlier)) * maximum(sign(dq[k] * earlier), 0.0)
            ratio = least * (1.0 / (_NEAR * limits[k]))
            close = 1.0 / (1.0 + ratio * ratio)
            still = smooth(still0[k], slow[k], 0.5)
            near = smooth(near0[k], close, close)
            carried = smooth(carried0[k], torque, torque)
            jerked = smooth(jerked0[k], jerk, jerk)
            share = slow[k] * follow + (1.0 - slow[k]) * gain
            offset = smooth(offset0[k], slow[k] * r[k], slow[k] * r[k], share)
            for part, x in zip(parts, (tau[k], torque, dq[k], still, near, carried, jerked, offset), strict=True):
                part.append(x)
            static = _STATIC * friction[k]
            off = r[k] - minimum(maximum(offset, -1.0 * static), static)
            told[0].append(sign(off) * maximum(absolute(off) - friction[k] * still * (1.0 - all_still), 0.0))
            told[1].append(standing * static)
            causes = [1.0 - still, still, near * (1.0 - still), carried * carried, jerked, dq[k] * dq[k], parameters[k]]
            told[2] += causes
            most = maximum(most, told[0][k] * told[0][k] / dot(causes, squares[k].tolist()))
        most = sqrt(most)
        # It began when the share of the limit that is felt was last at its floor.
        above = most - _CREEPING * t
        floor = goes_on * minimum(state[8 * n + 2], above) + begins * above
        low = maximum(sign(floor + _FLOOR - above), 0.0)
        quiet = goes_on * (low * t + (1.0 - low) * state[8 * n + 3]) + begins * t
        return flat_entries([*parts, [all_still, stood, floor, quiet], *told, [most]])

    width = 8 * n + 4
    return trace("scattered", {"sample": 5 + 7 * n, "state": width}, step, (width + 9 * n + 1,))
