"""What all networks share: least squares beside them for checks and error bars, and how a result is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.estimation.estimate import Result
from steelyard.estimation.linear.free import FreeFit
from steelyard.estimation.linear.ols import OrdinaryLeastSquares
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns
from steelyard.robot.spatial import Array


def beside(data: RegressionData, columns: Columns) -> FreeFit:
    """Ordinary least squares: refuses rows that are not finite or do not show every parameter, gives error bars."""
    return OrdinaryLeastSquares().free(data, columns)


def excitation(free: FreeFit) -> dict[str, Any]:
    """Whether ∩ₜ ker Φ(t) = {0}, and by how much: σ_min/σ_max of all rows, columns of unit length."""
    R = free.joined[:-1, :-1]
    values = np.linalg.svd(R / np.linalg.norm(R, axis=0), compute_uv=False)
    return {"holds": bool(values[-1] > 0.0), "margin": float(values[-1] / values[0])}


def finished(
    free: FreeFit, beta: Array, converged: bool, history: Sequence[Mapping[str, Any]], notes: Sequence[str],
    details: Mapping[str, Any],
) -> FreeFit:  # fmt: skip
    """The network's parameters in place of least squares'; the error bars are the sandwich of least squares there."""
    spread = free.problem.spreads(beta, free.joined, free.weights)
    more = () if converged else (
        "Error bars are those of least squares; how far the network still is from its goal is not in them.",
    )  # fmt: skip
    return replace(
        free, beta=beta, spread=spread, result=Result.CONVERGED if converged else Result.NOT_CONVERGED,
        history=tuple(history), notes=(*notes, *more), details={**details, "excitation": excitation(free)},
    )  # fmt: skip


def repeat(epoch: Any, w: Array, times: int, tolerance: float) -> tuple[Array, int, float]:
    """Passes until nothing moves by more than `tolerance` of the largest weight: weights, passes, last change."""
    change = np.inf
    for k in range(times):
        new = epoch(w)
        change = float(np.abs(new - w).max() / max(float(np.abs(new).max()), 1e-300))
        w = new
        if not np.isfinite(change) or change < tolerance:
            return w, k + 1, change
    return w, times, change
