"""Bayesian linear regression of y = A x + noise of variance 1, from the sums N = AᵀA and b = Aᵀy.

All functions work on stacks of problems, shapes (…, m, m) and (…, m).
"""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array


def log_evidence(mean: Array, covariance: Array, N: Array, b: Array) -> Array:
    """Compute the log marginal likelihood of the rows relative to x = 0.

    If the second of two such likelihoods is true, their ratio exceeds c with a probability below 1/c, however often it
    is evaluated (Ville 1939). Error rates follow without further assumptions.

    Args:
        mean: Prior mean of x.
        covariance: Prior covariance of x.
        N: AᵀA.
        b: Aᵀy.
    """
    m = N.shape[-1]
    u = b - _times(N, mean)
    inner = np.eye(m) + covariance @ N  # (P⁻¹ + N)⁻¹ = (1 + P N)⁻¹ P
    x = np.linalg.solve(inner, _times(covariance, u)[..., None])[..., 0]
    fit = np.sum(b * mean, axis=-1) - 0.5 * np.sum(mean * _times(N, mean), axis=-1)
    return np.asarray(fit + 0.5 * np.sum(u * x, axis=-1) - 0.5 * np.linalg.slogdet(inner)[1])


def posterior(mean: Array, covariance: Array, N: Array, b: Array) -> tuple[Array, Array]:
    """Compute the posterior mean and covariance of x.

    Args:
        mean: Prior mean of x.
        covariance: Prior covariance of x.
        N: AᵀA.
        b: Aᵀy.
    """
    m = N.shape[-1]
    half: Array = np.asarray(np.linalg.solve(np.eye(m) + covariance @ N, covariance), dtype=float)
    P = np.asarray(0.5 * (half + np.swapaxes(half, -1, -2)))
    return np.asarray(mean + _times(P, b - _times(N, mean))), P


def _times(A: Array, x: Array) -> Array:
    return np.asarray(A @ x[..., None])[..., 0]
