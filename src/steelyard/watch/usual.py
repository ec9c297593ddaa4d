"""`UsualDrives`: how a robot's drives usually are, cold and warm, and how much that varies; learnt in its first days.

Each number of a joint is a level and three multiples of its warmth. The weather is the same for all joints: where three
or more move, what the friction of all of them has in common (its median, as a part of the model's) is taken away, and
what a joint has alone is left. That scatters by the round (in units of the round's own variance), by the morning (in
proportion to the cold: no two are alike), and by the day.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.watch.drives import DriveRound
from steelyard.watch.parts import PartState

# Rounds that are kept of the first days; when they are more, every second one goes.
_MOST = 2048
# From so many joints on, what they share can be told from what one has alone.
_SHARED = 3
# Rounds of at most this cold are those of a warm robot.
_WARM = 0.3
# The day-to-day scatter before it is known, as a part of the unit (friction, gain), and for how many days that counts.
_DAILY, _AS_DAYS = 0.003, 4.0
# Friction may double when it is cold, not more, before a prior of any weight holds it.
_FALL = 1.0


class UsualDrives:
    """What is usual, per channel (joints × 4, flat).

    Args:
        joints: how many.
    """

    state_rules: ClassVar[Mapping[str, ArrayRule]] = {
        "usual_first": ArrayRule(rows=_MOST, unknown=True),
        **{f"usual_{name}": ArrayRule(unknown=True) for name in ("law", "scatter", "daily")},
    }

    def __init__(self, joints: int) -> None:
        self._n, self._count = joints, 4 * joints
        c = self._count
        self.first = np.zeros((0, 1 + 2 * c + 4 * joints))  # t, x, variance, warmth, cold of the first rounds
        self.units = np.ones(c)  # friction, gain, … of the model, of which parts are told
        self.law = np.zeros((c, 4))  # level, multiples of warmth
        self.scatter = np.ones((2, c))  # by the round, by the cold
        self.daily = np.ones((2, c))  # variance from day to day, and the degrees of freedom it is known with

    @property
    def first_at(self) -> float:
        """When the first round was, s; NaN before."""
        return float(self.first[0, 0]) if len(self.first) else float("nan")

    def remember(self, seen: DriveRound) -> None:
        """Keep a round of the first days, as it was `seen`."""
        row = np.concatenate([[seen.t], seen.x.ravel(), seen.variance.ravel(), seen.warmth.ravel(), seen.cold])
        self.first = np.vstack([self.first, row])
        if len(self.first) > _MOST:
            self.first = np.vstack([self.first[:1], self.first[1::2]])

    def learn(self, units: Array, day_s: float) -> None:
        """Make the laws of all that is remembered, and forget it; `units` (joints, 4), `day_s` s."""
        n, c = self._n, self._count
        t, x, variance, warmth, cold = np.split(self.first, np.cumsum([1, c, c, 3 * n]), axis=1)
        unit = units.ravel()
        w = 1.0 / variance
        F = np.concatenate([np.ones((len(t), n, 1)), warmth.reshape(-1, n, 3)], axis=2).repeat(4, axis=1)
        typical = 1.0 / np.maximum(np.median(w, axis=0), 1e-300)
        ridge = np.zeros((c, 4, 4))
        ridge[:, range(1, 4), range(1, 4)] = (typical / (_FALL * unit) ** 2)[:, None]
        ridge[:, 0, 0] = 1e-9
        N = np.einsum("sca,sc,scb->cab", F, w * typical, F) + ridge
        b = np.einsum("sca,sc,sc->ca", F, w * typical, x)
        self.law = np.linalg.solve(N, b[..., None])[..., 0]
        self.units = unit
        z = self._alone(x - np.einsum("sca,ca->sc", F, self.law), variance)
        cold = cold.repeat(4, axis=1)
        seen = np.isfinite(variance)
        warm = seen & (cold < _WARM)
        ratio = np.where(seen, z**2 * w, 0.0)
        rounds = np.sum(ratio * warm, axis=0) / np.maximum(warm.sum(axis=0), 1)
        self.scatter[0] = np.maximum(rounds, 1e-6)  # below 1 where the variance is that of a prior
        more = np.where(seen & ~warm, z**2 - self.scatter[0] * np.where(seen, variance, 0.0), 0.0)
        self.scatter[1] = np.maximum(np.sum(more, axis=0), 0.0) / np.maximum(
            np.sum(np.where(seen & ~warm, cold**2, 0.0), axis=0), 1e-9
        )
        self.daily[0], self.daily[1] = (_DAILY * unit) ** 2, _AS_DAYS
        day = np.floor(t[:, 0] / day_s)
        before: Array | None = None
        for d in np.unique(day):
            at = day == d
            mean, _ = self.mean(z[at], variance[at], cold[at])
            if before is not None:
                self.follow(mean - before)
            before = mean
        self.first = self.first[:0]

    def _alone(self, z: Array, variance: Array) -> Array:
        """What no other joint has: friction, dry and over velocity, less what is common to all, (rounds, channels)."""
        parts = (z / self.units).reshape(len(z), self._n, 4)
        seen = np.isfinite(variance).reshape(parts.shape)
        shared = np.zeros((len(z), 1, 4))
        enough = seen.sum(axis=1) >= _SHARED
        for k in (0, 1):
            given = np.where(seen[..., k], parts[..., k], np.nan)
            at = enough[:, k]
            shared[at, 0, k] = np.nanmedian(given[at], axis=1) if at.any() else 0.0
        return np.asarray((parts - shared).reshape(z.shape) * self.units)

    def follow(self, difference: Array) -> None:
        """Learn the day-to-day scatter from the `difference` of one day's mean from the day before's."""
        known = np.isfinite(difference)
        squares = np.where(known, 0.5 * difference**2, 0.0)
        self.daily[0] = (self.daily[0] * self.daily[1] + squares) / (self.daily[1] + known)
        self.daily[1] += known

    def beyond(self, seen: DriveRound) -> tuple[Array, Array, Array]:
        """What a round, as `seen`, has beyond the usual; its own variance; that of the cold; each per channel."""
        F = np.concatenate([np.ones((self._n, 1)), seen.warmth], axis=1).repeat(4, axis=0)
        cold = seen.cold.repeat(4)
        z = self._alone((seen.x.ravel() - np.sum(F * self.law, axis=1))[None], seen.variance.reshape(1, -1))[0]
        return z, self.scatter[0] * seen.variance.ravel(), self.scatter[1] * cold**2

    def mean(self, z: Array, variance: Array, cold: Array) -> tuple[Array, Array]:
        """Mean of several rounds and its variance, those of a warm robot counting most; NaN and inf for none.

        Args:
            z: what they have beyond the usual, (rounds, channels).
            variance: of each.
            cold: how cold it was, 0 … 1.
        """
        w = 1.0 / (self.scatter[0] * variance + self.scatter[1] * cold**2)
        total = w.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sum(w * z, axis=0) / total, 1.0 / total

    def state(self) -> PartState:
        """All that was learnt, as arrays."""
        return {f"usual_{name}": np.array(getattr(self, name)) for name in _KEPT}

    def restore(self, state: PartState) -> None:
        """Go on from a `state` of as many joints."""
        for name in _KEPT:
            setattr(self, name, np.array(state[f"usual_{name}"], dtype=float))


_KEPT = ("first", "units", "law", "scatter", "daily")
