"""Error bars of a matched robot: a block jackknife over the windows, and the error of the prior.

With A = Σ H_w + Λ (Λ the prior) the estimate has two errors. The error of the description has the prior covariance and
contributes A⁻¹ Λ A⁻¹. The residuals contain noise and model errors: the changes of the estimate without single windows
measure their effect (jackknife). Blocks of several sizes account for errors that last longer than a window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.short_repr import short_repr
from steelyard.matching.window_fit import WindowFit

# Fewest blocks for a covariance with different factors in different directions.
_FEWEST = 5
# Standard error of a delay from the simulation itself, in steps: the time of a torque within its step is exact to
# second order, the time of a reversal of dry friction only to a step. All windows share this error, so the jackknife
# does not include it.
_TIMING = 0.05


@short_repr
@dataclass(frozen=True, eq=False)
class Posterior:
    """Uncertainty of the coordinates.

    Attributes:
        covariance: Covariance of z.
        prior: Prior variances of z.
        quantile: Factor from standard errors to half widths of 95 % intervals (Student's t).
        inflation: Ratio of the variance from blocks to the variance for independent residuals.
    """

    covariance: Array
    prior: Array
    quantile: float
    inflation: float

    def draws(self, fit: WindowFit, count: int, seed: int) -> Array:
        """Draw coordinates from the posterior, within their bounds, shape (count, coordinates).

        Args:
            fit: Fit with the mean.
            count: Number of draws.
            seed: Seed.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        x = np.random.default_rng(seed).standard_normal((count, len(values))) @ root.T
        return np.asarray(np.maximum(fit.z + x, fit.coordinates.lower), dtype=np.float64)


def posterior_of(fit: WindowFit) -> Posterior:
    """Compute the posterior of a `fit`."""
    from scipy.stats import t as student

    prior = 1.0 / fit.coordinates.stds**2
    H = fit.H.sum(axis=0)
    A = H + np.diag(prior)
    scale = 1.0 / np.sqrt(np.diag(A))
    inverse = np.linalg.inv(A * np.outer(scale, scale)) * np.outer(scale, scale)
    known = inverse * prior @ inverse
    usual = inverse @ H @ inverse
    count = len(fit.windows)
    best: tuple[float, Array, int] | None = None
    inflation, size = 1.0, 1
    while count // size >= 2:
        J, blocks = _jackknife(fit, A, size)
        # Mean ratio of variances over the directions that the data determine; two blocks are enough for it.
        ratio = float(np.trace(A @ J) / max(np.trace(A @ usual), 1e-300))
        inflation = max(inflation, ratio)
        if best is None or (blocks >= _FEWEST and ratio > best[0]):
            best = ratio, J, blocks
        size *= 2
    if best is None:
        return Posterior(known + usual, 1.0 / prior, HALF_WIDTH_95, 1.0)
    # Few blocks give a matrix of low rank; its weight against the classical covariance decreases with the number of
    # parameters.
    determined = float(np.trace(inverse @ H))
    own = best[2] / (best[2] + determined)
    spread = own * best[1] + (1.0 - own) * inflation * usual
    floor = np.sqrt(np.maximum(np.diag(usual) / np.maximum(np.diag(spread), 1e-300), 1.0))
    spread = spread * np.outer(floor, floor)
    place = fit.coordinates.blocks.get("delay")
    if place is not None:
        spread[place, place] += (_TIMING * fit.windows.step) ** 2
    return Posterior(known + spread, 1.0 / prior, float(student.ppf(0.975, max(best[2] - 1, 1))), inflation)


def _jackknife(fit: WindowFit, A: Array, size: int) -> tuple[Array, int]:
    """Covariance by leaving out blocks of `size` consecutive windows, and the number of blocks."""
    edges = list(range(0, len(fit.windows), size))
    if len(edges) > 1 and len(fit.windows) - edges[-1] < size:
        edges.pop()
    moves = []
    for k, first in enumerate(edges):
        last = edges[k + 1] if k + 1 < len(edges) else len(fit.windows)
        part = slice(first, last)
        rest = A - fit.H[part].sum(axis=0)
        moves.append(-np.linalg.solve(rest, fit.g[part].sum(axis=0)))
    D = np.array(moves)
    D = D - D.mean(axis=0)
    G = len(edges)
    return (G - 1) / G * D.T @ D, G


def derived_errors(posterior: Posterior, slope: Array) -> tuple[Array, Array]:
    """Compute standard errors of quantities, and the share of their prior variance that the logs remove.

    Args:
        posterior: Posterior of z.
        slope: Derivatives of the quantities with respect to z.
    """
    variance = np.einsum("ij,jk,ik->i", slope, posterior.covariance, slope)
    before = np.einsum("ij,j,ij->i", slope, posterior.prior, slope)
    informed = 1.0 - np.minimum(variance / np.maximum(before, 1e-300), 1.0)
    return np.sqrt(np.maximum(variance, 0.0)), np.where(before > 0.0, informed, 0.0)
