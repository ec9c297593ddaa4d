"""Consistency tests of filters: normalised innovations, and the steps of the parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from steelyard.ground.arrays import Array
from steelyard.ground.moments import Moments

# Probability that a consistent filter is reported as overconfident.
FALSE_ALARM = 1e-3
# Factor by which variances may be too small: 95 % intervals then still contain 92 % of the true values.
VARIANCE_TOLERANCE = float((norm.ppf(0.975) / norm.ppf(0.96)) ** 2)
# Number of stored parameter snapshots (at most twice as many), blocks of innovations.
_SNAPSHOTS, _BLOCKS = 8, 50
# Directions whose variance decreased by less than this share are omitted: their steps are rounding.
_MIN_DECREASE = 1e-3
# Time [s], base parameters, their covariance.
ParameterSnapshot = tuple[float, Array, Array]


@dataclass(frozen=True)
class SquaresRatio:
    """Ratio of a sum of squares to its expected value, and the number of independent squares."""

    value: float
    count: int

    @property
    def limit(self) -> float:
        """Limit that a consistent filter exceeds with probability `FALSE_ALARM`, for all four ratios together."""
        return VARIANCE_TOLERANCE * float(chi2.ppf(1.0 - FALSE_ALARM / 4.0, max(self.count, 1))) / max(self.count, 1)

    @property
    def passes(self) -> bool:
        return self.count == 0 or self.value <= self.limit


@dataclass(eq=False)
class Consistency:
    """Data of a filter for its consistency tests.

    In a consistent filter normalised innovations are independent with variance one. So are the steps of its parameters
    between snapshots, whose covariance is the decrease of the variances.

    Attributes:
        innovations: Normalised innovations of all samples.
        snapshots: Snapshots of the parameters.
        drift: Variance per second of drifting parameters.
        more: Other ratios that a filter adds.
    """

    innovations: list[Array] = field(default_factory=list)
    snapshots: Moments[ParameterSnapshot] = field(default_factory=lambda: Moments(2 * _SNAPSHOTS))
    drift: float | Array = 0.0
    more: dict[str, SquaresRatio] = field(default_factory=dict)

    def add_snapshot(self, t: float, beta: Array, covariance: Array) -> None:
        """Add a snapshot of the parameters.

        Args:
            t: Time since the beginning [s].
            beta: Base parameters.
            covariance: Covariance of `beta`.
        """
        self.snapshots.add((t, beta.copy(), covariance.copy()))

    def ratios(self) -> dict[str, SquaresRatio]:
        """Compute the ratios: of innovations, of their sums over a fiftieth of the log, of the parameters' steps.

        The sums are small for white innovations. The first step is separate, because it tests the prior.
        """
        e = np.array(self.innovations)
        if not e.size or not np.all(np.isfinite(e)):
            return {}
        length = ceil(len(e) / _BLOCKS)
        count = len(e) // length
        sums = e[: count * length].reshape(count, length, -1).sum(axis=1) / length**0.5
        steps = [self._step(*pair) for pair in pairwise(self.snapshots.all)]
        return {
            "innovations": SquaresRatio(float(np.mean(e**2)), e.size),
            "sums of innovations": SquaresRatio(float(np.mean(sums**2)), sums.size),
            "first step of the parameters": _combine(steps[:1]),
            "later steps of the parameters": _combine(steps[1:]),
        }

    def _step(self, one: ParameterSnapshot, two: ParameterSnapshot) -> tuple[float, int]:
        (before, old, P), (after, new, remaining) = one, two
        P = P + np.diag(np.broadcast_to(self.drift, old.shape) * (after - before))
        scale = np.sqrt(np.diag(P))
        try:
            half = np.linalg.cholesky(P / np.outer(scale, scale))
        except np.linalg.LinAlgError:
            return 0.0, 0
        inner = np.linalg.solve(half, np.linalg.solve(half, remaining / np.outer(scale, scale)).T)
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        informative = 1.0 - values > _MIN_DECREASE
        move = vectors.T @ np.linalg.solve(half, (new - old) / scale)
        return float(np.sum(move[informative] ** 2 / (1.0 - values[informative]))), int(informative.sum())

    def verdict(self) -> tuple[float, str, dict[str, Any]]:
        """Return the factor for the variances (1: consistent), the reason, and all ratios with their limits."""
        ratios = self.ratios() | self.more
        failed = {name: r for name, r in ratios.items() if not r.passes}
        summary = {name: {"ratio": r.value, "limit": r.limit, "count": r.count} for name, r in ratios.items()}
        why = "; ".join(f"{name} {r.value:.3g} times ({r.limit:.3g} allowed)" for name, r in failed.items())
        return max((r.value for r in failed.values()), default=1.0), why, summary


def _combine(steps: list[tuple[float, int]]) -> SquaresRatio:
    count = sum(n for _, n in steps)
    return SquaresRatio(sum(s for s, _ in steps) / max(count, 1), count)
