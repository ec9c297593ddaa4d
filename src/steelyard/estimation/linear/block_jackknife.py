"""`block_jackknife`: how far least squares changes if a block of time is left out.

What friction has and the model lacks leans on the parameters in another way in every motion. Noise does not explain
this change, fits without one block each show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# With 5 or 10 the others show less, and bars of a plant that rubs as modelled come out too wide (docs/theory/
# error-bars.md has the figures). Chosen on two plants.
JACKKNIFE_BLOCKS = 20
# Added to the scaled normal equations: unknowns that a block alone shows stay small when it is left out.
_RIDGE = 1e-12


def jackknife(estimates: Sequence[Array]) -> Array:
    """The variance of each entry of an estimate, from `estimates` without one block each."""
    x = np.array(estimates)
    return np.asarray((len(x) - 1) / len(x) * np.sum((x - x.mean(axis=0)) ** 2, axis=0))


def block_jackknife(data: RegressionData, columns: Columns, residual_std: ArrayLike) -> Array:
    """The variance of each unknown, noise included; the rows of each equation are cut into blocks of time.

    What the jackknife itself adds, where a log holds little more than its unknowns, is divided out.

    Args:
        data: the rows, in the order of time.
        columns: what is solved for.
        residual_std: of each equation, by which its rows are weighted, N m (N).
    """
    size = columns.rank
    grams = np.zeros((JACKKNIFE_BLOCKS, size + 1, size + 1))
    totals, weights = data.factor().rows, 1.0 / np.maximum(np.asarray(residual_std, dtype=float), 1e-300)
    seen = [0] * len(data.equations)
    with one_blas_thread():
        for block in data.blocks():
            e = block.equation
            here, places = data.equations[e].among(columns.independent)
            table = weights[e] * np.column_stack([block.A[:, here], block.y])
            number = (seen[e] + np.arange(len(block.y))) * JACKKNIFE_BLOCKS // max(totals[e], 1)
            seen[e] += len(block.y)
            where = np.append(places, size)
            for b in np.unique(number):
                rows = table[number == b]
                grams[b][np.ix_(where, where)] += rows.T @ rows
        scale = 1.0 / np.sqrt(np.maximum(np.diag(grams.sum(axis=0)), 1e-300))
        scaled = grams * np.outer(scale, scale)
        inverses: list[Array] = [np.asarray(np.linalg.inv(_without(scaled, b))) for b in range(len(scaled))]
        sides = scaled[:, :-1, -1].sum(axis=0) - scaled[:, :-1, -1]
        estimates = [K @ side * scale[:-1] / scale[-1] for K, side in zip(inverses, sides, strict=True)]
        return jackknife(estimates) / np.maximum(_excess(scaled[:, :-1, :-1], inverses), 1.0)


def _without(grams: Array, block: int) -> Array:
    """The normal equations of all blocks but one."""
    left = grams.sum(axis=0) - grams[block]
    return np.asarray(left[:-1, :-1] + _RIDGE * np.eye(len(left) - 1))


def _excess(grams: Array, inverses: Sequence[Array]) -> Array:
    """The mean of the jackknife's variances over the true ones, for white noise.

    Where blocks hold hardly more independent rows than there are unknowns, each fit without one of them scatters far
    more than the whole one. With K_b = (G − G_b)⁻¹ and κ_c = Σ_{b≠c} K_b/B the mean of Σ_b(x_b − x̄)² is
    Σ_b K_b − B Σ_c κ_c G_c κ_c.

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
