"""Variance of least squares from fits that each leave out a block of time.

Unmodelled friction biases the parameters differently in every motion. Noise does not explain this scatter; fits
without one block show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# 5 or 10 blocks underestimate the scatter, and for a plant without model errors the error bars are too wide. Chosen on
# two plants (docs/theory/error-bars.md).
JACKKNIFE_BLOCKS = 20
# Added to the scaled normal equations: unknowns that only one block excites stay small when it is left out.
_RIDGE = 1e-12


def jackknife(estimates: Sequence[Array]) -> Array:
    """Compute the variance of each entry of an estimate from `estimates` that each leave out one block."""
    x = np.array(estimates)
    return np.asarray((len(x) - 1) / len(x) * np.sum((x - x.mean(axis=0)) ** 2, axis=0))


def block_jackknife(data: RegressionData, columns: Columns, residual_std: ArrayLike) -> Array:
    """Compute the variance of each unknown, including noise, from blocks of time.

    The scatter that the jackknife adds if a log has few more rows than unknowns is divided out.

    Args:
        data: Rows in order of time.
        columns: Unknowns.
        residual_std: Standard deviation of each equation's residuals, used as weights [N m, N].
    """
    return np.asarray(np.sum(block_deviations(data, columns, residual_std) ** 2, axis=0))


def block_deviations(data: RegressionData, columns: Columns, residual_std: ArrayLike) -> Array:
    """Compute the contribution of each block to the estimate, shape (blocks, unknowns).

    Their squares add up to the variances of `block_jackknife`, their outer products to the covariance.

    Args:
        data: Rows in order of time.
        columns: Unknowns.
        residual_std: Standard deviation of each equation's residuals, used as weights [N m, N].
    """
    size = columns.rank
    grams = np.zeros((JACKKNIFE_BLOCKS, size + 1, size + 1))
    totals, weights = data.factor().rows, 1.0 / np.maximum(np.asarray(residual_std, dtype=float), 1e-300)
    rows_before = [0] * len(data.equations)
    with one_blas_thread():
        for block in data.blocks():
            e = block.equation
            own, places = data.equations[e].among(columns.independent)
            table = weights[e] * np.column_stack([block.A[:, own], block.y])
            number = (rows_before[e] + np.arange(len(block.y))) * JACKKNIFE_BLOCKS // max(totals[e], 1)
            rows_before[e] += len(block.y)
            where = np.append(places, size)
            for b in np.unique(number):
                rows = table[number == b]
                grams[b][np.ix_(where, where)] += rows.T @ rows
        scale = 1.0 / np.sqrt(np.maximum(np.diag(grams.sum(axis=0)), 1e-300))
        scaled = grams * np.outer(scale, scale)
        inverses = np.array([np.linalg.inv(_without(scaled, b)) for b in range(len(scaled))])
        sides = scaled[:, :-1, -1].sum(axis=0) - scaled[:, :-1, -1]
        estimates = np.einsum("bpq,bq->bp", inverses, sides) * scale[:-1] / scale[-1]
        excess = np.maximum(_excess(scaled[:, :-1, :-1], inverses), 1.0)
    deviation = estimates - estimates.mean(axis=0)
    return np.asarray(np.sqrt((JACKKNIFE_BLOCKS - 1) / JACKKNIFE_BLOCKS / excess) * deviation)


def _without(grams: Array, block: int) -> Array:
    """Normal equations of all blocks except one."""
    rest = grams.sum(axis=0) - grams[block]
    return np.asarray(rest[:-1, :-1] + _RIDGE * np.eye(len(rest) - 1))


def _excess(grams: Array, inverses: Array) -> Array:
    """Ratio of the expected jackknife variances to the true ones, for white noise.

    If blocks have few more independent rows than unknowns, fits without one block scatter far more than the whole fit.
    With K_b = (G − G_b)⁻¹ and κ_c = Σ_{b≠c} K_b/B the mean of Σ_b(x_b − x̄)² is Σ_b K_b − B Σ_c κ_c G_c κ_c.

    Args:
        grams: G_b, normal matrices of the blocks, rows weighted to unit noise.
        inverses: K_b.
    """
    count = len(grams)
    total = np.sum(inverses, axis=0)
    scatter = np.diag(total).copy()
    for K, gram in zip(inverses, grams, strict=True):
        mean = (total - K) / count
        scatter -= count * np.einsum("pq,qr,pr->p", mean, gram, mean, optimize=True)
    whole = np.linalg.inv(grams.sum(axis=0) + _RIDGE * np.eye(len(total)))
    return np.asarray((count - 1) / count * scatter / np.diag(whole))
