"""`DriveRounds`: estimates deviations of friction, torque offset and gain from the model, and the warmth of each joint.

Every two minutes (a round) the Gram matrices are solved for a load and four numbers per joint: friction at the joint's
usual speed (dry and viscous friction together, which every motion shows), its slope over velocity, the torque offset
and the error of the torque gain. Warmth is the share of time in motion after low-passes of 10 to 90 minutes, the time
in which gears and motors warm up and cool down.

`DriveBaseline` has the normal values of the drives, cold and warm, and their variation, from the first days of work.
Each number of a joint is a level plus a linear function of the three warmths. Ambient temperature affects all joints:
if at least three joints move, the median of their relative friction deviations is subtracted. The remainder varies from
round to round (a multiple of the round's own variance), from morning to morning (in proportion to the cold), and from
day to day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.payload.recursive import RecursivePayload
from steelyard.trends.series_statistics import weighted_mean
from steelyard.watch.monitor_base import SavedArrays, saved_attributes
from steelyard.watch.windows import DIRECTION, OFFSET, SECOND_S, SPEED, SecondSums

# The four numbers of a joint.
CHANNELS = ("friction", "viscous", "offset", "gain")
# Length of a round, and time constants of warmth, as shares of a day.
_ROUND_DAYS, _WARMTH_DAYS = 1.0 / 720.0, (1.0 / 144.0, 1.0 / 48.0, 1.0 / 16.0)
# A joint must have moved in one direction for this many windows (0.2 s each) to get an estimate in a round.
_MIN_WINDOWS = 20.0
# Prior standard deviations of the four numbers, as shares of friction (three times) and of the gain.
_PRIOR_STD = np.array([1.0, 1.0, 1.0, 0.1])
# The variance of windows is averaged over this many rounds.
_MEMORY_ROUNDS = 100.0
_COLUMNS = 14  # used columns of a joint: load and four numbers


@dataclass(frozen=True, eq=False)
class DriveRound:
    """Estimates of one round.

    Args:
        t: End of the round [s].
        x: Deviations of the four numbers from the model [N m, N m s, N m, share of the torque], shape (joints, 4).
        variance: Variance of each; inf if the joint has not moved enough.
        warmth: From 0 (cold) to 1 (always in motion), shape (joints, 3).
        leaks: Change of each estimate (row) if one number (column) changes by 1, shape (4 joints, 4 joints). It is not
            diagonal if the motion does not separate the numbers.
        cold: Difference from the warmth of the present motion, 1 at the start of work to 0, shape (joints,).
    """

    t: float
    x: Array
    variance: Array
    warmth: Array
    leaks: Array
    cold: Array


def friction_at(model: Model, speed: Array) -> Array:
    """Compute the friction of a model [N m, N].

    Args:
        model: The model.
        speed: Velocities [rad/s, m/s], shape (joints,).
    """
    zeros = np.zeros((1, len(speed)))
    torques = [model.dynamics.bias_torque(zeros, way * speed[None], model.theta)[0] for way in (1.0, -1.0)]
    return np.asarray(0.5 * np.abs(torques[0] - torques[1]))


class DriveRounds(SavedArrays):
    """Collects the sums of seconds to rounds.

    Args:
        model: Model of the robot.
        expected: Prior standard deviations of the ten parameters of a load.
        day_s: Length of a day [s], which scales rounds and time constants.
    """

    saved = saved_attributes("rounds_", "_speed _noise _gram _warmth _moved _at")

    def __init__(self, model: Model, expected: Array, day_s: float) -> None:
        self._model, self._n = model, model.robot.dof
        n = self._n
        self.round_s = _ROUND_DAYS * day_s
        self._lags = day_s * np.array(_WARMTH_DAYS)
        self._expected = expected
        self._speed = np.zeros(n)  # usual speed of each joint, set in its first round
        self._noise = np.full((2, n), np.nan)  # variance of a window, and the number of rounds it comes from
        self._gram = np.zeros((n, _COLUMNS + 1, _COLUMNS + 1))
        self._warmth = np.zeros((n, len(_WARMTH_DAYS)))
        self._moved = np.zeros(n)
        self._at = np.full(2, np.nan)  # number of the round, end of the last second

    @property
    def usual_speed(self) -> Array:
        """Usual speed of every joint [rad/s, m/s]; 0 if it has not moved yet."""
        return self._speed

    def units(self) -> Array:
        """Return the scales of the four numbers, shape (joints, 4): friction F at the usual speed v, F/v, F, 1."""
        speed = np.maximum(self._speed, 1e-3)
        friction = np.maximum(friction_at(self._model, speed), 1e-9)
        return np.stack([friction, friction / speed, friction, np.ones(self._n)], axis=1)

    def update(self, sums: SecondSums) -> list[DriveRound]:
        """Add `sums` of seconds; return the rounds that end with them."""
        out: list[DriveRound] = []
        own = np.r_[0:_COLUMNS, sums.gram.shape[-1] - 1]
        for t, gram, moved in zip(sums.t.tolist(), sums.gram, sums.moved_s, strict=True):
            number = np.floor((t + 0.01 * SECOND_S) / self.round_s)  # seconds end at whole seconds or just after
            if number != self._at[0]:
                if np.isfinite(self._at[0]):
                    out += self._end_round()
                self._at[0] = number
                self._gram[:], self._moved[:] = 0.0, 0.0
            away = max(t - self._at[1], SECOND_S) if np.isfinite(self._at[1]) else np.inf
            fresh = -np.expm1(-SECOND_S / self._lags)
            self._warmth = self._warmth * np.exp(-away / self._lags) + fresh * (moved / SECOND_S)[:, None]
            self._gram += gram[:, own[:, None], own]
            self._moved += moved
            self._at[1] = t
        return out

    def _end_round(self) -> list[DriveRound]:
        gram = self._gram
        count = gram[:, OFFSET, OFFSET]
        if not np.any(count >= _MIN_WINDOWS):
            return []
        usual = np.sqrt(gram[:, SPEED, SPEED] / np.maximum(count, 1.0))
        self._speed = np.where((self._speed == 0.0) & (count >= _MIN_WINDOWS), usual, self._speed)
        # The column v becomes v − s·(usual speed), so that the coefficient of s is friction at the usual speed.
        turn = np.broadcast_to(np.eye(_COLUMNS + 1), gram.shape).copy()
        turn[:, DIRECTION, SPEED] = -self._speed
        gram = np.swapaxes(turn, 1, 2) @ gram @ turn
        x, variance, leaks = self._solve(gram, count)
        share = self._moved / self.round_s
        cold = np.clip(share - self._warmth[:, -1], 0.0, 1.0)
        return [DriveRound(float(self._at[1]), x, variance, self._warmth.copy(), leaks, cold)]

    def _solve(self, gram: Array, count: Array) -> tuple[Array, Array, Array]:
        n = self._n
        units = self.units()
        scale = np.concatenate([self._expected, (_PRIOR_STD * units).reshape(-1)])
        windows = np.maximum(count, 1.0)
        start = np.maximum(gram[:, -1, -1] / windows, 1e-12)
        noise = np.where(np.isnan(self._noise[0]), start, self._noise[0])
        estimate = RecursivePayload(scale, n)
        for _ in range(2):  # the second time with the estimated variance
            N, b = estimate.sums(gram, 1.0 / noise)
            estimate.reset()
            estimate.add(N, b)
            estimated = estimate.residuals(gram) / np.maximum(count - 4.0, 1.0) + 1e-12
            if np.all(np.isfinite(self._noise[0])):
                break
            noise = np.where(count >= _MIN_WINDOWS, estimated, noise)
        enough = count >= _MIN_WINDOWS
        rounds = np.where(np.isnan(self._noise[1]), 0.0, self._noise[1])
        mean = np.where(np.isnan(self._noise[0]), estimated, self._noise[0])
        count_now = np.minimum(rounds, _MEMORY_ROUNDS) + 1.0
        self._noise[0] = np.where(enough, mean + (estimated - mean) / count_now, self._noise[0])
        self._noise[1] = rounds + enough
        variance = (scale**2 * np.diag(estimate.P))[10:].reshape(n, 4)
        leaks = (estimate.P @ N)[10:, 10:] * scale[10:, None] / scale[10:]
        return (scale * estimate.x)[10:].reshape(n, 4), np.where(enough[:, None], variance, np.inf), leaks


# Stored rounds of the first days; beyond this, every second one is dropped.
_MAX_ROUNDS = 2048
# Fewest joints for a median of common deviations.
_MIN_JOINTS = 3
# Rounds with less cold than this count as warm.
_WARM = 0.3
# Prior day-to-day standard deviation as a share of the unit (friction, gain), and its weight in days.
_DAILY_STD, _PRIOR_DAYS = 0.003, 4.0
# Prior standard deviation of the effect of warmth, as a share of friction: cold friction may be twice as large.
_WARMTH_STD = 1.0


class DriveBaseline(SavedArrays):
    """Normal values per channel (joints × 4, flat).

    Args:
        joints: Number of joints.
    """

    saved = saved_attributes("usual_", "first units law scatter daily")
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "usual_first": ArrayRule(rows=_MAX_ROUNDS, unknown=True),
        **{f"usual_{name}": ArrayRule(unknown=True) for name in ("law", "scatter", "daily")},
    }

    def __init__(self, joints: int) -> None:
        self._n, self._count = joints, 4 * joints
        c = self._count
        self.first = np.zeros((0, 1 + 2 * c + 4 * joints))  # t, x, variance, warmth, cold of the first rounds
        self.units = np.ones(c)  # friction, gain, … of the model; deviations are shares of these
        self.law = np.zeros((c, 4))  # level, multiples of warmth
        self.scatter = np.ones((2, c))  # of rounds, of the cold
        self.daily = np.ones((2, c))  # day-to-day variance, and its degrees of freedom

    def collect(self, estimate: DriveRound) -> None:
        """Store the `estimate` of a round of the first days."""
        e = estimate
        row = np.concatenate([[e.t], e.x.ravel(), e.variance.ravel(), e.warmth.ravel(), e.cold])
        self.first = np.vstack([self.first, row])
        if len(self.first) > _MAX_ROUNDS:
            self.first = np.vstack([self.first[:1], self.first[1::2]])

    def fit(self, units: Array, day_s: float) -> None:
        """Fit the baseline to the stored rounds, and delete them.

        Args:
            units: Scales of the four numbers, shape (joints, 4).
            day_s: Length of a day [s].
        """
        n, c = self._n, self._count
        t, x, variance, warmth, cold = np.split(self.first, np.cumsum([1, c, c, 3 * n]), axis=1)
        unit = units.ravel()
        w = 1.0 / variance
        F = np.concatenate([np.ones((len(t), n, 1)), warmth.reshape(-1, n, 3)], axis=2).repeat(4, axis=1)
        typical = 1.0 / np.maximum(np.median(w, axis=0), 1e-300)
        ridge = np.zeros((c, 4, 4))
        ridge[:, range(1, 4), range(1, 4)] = (typical / (_WARMTH_STD * unit) ** 2)[:, None]
        ridge[:, 0, 0] = 1e-9
        N = np.einsum("sca,sc,scb->cab", F, w * typical, F) + ridge
        b = np.einsum("sca,sc,sc->ca", F, w * typical, x)
        self.law = np.linalg.solve(N, b[..., None])[..., 0]
        self.units = unit
        z = self._without_common(x - np.einsum("sca,ca->sc", F, self.law), variance)
        cold = cold.repeat(4, axis=1)
        valid = np.isfinite(variance)
        warm = valid & (cold < _WARM)
        ratio = np.where(valid, z**2 * w, 0.0)
        rounds = np.sum(ratio * warm, axis=0) / np.maximum(warm.sum(axis=0), 1)
        self.scatter[0] = np.maximum(rounds, 1e-6)  # below 1 if the variance comes mostly from the prior
        more = np.where(valid & ~warm, z**2 - self.scatter[0] * np.where(valid, variance, 0.0), 0.0)
        self.scatter[1] = np.maximum(np.sum(more, axis=0), 0.0) / np.maximum(
            np.sum(np.where(valid & ~warm, cold**2, 0.0), axis=0), 1e-9
        )
        self.daily[0], self.daily[1] = (_DAILY_STD * unit) ** 2, _PRIOR_DAYS
        day = np.floor(t[:, 0] / day_s)
        before: Array | None = None
        for d in np.unique(day):
            at = day == d
            mean, error = weighted_mean(z[at], self.scatter[0] * variance[at] + self.scatter[1] * cold[at] ** 2)
            mean = np.where(np.isfinite(error), mean, np.nan)
            if before is not None:
                self.update_daily(mean - before)
            before = mean
        self.first = self.first[:0]

    def _without_common(self, z: Array, variance: Array) -> Array:
        """Subtract the common relative deviation of both friction numbers, shape (rounds, channels)."""
        shares = (z / self.units).reshape(len(z), self._n, 4)
        valid = np.isfinite(variance).reshape(shares.shape)
        common = np.zeros((len(z), 1, 4))
        enough = valid.sum(axis=1) >= _MIN_JOINTS
        for k in (0, 1):
            values = np.where(valid[..., k], shares[..., k], np.nan)
            at = enough[:, k]
            common[at, 0, k] = np.nanmedian(values[at], axis=1) if at.any() else 0.0
        return np.asarray((shares - common).reshape(z.shape) * self.units)

    def update_daily(self, difference: Array) -> None:
        """Update the day-to-day variance with the `difference` of the means of two successive days."""
        valid = np.isfinite(difference)
        squares = np.where(valid, 0.5 * difference**2, 0.0)
        self.daily[0] = (self.daily[0] * self.daily[1] + squares) / (self.daily[1] + valid)
        self.daily[1] += valid

    def deviation(self, estimate: DriveRound) -> tuple[Array, Array, Array]:
        """Return the deviation of an `estimate` per channel, its own variance, and the variance of the cold."""
        F = np.concatenate([np.ones((self._n, 1)), estimate.warmth], axis=1).repeat(4, axis=0)
        cold = estimate.cold.repeat(4)
        z = self._without_common(
            (estimate.x.ravel() - np.sum(F * self.law, axis=1))[None], estimate.variance.reshape(1, -1)
        )[0]
        return z, self.scatter[0] * estimate.variance.ravel(), self.scatter[1] * cold**2
