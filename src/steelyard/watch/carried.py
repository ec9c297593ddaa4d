"""`CarriedLoad`: the load and what friction has beyond the model, learnt together second by second.

A load adds L θ to the torque, with L the rows of the last link's ten parameters. Friction and offsets wander beside it:
a cold gear must not weigh anything. So the ten parameters of the load and three per joint (dry and viscous friction,
offset, beyond the model's) are learnt together; those of the joints wander over half an hour, the load does not. Every
second it is asked, for several moments in the last quarter of a minute, whether another load since then accounts for
the torques so much better that chance would not do so once between two false alarms. Then the load is learnt anew from
that moment on. The scatter that error bars are made of is the robot's own, as seen so far.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.watch.drives import friction_at
from steelyard.watch.evidence import learnt, log_evidence
from steelyard.watch.parts import PartState
from steelyard.watch.windows import LOOK_S, OFFSET, SPEED

# Moments (looks ago) at which the load may have changed: most are seen within seconds, small ones after a while.
# One second alone proves nothing: a burst of friction fills it.
_SINCE = (2, 3, 4, 6, 8, 12, 16)
# Torque constants, and what gears lose of what they transmit, are known to some percent: so much of a load's torque
# scatters with it, and as a gain that is common to all joints this part of the load stays unknown.
_SCATTER_OF_LOAD, _GAIN_ERROR = 0.05, 0.02
# Seconds with motion before anything is said: the scatter must be known first.
_FIRST = 5
# Friction and offset may be off by so much of the joint's dry friction, …
_OFF = 0.5
# … and wander as far within this time (s): gears warm up over tens of minutes.
_WANDER_S = 1800.0
# After a rest of this part of it nothing is looked for from before: friction is another, not the load.
_REST = 0.05
# A robot that does the same again and again errs in the same way: more than so long (s) of motion tells no more.
_MEMORY_S = 60.0
# The scatter is that of so many seconds of motion.
_SCATTER_S = 300.0
# A look that scatters more than this many times as usual counts as if it did so: something else goes on there.
_ODD = 9.0
# What a model leaves comes in waves of seconds: so many looks are one, for what they tell of the scatter of sums.
_BLOCK = 4
# The columns of a joint that are used, before the residual.
_OWN = 13
_USED = np.array([*range(_OWN), -1])


class _Change(NamedTuple):
    """A change that was found: since when the load is another; None where a joint has jumped."""

    load: float | None


class CarriedLoad:
    """Learns from the Gram matrices of `Looks`.

    Args:
        model: of the robot without load.
        expected: standard deviations of the load's ten parameters before anything was seen.
        false_alarms_hz: how often chance may pass for another load, per second.
    """

    def __init__(self, model: Model, expected: Array, false_alarms_hz: float) -> None:
        self._model, self._n = model, model.robot.dof
        n, m = self._n, 10 + 3 * self._n
        self._m, self._threshold = m, math.log(len(_SINCE) / (false_alarms_hz * LOOK_S))
        self._places = np.array([[*range(10), *range(10 + 3 * j, 13 + 3 * j)] for j in range(n)])
        self._unit = np.concatenate([expected, np.ones(3 * n)])
        self._noise = np.ones(n)  # variance of a window's residual, N² m² (N²)
        self._spread = np.ones(2)  # by how much sums scatter more than those of independent windows; blocks seen
        self._x, self._P = np.zeros(m), np.eye(m)
        self._first = np.zeros((n, _OWN + 1, _OWN + 1))
        depth = _SINCE[-1]
        self._ring_t = np.full(depth, np.nan)  # beginnings of the last looks, the newest last
        self._ring_same = np.zeros(depth)  # how well what was known accounts for each of them
        self._ring_x, self._ring_b = np.zeros((depth, m)), np.zeros((depth, m))
        self._ring_P, self._ring_N = np.zeros((depth, m, m)), np.zeros((depth, m, m))
        self._block_N, self._block_b, self._block_x = np.zeros((m, m)), np.zeros(m), np.zeros(m)
        self._seen = np.zeros(3)  # looks with motion, looks in the ring, looks in the block
        self._last = np.nan

    @property
    def known(self) -> bool:
        """Whether enough was seen for anything to be said."""
        return bool(self._seen[0] >= _FIRST)

    @property
    def parameters(self) -> Array:
        """The ten, kg, kg m, kg m²."""
        return np.asarray(self._unit[:10] * self._x[:10])

    @property
    def covariance(self) -> Array:
        """Of the ten, the common error of torque constants included."""
        gain = _GAIN_ERROR * self.parameters
        return np.asarray(np.outer(self._unit[:10], self._unit[:10]) * self._P[:10, :10] + np.outer(gain, gain))

    def evidence_of_any(self) -> float:
        """log of how much better a load accounts for the torques than none: by its density at none, before and now."""
        x, P = self._x[:10], self._P[:10, :10]
        return float(0.5 * x @ np.linalg.solve(P, x) + 0.5 * np.linalg.slogdet(P)[1])

    def look(self, t: float, gram: Array) -> float | None:
        """Learn from the second that ends at `t` (s), by its `gram`; if the load has changed, the moment, else None."""
        gram = gram[:, _USED[:, None], _USED]
        before, self._last = self._last, t
        self._seen[0] += 1.0
        if self._seen[0] <= _FIRST:
            self._first += gram
            if self.known:
                self._begin()
            return None
        N, b = self._sums(gram)
        fade = np.ones(self._m)
        fade[:10] = np.minimum(np.exp(0.5 * LOOK_S / _MEMORY_S), 1.0 / np.sqrt(np.diag(self._P)[:10]))
        self._P = self._P * np.outer(fade, fade)
        walk = np.arange(10, self._m)
        away = min(max(t - before, LOOK_S) / _WANDER_S, 1.0)  # after a rest they may be anywhere, load or not
        self._P[walk, walk] += away
        if away > _REST:
            self._seen[1:] = 0.0
            self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self._x.copy()
        same = log_evidence(self._x, self._P, N, b)
        new = ("t", before), ("x", self._x), ("P", self._P), ("N", N), ("b", b), ("same", same)
        for name, value in new:
            ring = getattr(self, f"_ring_{name}")
            ring[:-1] = ring[1:]
            ring[-1] = value
        self._seen[1] = min(self._seen[1] + 1.0, _SINCE[-1])
        if self._seen[0] % 2.0 == 0.0 and (changed := self._changed()):  # every other second will do
            return changed.load  # all seconds since then, this one included, were learnt from
        self._x, self._P = learnt(self._x, self._P, N, b)
        self._scatter(gram, N, b)
        return None

    def _begin(self) -> None:
        """What the first seconds tell of the load, beside the scatter that the best load and friction leave in them."""
        first, count = self._first, self._first[:, OFFSET, OFFSET]
        many = np.maximum(count, 1.0)
        rms = np.sqrt(np.maximum(first[:, -1, -1] / many, 1e-12))
        slow = np.array([10.0 * SMOOTHING_SPEED[joint.kind] for joint in self._model.robot.joints])
        off = np.maximum(_OFF * friction_at(self._model, slow), 0.1 * rms)
        speed = np.sqrt(np.maximum(first[:, SPEED, SPEED] / many, 1e-6))
        self._unit[10:] = np.stack([off, off / speed, off], axis=1).reshape(-1)
        self._noise = rms**2
        for _ in range(5):
            N, b = self._sums(first)
            self._x, self._P = learnt(np.zeros(self._m), np.eye(self._m), N, b)
            used = [np.sum(self._P[np.ix_(p, p)] * first[j, :_OWN, :_OWN] * np.outer(self._unit[p], self._unit[p]))
                    for j, p in enumerate(self._places)] / self._noise  # fmt: skip
            left = self._residual(first) / np.maximum(count - used, 0.25 * many)
            self._noise = np.where(count > 0.0, np.maximum(left, 1e-12), self._noise)
        self._block_x = self._x.copy()

    def _sums(self, gram: Array) -> tuple[Array, Array]:
        """N and b of all joints' rows, each divided by its scatter, in units of what is expected."""
        N, b = np.zeros((self._m, self._m)), np.zeros(self._m)
        load = self.parameters
        torque = np.einsum("a,jab,b->j", load, gram[:, :10, :10], load) / np.maximum(gram[:, OFFSET, OFFSET], 1.0)
        weight = 1.0 / ((self._noise + _SCATTER_OF_LOAD**2 * torque) * self._spread[0])
        unit, n = self._unit[self._places], self._n
        squares = gram[:, :_OWN, :_OWN] * (weight[:, None, None] * unit[:, :, None] * unit[:, None, :])
        rows, own = gram[:, :_OWN, -1] * (weight[:, None] * unit), self._places[:, 10:]
        N[:10, :10], b[:10] = squares[:, :10, :10].sum(axis=0), rows[:, :10].sum(axis=0)
        N[:10, 10:], b[10:] = squares[:, :10, 10:].swapaxes(0, 1).reshape(10, 3 * n), rows[:, 10:].ravel()
        N[10:, :10] = N[:10, 10:].T
        N[own[:, :, None], own[:, None, :]] = squares[:, 10:, 10:]
        return N, b

    def _residual(self, gram: Array) -> Array:
        """The squares that load and friction leave, joint by joint."""
        z = (self._unit * self._x)[self._places]
        left = gram[:, -1, -1] - 2.0 * np.sum(z * gram[:, :_OWN, -1], axis=1)
        return np.asarray(np.maximum(left + np.einsum("ja,jab,jb->j", z, gram[:, :_OWN, :_OWN], z), 0.0))

    def _changed(self) -> _Change | None:
        """What accounts better for the torques than all that was known, if anything; it is learnt since then."""
        ago = np.array([k for k in _SINCE if k <= self._seen[1]])
        if not len(ago):
            return None
        N = np.cumsum(self._ring_N[::-1], axis=0)[ago - 1]
        b = np.cumsum(self._ring_b[::-1], axis=0)[ago - 1]
        mean, P = self._ring_x[-ago], self._ring_P[-ago]
        # Friction wanders within these seconds, too: as each of them was expected from those before it.
        same = np.cumsum(self._ring_same[::-1])[ago - 1]
        load = self._anew(mean, P, np.arange(10))
        gain = log_evidence(*load, N, b) - same
        best = int(np.argmax(gain))
        if gain[best] < self._threshold:
            return None
        # A sensor that jumps, or a joint that suddenly rubs, is no load: whatever accounts best for it.
        others = [self._anew(mean, P, p[10:]) for p in self._places]
        gains = np.array([log_evidence(*other, N, b) - same for other in others])
        joint, other_best = np.unravel_index(int(np.argmax(gains)), gains.shape)
        is_load = bool(gain[best] > gains[joint, other_best])
        (x, P), best = (load, best) if is_load else (others[joint], int(other_best))
        # Its first second may hold both what was and what is: it does not count where that is as sure as the change.
        first = self._ring_N[-ago[best]], self._ring_b[-ago[best]]
        after = learnt(x[best], P[best], N[best] - first[0], b[best] - first[1])
        other = log_evidence(x[best], P[best], *first) - log_evidence(*after, *first)
        self._x, self._P = after if other > self._threshold else learnt(*after, *first)
        self._seen[1:] = 0.0
        self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self._x.copy()
        return _Change(float(self._ring_t[-ago[best]]) if is_load else None)

    @staticmethod
    def _anew(mean: Array, P: Array, which: NDArray[np.int64]) -> tuple[Array, Array]:
        """Expected before anything was seen of some of the parameters, and as known so far of the others."""
        mean, P = mean.copy(), P.copy()
        mean[:, which] = 0.0
        P[:, which] = P[:, :, which] = 0.0
        P[:, which, which] = 1.0
        return mean, P

    def _scatter(self, gram: Array, N: Array, b: Array) -> None:
        """Follow the scatter of windows, and that of sums over some seconds."""
        count = gram[:, OFFSET, OFFSET]
        left = np.minimum(self._residual(gram) / np.maximum(count, 1.0), _ODD * self._noise)
        self._noise += np.where(count > 0.0, count / (count + 5.0 * _SCATTER_S), 0.0) * (left - self._noise)
        self._block_N += N
        self._block_b += b
        self._seen[2] += 1.0
        if self._seen[2] < _BLOCK:
            return
        # The score of a block has the covariance N + N P N, if windows were independent; P is small beside 1/N.
        u, m = self._block_b - self._block_N @ self._block_x, self._m
        expected = self._block_N + self._block_N @ self._P @ self._block_N
        inverse = np.linalg.inv(expected + 1e-3 * np.trace(expected) / m * np.eye(m))
        ratio = min(float(u @ inverse @ u) / float(np.trace(inverse @ expected)), _ODD)
        seen = min(self._spread[1], _SCATTER_S / _BLOCK)
        now = self._spread[0] * ratio  # the rows were divided by the spread that was
        self._spread[:] = max(1.0, (self._spread[0] * seen + now) / (seen + 1.0)), self._spread[1] + 1.0
        self._seen[2] = 0.0
        self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self._x.copy()

    def state(self) -> PartState:
        """All that was learnt, as arrays."""
        return {f"carried_{name}": np.array(getattr(self, f"_{name}")) for name in _KEPT}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of the same model."""
        for name in _KEPT:
            value = np.array(state[f"carried_{name}"], dtype=float)
            setattr(self, f"_{name}", value if value.ndim else float(value))


_KEPT = ("unit", "noise", "spread", "x", "P", "first", "ring_t", "ring_same", "ring_x", "ring_P", "ring_N", "ring_b",
         "block_N", "block_b", "block_x", "seen", "last")  # fmt: skip
