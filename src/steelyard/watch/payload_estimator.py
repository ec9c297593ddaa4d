"""`PayloadEstimator`: estimates the payload together with deviations of friction and offsets, second by second.

A payload adds L θ to the torque, with L the regressor of the last link's ten parameters. Friction and offsets drift,
and a cold gear must not look like mass. Therefore the ten parameters of the payload and three per joint (deviations of
dry friction, viscous friction and offset) are estimated together; those of the joints drift within half an hour, the
payload does not. Changes of the payload are tested for several start times in the last 16 s, against a threshold from
the false-alarm rate. After a change the payload is estimated from that moment on. The error bars use the measured
variance of the robot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.estimation.recursion.posterior import log_evidence, posterior
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.payload.recursive import RecursivePayload
from steelyard.watch.drives import friction_at
from steelyard.watch.monitor_base import SavedArrays, saved_attributes
from steelyard.watch.windows import OFFSET, SECOND_S, SPEED

# Start times of a change that are tested, in seconds ago. Most changes are detected within seconds, small ones later.
# One second alone is not enough, because a burst of friction can fill it.
_SINCE = (2, 3, 4, 6, 8, 12, 16)
# Torque constants and gear losses have errors of some percent. The first share of the payload's torque is added to the
# noise; the second is an error of the payload that is common to all joints.
_PAYLOAD_NOISE, _GAIN_ERROR = 0.05, 0.02
# Seconds with motion before the first estimate; they determine the noise.
_FIRST_SECONDS = 5
# Prior standard deviation of friction and offset, as a share of the joint's dry friction …
_FRICTION_STD = 0.5
# … and the time [s] in which they drift as far: gears warm up within tens of minutes.
_DRIFT_S = 1800.0
# After a rest of this share of the drift time, changes are not tested across it, because friction has changed.
_REST = 0.05
# Effective memory [s] of motion: repeated work repeats the same model errors, so more data add no information.
_MEMORY_S = 60.0
# The noise is averaged over this time in motion [s].
_NOISE_S = 300.0
# Largest ratio of the noise of one second to the average; larger values have other causes and are clipped.
_MAX_NOISE_RATIO = 9.0
# Seconds that form a block for the noise of sums, since model errors are correlated over seconds.
_BLOCK = 4
# Used columns of a joint, before the residual.
_COLUMNS = 13
_USED = np.array([*range(_COLUMNS), -1])


class _Change(NamedTuple):
    """A detected change: start time of a new payload; None if a joint has changed."""

    payload_since: float | None


class PayloadEstimator(RecursivePayload, SavedArrays):
    """Estimates the payload from the Gram matrices of `SecondSums`.

    Args:
        model: Model of the robot without payload.
        expected: Prior standard deviations of the payload's ten parameters.
        false_alarms_hz: Accepted rate of false changes [1/s].
    """

    saved = saved_attributes(
        "carried_",
        "unit _noise _spread x P _first _last _ring_t _ring_same _ring_x _ring_P _ring_N _ring_b "
        "_block_N _block_b _block_x",
    ) | {"carried_seen": "_counts"}

    def __init__(self, model: Model, expected: Array, false_alarms_hz: float) -> None:
        self._model, self._n = model, model.robot.dof
        n, m = self._n, 10 + 3 * self._n
        super().__init__(np.concatenate([expected, np.ones(3 * n)]), n)
        self._m, self._threshold = m, math.log(len(_SINCE) / (false_alarms_hz * SECOND_S))
        self._noise = np.ones(n)  # variance of a window's residual, N² m² (N²)
        self._spread = np.ones(2)  # variance of sums relative to independent windows; number of blocks
        self._first = np.zeros((n, _COLUMNS + 1, _COLUMNS + 1))
        depth = _SINCE[-1]
        self._ring_t = np.full(depth, np.nan)  # starts of the last seconds, newest last
        self._ring_same = np.zeros(depth)  # evidence of the present estimate for each of them
        self._ring_x, self._ring_b = np.zeros((depth, m)), np.zeros((depth, m))
        self._ring_P, self._ring_N = np.zeros((depth, m, m)), np.zeros((depth, m, m))
        self._block_N, self._block_b, self._block_x = np.zeros((m, m)), np.zeros(m), np.zeros(m)
        self._counts = np.zeros(3)  # seconds with motion, in the ring, in the block
        self._last = np.nan

    @property
    def is_ready(self) -> bool:
        """Whether there is an estimate."""
        return bool(self._counts[0] >= _FIRST_SECONDS)

    @property
    def covariance(self) -> Array:
        """Covariance of the ten parameters, including the common error of torque constants."""
        gain = _GAIN_ERROR * self.parameters
        return np.asarray(super().covariance + np.outer(gain, gain))

    def evidence(self) -> float:
        """Return the log evidence of a payload against none (Savage-Dickey ratio)."""
        x, P = self.x[:10], self.P[:10, :10]
        return float(0.5 * x @ np.linalg.solve(P, x) + 0.5 * np.linalg.slogdet(P)[1])

    def update(self, t: float, gram: Array) -> float | None:
        """Update the estimate with one second; return the time of a payload change [s], or None.

        Args:
            t: End of the second [s].
            gram: Gram matrices of the joints.
        """
        gram = gram[:, _USED[:, None], _USED]
        before, self._last = self._last, t
        self._counts[0] += 1.0
        if self._counts[0] <= _FIRST_SECONDS:
            self._first += gram
            if self.is_ready:
                self._first_estimate()
            return None
        N, b = self._weighted_sums(gram)
        fade = np.ones(self._m)
        fade[:10] = np.minimum(np.exp(0.5 * SECOND_S / _MEMORY_S), 1.0 / np.sqrt(np.diag(self.P)[:10]))
        self.P = self.P * np.outer(fade, fade)
        joints = np.arange(10, self._m)
        away = min(max(t - before, SECOND_S) / _DRIFT_S, 1.0)  # after a rest they may have drifted
        self.P[joints, joints] += away
        if away > _REST:
            self._counts[1:] = 0.0
            self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self.x.copy()
        same = log_evidence(self.x, self.P, N, b)
        newest = ("t", before), ("x", self.x), ("P", self.P), ("N", N), ("b", b), ("same", same)
        for name, value in newest:
            ring = getattr(self, f"_ring_{name}")
            ring[:-1] = ring[1:]
            ring[-1] = value
        self._counts[1] = min(self._counts[1] + 1.0, _SINCE[-1])
        if self._counts[0] % 2.0 == 0.0 and (change := self._find_change()):  # every other second, to save time
            return change.payload_since  # the estimate includes this second already
        self.add(N, b)
        self._update_noise(gram, N, b)
        return None

    def _first_estimate(self) -> None:
        """Estimate the payload and the noise from the first seconds."""
        first, count = self._first, self._first[:, OFFSET, OFFSET]
        windows = np.maximum(count, 1.0)
        rms = np.sqrt(np.maximum(first[:, -1, -1] / windows, 1e-12))
        slow = np.array([10.0 * SMOOTHING_SPEED[joint.kind] for joint in self._model.robot.joints])
        friction = np.maximum(_FRICTION_STD * friction_at(self._model, slow), 0.1 * rms)
        speed = np.sqrt(np.maximum(first[:, SPEED, SPEED] / windows, 1e-6))
        self.unit[10:] = np.stack([friction, friction / speed, friction], axis=1).reshape(-1)
        self._noise = rms**2
        for _ in range(5):
            N, b = self._weighted_sums(first)
            self.reset()
            self.add(N, b)
            used = [np.sum(self.P[np.ix_(p, p)] * first[j, :_COLUMNS, :_COLUMNS] * np.outer(unit, unit))
                    for j, (p, unit) in enumerate(zip(self.indices, self.unit[self.indices], strict=True))
                    ] / self._noise  # fmt: skip
            noise = self.residuals(first) / np.maximum(count - used, 0.25 * windows)
            self._noise = np.where(count > 0.0, np.maximum(noise, 1e-12), self._noise)
        self._block_x = self.x.copy()

    def _weighted_sums(self, gram: Array) -> tuple[Array, Array]:
        """Return N and b of all joints, weighted by the noise."""
        load = self.parameters
        torque = np.einsum("a,jab,b->j", load, gram[:, :10, :10], load) / np.maximum(gram[:, OFFSET, OFFSET], 1.0)
        return self.sums(gram, 1.0 / ((self._noise + _PAYLOAD_NOISE**2 * torque) * self._spread[0]))

    def _find_change(self) -> _Change | None:
        """Test for a change; if there is one, update the estimate from its start on."""
        ago = np.array([k for k in _SINCE if k <= self._counts[1]])
        if not len(ago):
            return None
        N = np.cumsum(self._ring_N[::-1], axis=0)[ago - 1]
        b = np.cumsum(self._ring_b[::-1], axis=0)[ago - 1]
        mean, P = self._ring_x[-ago], self._ring_P[-ago]
        # Friction also drifts within these seconds: each was predicted from those before it.
        same = np.cumsum(self._ring_same[::-1])[ago - 1]
        load = self._reset(mean, P, np.arange(10))
        gain = log_evidence(*load, N, b) - same
        best = int(np.argmax(gain))
        if gain[best] < self._threshold:
            return None
        # A sensor jump or sudden friction is not a payload; the explanation with the most evidence decides.
        others = [self._reset(mean, P, p[10:]) for p in self.indices]
        gains = np.array([log_evidence(*other, N, b) - same for other in others])
        joint, other_best = np.unravel_index(int(np.argmax(gains)), gains.shape)
        is_load = bool(gain[best] > gains[joint, other_best])
        (x, P), best = (load, best) if is_load else (others[joint], int(other_best))
        # The first second may contain both payloads. It is left out if the evidence for that exceeds the threshold.
        first = self._ring_N[-ago[best]], self._ring_b[-ago[best]]
        after = posterior(x[best], P[best], N[best] - first[0], b[best] - first[1])
        other = log_evidence(x[best], P[best], *first) - log_evidence(*after, *first)
        self.x, self.P = after if other > self._threshold else posterior(*after, *first)
        self._counts[1:] = 0.0
        self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self.x.copy()
        return _Change(float(self._ring_t[-ago[best]]) if is_load else None)

    @staticmethod
    def _reset(mean: Array, P: Array, indices: NDArray[np.int64]) -> tuple[Array, Array]:
        """Reset some parameters to their prior, and keep the others."""
        mean, P = mean.copy(), P.copy()
        mean[:, indices] = 0.0
        P[:, indices] = P[:, :, indices] = 0.0
        P[:, indices, indices] = 1.0
        return mean, P

    def _update_noise(self, gram: Array, N: Array, b: Array) -> None:
        """Update the noise of windows and of sums over some seconds."""
        count = gram[:, OFFSET, OFFSET]
        noise = np.minimum(self.residuals(gram) / np.maximum(count, 1.0), _MAX_NOISE_RATIO * self._noise)
        self._noise += np.where(count > 0.0, count / (count + 5.0 * _NOISE_S), 0.0) * (noise - self._noise)
        self._block_N += N
        self._block_b += b
        self._counts[2] += 1.0
        if self._counts[2] < _BLOCK:
            return
        # The score of a block has the covariance N + N P N if windows are independent; P is small compared to 1/N.
        u, m = self._block_b - self._block_N @ self._block_x, self._m
        expected = self._block_N + self._block_N @ self.P @ self._block_N
        inverse = np.linalg.inv(expected + 1e-3 * np.trace(expected) / m * np.eye(m))
        ratio = min(float(u @ inverse @ u) / float(np.trace(inverse @ expected)), _MAX_NOISE_RATIO)
        blocks = min(self._spread[1], _NOISE_S / _BLOCK)
        now = self._spread[0] * ratio  # rows were divided by the previous spread
        self._spread[:] = max(1.0, (self._spread[0] * blocks + now) / (blocks + 1.0)), self._spread[1] + 1.0
        self._counts[2] = 0.0
        self._block_N[:], self._block_b[:], self._block_x = 0.0, 0.0, self.x.copy()
