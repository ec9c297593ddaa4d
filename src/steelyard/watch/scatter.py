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
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.watch.batch import Seen
from steelyard.watch.model import WatchedModel
from steelyard.watch.observer import MomentumObserver
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
# Postures change little within this time (s): what hangs on them alone is worked out so often.
_POSTURE_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class Excused:
    """What may be without contact, all (samples, joints).

    Args:
        beyond: r less what dry friction explains at rest, N m (N).
        causes: the squares that coefficients multiply, (samples, joints, causes), N² m² (N²) or without unit.
        held: how much dry friction may hold at rest, N m (N); zero while any joint moves.
    """

    beyond: Array
    causes: Array
    held: Array

    def sigma(self, coefficients: Array) -> Array:
        """The standard deviation of what is beyond, N m (N); `coefficients` are (joints, causes)."""
        return np.asarray(np.sqrt(np.einsum("sjc,jc->sj", self.causes, coefficients)))


class Scatter:
    """Follows what the scatter of r depends on, batch by batch.

    Args:
        watched: the model with the errors of its parameters.
        observer: the one whose external torque is judged.
    """

    def __init__(self, watched: WatchedModel, observer: MomentumObserver) -> None:
        self._watched, self._observer = watched, observer
        self._n = n = watched.model.robot.dof
        self._rate = 2.0 * math.pi * observer.cutoff_hz
        self._slow_below = np.array([SMOOTHING_SPEED[joint.kind] for joint in watched.model.robot.joints])
        self._time = np.array([np.nan, np.nan])  # of the last sample, and the number of its stretch of posture
        self._last = np.zeros((3, n))  # measured and model torque, velocity
        self._moved = np.nan  # when a joint last moved
        self._smooth = np.zeros((6, n))  # slow or not, all slow or not, near rest, model torque, jerk, offset
        self._held = np.zeros((2, n))  # dry friction and parameter variance of the posture

    def take(self, seen: Seen, touched: bool = False) -> Excused:
        """What is excused at every sample of `seen`; `touched` says that a contact goes on."""
        batch, n = seen.batch, self._n
        t, tau = batch.t, batch.tau
        begins = batch.fresh or not np.isfinite(self._time[0])
        h = np.diff(t, prepend=t[0] if begins else self._time[0])
        before = np.concatenate([(tau[:1] if begins else self._last[:1]), tau[:-1]])
        torque = seen.e + 0.5 * (tau + before)  # what the model asks for over the interval
        if begins:
            torque[0] = seen.d[0]
        last = np.stack([tau[0], torque[0]]) if begins else self._last[:2]
        jerk = np.diff(torque, axis=0, prepend=last[1:]) ** 2 + np.diff(tau, axis=0, prepend=last[:1]) ** 2
        slow = np.abs(batch.dq) < self._slow_below
        # The least speed within the interval: zero where the direction changes between two samples.
        earlier = np.concatenate([batch.dq[:1] if begins else self._last[2:], batch.dq[:-1]])
        least = np.where(batch.dq * earlier < 0.0, 0.0, np.minimum(np.abs(batch.dq), np.abs(earlier)))
        near = 1.0 / (1.0 + (least / (_NEAR * self._slow_below)) ** 2)
        standing: NDArray[np.bool_] = np.all(slow, axis=1)
        gain = 1.0 - np.exp(-self._rate * h)
        follow = h * (_HELD / _OFFSET_SECONDS if touched else 1.0 / _OFFSET_SECONDS)
        if not touched:  # the mean since the robot stands, until that is long enough
            stood = np.maximum(self._standing(t, standing, begins), np.maximum(h, 1e-9))
            follow = np.where(standing, np.maximum(follow, h / stood), follow)
        offset_gain = np.where(slow, np.minimum(follow, 1.0)[:, None], gain[:, None])
        gains = np.stack([*[np.broadcast_to(gain[:, None], slow.shape)] * 5, offset_gain], axis=1)
        stands = np.broadcast_to(standing[:, None], slow.shape)
        aims = np.stack([slow, stands, near, torque, jerk, np.where(slow, seen.r, 0.0)], axis=1)
        if begins:  # whether the joints stood before is not known
            half = np.full(n, 0.5)
            self._smooth = np.stack([half, half, near[0], torque[0], jerk[0], np.where(slow[0], seen.r[0], 0.0)])
        smooth = self._followed(aims, gains)
        still, all_still, nearly, carried, jerked, offset = (smooth[:, k] for k in range(6))
        friction, parameters = self._postures(seen, begins)
        static = _STATIC * friction
        off = seen.r - np.clip(offset, -static, static)
        beyond = np.sign(off) * np.maximum(np.abs(off) - friction * still * (1.0 - all_still), 0.0)
        parts = [1.0 - still, still, nearly * (1.0 - still), carried**2, jerked, batch.dq**2, parameters]
        self._last = np.stack([tau[-1], torque[-1], batch.dq[-1]])
        moving = t[~standing]
        self._moved = float(moving[-1]) if len(moving) else float(t[0]) if begins else self._moved
        self._time[0] = t[-1]
        return Excused(beyond, np.stack(parts, axis=-1), np.where(stands, static, 0.0))

    def let_go(self, t: float) -> None:
        """A contact is over at time `t` (s): where the robot stands, friction holds what is left."""
        self._moved = t

    def _followed(self, aims: Array, gains: Array) -> Array:
        out, y = np.empty_like(aims), self._smooth
        for k in range(len(aims)):
            y = y + gains[k] * (aims[k] - y)
            out[k] = y
        self._smooth = y
        return out

    def _standing(self, t: Array, standing: NDArray[np.bool_], begins: bool) -> Array:
        """For how long no joint has moved, s."""
        first = t[0] if begins else self._moved
        moved = np.maximum.accumulate(np.append(first, np.where(standing, -np.inf, t)))[1:]
        return np.asarray(t - moved)

    def _postures(self, seen: Seen, begins: bool) -> tuple[Array, Array]:
        """Dry friction, and what the errors of parameters make of the torque, at every sample."""
        batch = seen.batch
        number = np.floor(batch.t / _POSTURE_SECONDS)
        new = np.flatnonzero(np.diff(number, prepend=np.nan if begins else self._time[1]) != 0.0)
        at = np.zeros(len(batch), dtype=int)
        if len(new):
            q, dq = batch.q[new], batch.dq[new]
            found = np.stack([self._observer.dry_friction(q), self._watched.torque_variance(q, dq)], axis=1)
            table = np.concatenate([self._held[None], found])
            at[new] = np.arange(1, len(new) + 1)
            at = np.maximum.accumulate(at)
        else:
            table = self._held[None]
        self._held, self._time[1] = table[-1], number[-1]
        return table[at, 0], table[at, 1]

    def state(self) -> PartState:
        """All that the next sample needs, as arrays."""
        rows = np.concatenate([self._last, self._smooth, self._held])
        return {"scatter_time": np.append(self._time, self._moved), "scatter": rows}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same model."""
        *time, moved = np.array(state["scatter_time"], dtype=float)
        self._time, self._moved = np.array(time), float(moved)
        rows = np.array(state["scatter"], dtype=float)
        self._last, self._smooth, self._held = rows[:3], rows[3:9], rows[9:]
