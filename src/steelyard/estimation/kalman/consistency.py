"""Whether a filter knows how good it is: its normalised innovations, and the steps they made the parameters take."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from steelyard.ground.arrays import Array
from steelyard.ground.moments import Moments

# A consistent filter is called overconfident once in so many logs.
FALSE_ALARM = 1e-3
# Variances may be this much too small: then 95 % intervals still hold 92 % of truths.
TOLERATED = float((norm.ppf(0.975) / norm.ppf(0.96)) ** 2)
# Moments of the parameters that are kept (at most twice as many), blocks of innovations.
_MOMENTS, _BLOCKS = 8, 50
# A direction that a stretch has told less about than this part of its variance has not moved but by rounding.
_TOLD = 1e-3
# Time, s; base parameters; their covariance.
Moment = tuple[float, Array, Array]


@dataclass(frozen=True)
class SquaresRatio:
    """A sum of squares over what the filter expected of it, and how many independent ones there are."""

    value: float
    count: int

    @property
    def limit(self) -> float:
        """What a consistent filter exceeds in `FALSE_ALARM` of all logs, all four ratios together."""
        return TOLERATED * float(chi2.ppf(1.0 - FALSE_ALARM / 4.0, max(self.count, 1))) / max(self.count, 1)

    @property
    def passes(self) -> bool:
        return self.count == 0 or self.value <= self.limit


@dataclass(eq=False)
class Consistency:
    """What is gathered along a filter's way, and the verdict at its end.

    Normalised innovations are independent, with variance one, where the filter is right; so are the steps of its
    parameters from moment to moment, whose covariance is what the variances shrank by in between.
    `more` are ratios that a filter adds of its own.
    """

    innovations: list[Array] = field(default_factory=list)
    moments: Moments[Moment] = field(default_factory=lambda: Moments(2 * _MOMENTS))
    drift: float | Array = 0.0
    more: dict[str, SquaresRatio] = field(default_factory=dict)

    def keep(self, t: float, beta: Array, covariance: Array) -> None:
        """A moment of the parameters: `t`, s, after the beginning, `beta` with its `covariance`."""
        self.moments.add((t, beta.copy(), covariance.copy()))

    def ratios(self) -> dict[str, SquaresRatio]:
        """Of the innovations' size, of their sums over a fiftieth of the log each, of the parameters' steps.

        Sums stay small where innovations are white. The first step, away from the start, is told apart: it judges the
        prior.
        """
        e = np.array(self.innovations)
        if not e.size or not np.all(np.isfinite(e)):
            return {}
        length = ceil(len(e) / _BLOCKS)
        count = len(e) // length
        sums = e[: count * length].reshape(count, length, -1).sum(axis=1) / length**0.5
        steps = [self._step(*pair) for pair in pairwise(self.moments.all)]
        return {
            "innovations": SquaresRatio(float(np.mean(e**2)), e.size),
            "sums of innovations": SquaresRatio(float(np.mean(sums**2)), sums.size),
            "first step of the parameters": _joined(steps[:1]),
            "later steps of the parameters": _joined(steps[1:]),
        }

    def _step(self, one: Moment, two: Moment) -> tuple[float, int]:
        (before, old, P), (after, new, left) = one, two
        P = P + np.diag(np.broadcast_to(self.drift, old.shape) * (after - before))
        scale = np.sqrt(np.diag(P))
        try:
            half = np.linalg.cholesky(P / np.outer(scale, scale))
        except np.linalg.LinAlgError:
            return 0.0, 0
        inner = np.linalg.solve(half, np.linalg.solve(half, left / np.outer(scale, scale)).T)
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        told = 1.0 - values > _TOLD
        move = vectors.T @ np.linalg.solve(half, (new - old) / scale)
        return float(np.sum(move[told] ** 2 / (1.0 - values[told]))), int(told.sum())

    def verdict(self) -> tuple[float, str, dict[str, Any]]:
        """By how much variances are to be widened (1: consistent), why, and all ratios with their limits."""
        found = self.ratios() | self.more
        failed = {name: r for name, r in found.items() if not r.passes}
        told = {name: {"ratio": r.value, "limit": r.limit, "count": r.count} for name, r in found.items()}
        why = "; ".join(f"{name} {r.value:.3g} times ({r.limit:.3g} allowed)" for name, r in failed.items())
        return max((r.value for r in failed.values()), default=1.0), why, told


def _joined(steps: list[tuple[float, int]]) -> SquaresRatio:
    count = sum(n for _, n in steps)
    return SquaresRatio(sum(s for s, _ in steps) / max(count, 1), count)
