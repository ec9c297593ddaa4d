"""How well an assumption accounts for rows y = A x + noise, from their sums N = AᵀA and b = Aᵀy, noise of variance 1.

Everything works on stacks of problems, (…, m, m) and (…, m): a window of time, a cause, a channel each.
"""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array


def log_evidence(mean: Array, covariance: Array, N: Array, b: Array) -> Array:
    """log of the likelihood of rows with sums `N`, `b` where x is expected at `mean` ± `covariance`; that of x = 0: 0.

    The ratio of two such likelihoods exceeds a number c with a probability of less than 1/c if the second is true,
    however often one looks (Ville 1939): error rates follow from it without a distribution.
    """
    m = N.shape[-1]
    u = b - _times(N, mean)
    inner = np.eye(m) + covariance @ N  # (P⁻¹ + N)⁻¹ = (1 + P N)⁻¹ P
    x = np.linalg.solve(inner, _times(covariance, u)[..., None])[..., 0]
    fit = np.sum(b * mean, axis=-1) - 0.5 * np.sum(mean * _times(N, mean), axis=-1)
    return np.asarray(fit + 0.5 * np.sum(u * x, axis=-1) - 0.5 * np.linalg.slogdet(inner)[1])


def learnt(mean: Array, covariance: Array, N: Array, b: Array) -> tuple[Array, Array]:
    """Mean and covariance of x after rows with sums `N`, `b`, before which it was expected at `mean` ± `covariance`."""
    m = N.shape[-1]
    half: Array = np.asarray(np.linalg.solve(np.eye(m) + covariance @ N, covariance), dtype=float)
    P = np.asarray(0.5 * (half + np.swapaxes(half, -1, -2)))
    return np.asarray(mean + _times(P, b - _times(N, mean))), P


def _times(A: Array, x: Array) -> Array:
    return np.asarray(A @ x[..., None])[..., 0]
