"""The smallest problem of dry friction: which bodies stay at rest when several rub at once."""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array

_PIVOTS_PER_PLACE = 20
_SWEEPS = 20_000


def solve_box(W: Array, c: Array, lower: Array, upper: Array) -> Array:
    """λ in [lower, upper] such that the acceleration w = c − W λ is zero, or has the sign of the bound that λ sits at.

    W is symmetric and positive (semi)definite, so w is unique. Active sets by principal pivoting with the least
    index first, which ends for positive definite W (Murty 1974) and is exact up to the rounding of one linear
    solve; where W is singular (more places than joints) projected Gauss–Seidel takes over, to 1e-13 of λ's range.
    """
    m = len(c)
    if np.linalg.matrix_rank(W) == m:
        found = _pivot(W, c, lower, upper)
        if found is not None:
            return found
    return _relax(W, c, lower, upper)


def _pivot(W: Array, c: Array, lower: Array, upper: Array) -> Array | None:
    m = len(c)
    at = np.zeros(m, dtype=int)  # −1 at the lower bound, 1 at the upper, 0 between
    slack = 1e-14 * (1.0 + np.abs(upper) + np.abs(lower))
    still = 1e-14 * (1.0 + np.abs(c))
    for _ in range(_PIVOTS_PER_PLACE * m):
        x = np.where(at > 0, upper, lower)
        free = at == 0
        x[free] = np.linalg.solve(W[np.ix_(free, free)], c[free] - W[np.ix_(free, ~free)] @ x[~free])
        w = c - W @ x
        target = np.where(free, np.where(x > upper + slack, 1, np.where(x < lower - slack, -1, 0)), at)
        target = np.where((at > 0) & (w < -still) | (at < 0) & (w > still), 0, target)
        wrong = np.flatnonzero(target != at)
        if not len(wrong):
            return np.clip(x, lower, upper)
        at[wrong[0]] = target[wrong[0]]
    return None


def _relax(W: Array, c: Array, lower: Array, upper: Array) -> Array:
    x = np.clip(np.zeros(len(c)), lower, upper)
    reach = 1e-13 * (1e-12 + float(np.max(upper - lower, initial=0.0)))
    for _ in range(_SWEEPS):
        moved = 0.0
        for k in range(len(c)):
            if W[k, k] > 0.0:
                new = min(max(x[k] + (c[k] - W[k] @ x) / W[k, k], lower[k]), upper[k])
                moved, x[k] = max(moved, abs(new - x[k])), new
        if moved <= reach:
            break
    return x
