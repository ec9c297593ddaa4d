"""Information of rows: identifiable combinations of base parameters, and sums of squared errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array
from steelyard.regression._structure import HIDDEN
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import Factor

# Singular values of the data below this share of the largest are rounding.
_RANK = 1e-9


def determined(base: BaseParameters, factor: Factor, weights: Array) -> tuple[BaseParameters, Array, Array]:
    """Return the combinations of base parameters that rows determine, their triangle, and their free fit.

    Args:
        base: Base parameters.
        factor: Rows.
        weights: Weight of each equation (1/σ).
    """
    triangle = factor.combined_triangle(weights, base.independent)
    R, y = triangle[:-1, :-1], triangle[:-1, -1]
    if not np.all(np.isfinite(R)):
        raise EstimationError("The rows are not finite; mask or correct the samples.")
    reduced, kept = shown_base(base, R, _RANK)
    if reduced is base:
        return base, R, np.asarray(np.linalg.solve(R, y), dtype=float)
    q, upper = np.linalg.qr(R[:, kept])
    return reduced, np.asarray(upper, dtype=float), np.asarray(np.linalg.solve(upper, q.T @ y), dtype=float)


def shown_base(base: BaseParameters, W: Array, tolerance: float) -> tuple[BaseParameters, NDArray[np.int64]]:
    """Return the identifiable combinations of base parameters, and the indices of their leading parameters.

    Args:
        base: Base parameters.
        W: Rows, or their triangle, over the columns of the base parameters.
        tolerance: Singular values of the scaled columns below this share of the largest are zero.
    """
    scale = np.linalg.norm(W, axis=0)
    scale = np.where(scale > HIDDEN * float(scale.max(initial=0.0)), scale, 0.0)  # smaller columns are rounding
    scaled = np.where(scale > 0.0, W, 0.0) / np.where(scale > 0.0, scale, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False)
    rank = int(np.sum(values > tolerance * max(float(values[0]), 1e-300)))
    if rank == base.rank:
        return base, np.arange(rank)
    from scipy.linalg import qr

    # Earlier parameters lead: a column is dependent if earlier columns explain it.
    order = qr(scaled * np.linspace(1.0, 0.5, base.rank), mode="economic", pivoting=True)[2]
    kept = np.sort(order[:rank])
    rest = np.setdiff1d(np.arange(base.rank), kept)
    relation = np.linalg.lstsq(scaled[:, kept], scaled[:, rest], rcond=None)[0]
    relation[np.abs(relation) < 1e-7] = 0.0
    relation *= np.where(scale[rest] > 0.0, scale[rest], 0.0) / scale[kept][:, None]
    reduced = replace(
        base,
        independent=tuple(base.independent[k] for k in kept),
        matrix=base.matrix[kept] + relation @ base.matrix[rest],
        formulas=tuple(_sum(base, kept[i], rest, relation[i]) for i in range(rank)),
    )
    return reduced, kept


def _sum(base: BaseParameters, lead: int, rest: Array, factors: Array) -> str:
    """Write a combination of base parameters."""
    parts = [base.formulas[lead]]
    for k, factor in zip(rest, factors, strict=True):
        if factor:
            parts.append(f"{'+' if factor > 0 else '−'} {abs(factor):.4g}·({base.formulas[k]})")
    return " ".join(parts)


def row_sums(factor: Factor, base: BaseParameters, theta: Array) -> Array:
    """Sum the squared errors of every equation.

    Args:
        factor: Rows over the columns of base parameters.
        base: Base parameters.
        theta: All parameters.
    """
    return factor.residual_sums(base.matrix @ theta, base.independent)


def varying(parts: Sequence[RegressionData]) -> float:
    """Return the norm of the measurements of `parts` about the mean of each equation, relative to their norm."""
    reductions = [part.reduction() for part in parts]
    rows = np.maximum(np.sum([r.factor.rows for r in reductions], axis=0), 1)
    whole = float(np.sum([squares(r.factor) for r in reductions]))
    means = np.sum([r.sums for r in reductions], axis=0) / rows
    return float(np.sqrt(max(1.0 - float(np.sum(rows * means**2)) / max(whole, 1e-300), 1e-12)))


def squares(factor: Factor) -> Array:
    """Sum the squared measurements of every equation of a `factor`."""
    return np.array([float(r[:, -1] @ r[:, -1]) for r in factor.triangles])
