"""Linear algebra of a Gaussian fit with a prior: bounds, the weight of the description, error bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from steelyard.ground.arrays import Array
from steelyard.matching.match_coordinates import MatchCoordinates

# Candidates for the prior standard deviation of the links' relative coordinates: from masses with an error of 2 %
# (weighed parts) to masses with an error of a factor of e (guessed values).
_LINK_STDS = np.geomspace(0.02, 1.0, 18)


def solve_bounded(H: Array, b: Array, coordinates: MatchCoordinates) -> Array:
    """Minimise ½ zᵀH z − bᵀz plus the prior, within the bounds.

    Args:
        H: Matrix of the data.
        b: Right side of the data.
        coordinates: Parameters of the match with prior and bounds.
    """
    prior = 1.0 / coordinates.stds**2
    A, y = H + np.diag(prior), b + prior * coordinates.centre
    low = coordinates.lower
    z = coordinates.centre.copy()
    at_bound = np.zeros(len(z), bool)
    for _ in range(20):
        free = ~at_bound
        z = np.where(at_bound, low, 0.0)
        z[free] = _solve(A[np.ix_(free, free)], y[free] - A[np.ix_(free, at_bound)] @ z[at_bound])
        out = free & (z < low)
        pull = A @ z - y
        back = at_bound & (pull < 0.0)
        if not out.any() and not back.any():
            break
        at_bound = (at_bound | out) & ~back
    return np.asarray(np.maximum(z, low))


def _solve(A: Array, y: Array) -> Array:
    d = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    return np.asarray(d * cho_solve(cho_factor(A * np.outer(d, d) + 1e-12 * np.eye(len(d))), d * y))


def chosen_link_std(coordinates: MatchCoordinates, H: Array, b: Array) -> MatchCoordinates:
    """Choose the weight of the described links by the evidence of the data (empirical Bayes).

    Args:
        coordinates: MatchCoordinates.
        H: Matrix of the data, whose weights count independent residuals.
        b: Its right side, b = H z + g.
    """
    scores = [_evidence(replace(coordinates, link_std=float(s)), H, b) for s in _LINK_STDS]
    return replace(coordinates, link_std=float(_LINK_STDS[int(np.argmax(scores))]))


def _evidence(coordinates: MatchCoordinates, H: Array, b: Array) -> float:
    """Logarithm of ∫ exp(−½ zᵀHz + bᵀz) p(z) dz, without constants."""
    std = coordinates.stds
    # x = (z − centre)/std has the prior N(0, 1).
    A = H * np.outer(std, std)
    y = std * (b - H @ coordinates.centre)
    L = np.linalg.cholesky(np.eye(len(std)) + A + 1e-10 * np.diag(np.diag(A)))
    u = np.linalg.solve(L, y)
    return float(0.5 * u @ u - np.sum(np.log(np.diag(L))))
