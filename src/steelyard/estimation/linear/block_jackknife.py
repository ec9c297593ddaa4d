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

    Args:
        data: the rows, in the order of time.
        columns: what is solved for.
        residual_std: of each equation, by which its rows are weighted, N m (N).
    """
    return np.asarray(np.sum(block_deviations(data, columns, residual_std) ** 2, axis=0))


def block_deviations(data: RegressionData, columns: Columns, residual_std: ArrayLike) -> Array:
    """Compute what each block adds to the estimate, shape (blocks, unknowns).

    Their squares add up to the variances of `block_jackknife`, their outer products to the whole covariance.

    Args:
        data: Rows, in the order of time.
        columns: What is solved for.
        residual_std: Of each equation, by which its rows are weighted, N m (N).
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
        whole = grams.sum(axis=0)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(whole), 1e-300))
        estimates = []
        for gram in grams:
            left = (whole - gram) * np.outer(scale, scale)
            normal = left[:-1, :-1] + _RIDGE * np.eye(size)
            estimates.append(np.linalg.solve(normal, left[:-1, -1]) * scale[:-1] / scale[-1])
    away = np.array(estimates) - np.mean(estimates, axis=0)
    return np.asarray(np.sqrt((JACKKNIFE_BLOCKS - 1) / JACKKNIFE_BLOCKS) * away)
