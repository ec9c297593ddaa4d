"""`DriveBaseline`: normal values of the drives, cold and warm, and their variation, from the first days of work.

Each number of a joint is a level plus a linear function of the three warmths. Ambient temperature affects all joints:
if at least three joints move, the median of their relative friction deviations is subtracted. The remainder varies from
round to round (a multiple of the round's own variance), from morning to morning (in proportion to the cold), and from
day to day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.trends.series_statistics import weighted_mean
from steelyard.watch.drives import DriveRound
from steelyard.watch.monitor_base import SavedArrays, saved_attributes

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
