"""Weighted and ordinary least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.estimation.estimate import LinearEstimator, Result
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns


@estimator("wls")
@dataclass(frozen=True)
class WeightedLeastSquares(LinearEstimator):
    """min Σ_j Σ (y_j − A_jβ)²/σ_j², with σ_j from joint j's residuals (Gautier 1997), repeated until σ converges.

    It needs one pass over the data: reweighting uses the triangles.

    Attributes:
        iterations: Largest number of repetitions.
        tolerance: Relative change of σ that ends the repetition.
    """

    about = "least squares, every joint weighted by its own noise"

    iterations: int = 100
    tolerance: float = 1e-8

    def free(self, data: RegressionData, columns: Columns) -> FreeFit:
        return weighted(LeastSquaresProblem.of(data, columns), self.iterations, self.tolerance)


def weighted(problem: LeastSquaresProblem, iterations: int, tolerance: float) -> FreeFit:
    """Solve and reweight in turn, starting from equal weights.

    Args:
        problem: The problem.
        iterations: Largest number of repetitions.
        tolerance: Relative change of all standard deviations that ends the repetition.
    """
    floor = problem.floor
    weights = np.ones(len(problem.blocks))
    history: list[dict[str, Any]] = []
    result = Result.NOT_CONVERGED
    for _ in range(max(iterations, 1)):
        Ry = problem.combined_triangle(weights)
        beta = problem.solve(Ry)
        residual_std = problem.residual_std(beta, Ry, weights)
        history.append({"residual_std": tuple(residual_std.tolist())})
        change = float(np.max(np.abs(np.maximum(residual_std, floor) * weights - 1.0), initial=0.0))
        if len(history) > 1 and change < tolerance:
            result = Result.CONVERGED
            break
        weights = 1.0 / np.maximum(residual_std, floor)
    notes = (
        ()
        if result is Result.CONVERGED
        else (f"The weights of the joints have not converged; the last change is {change:.1e}.",)
    )
    return FreeFit(problem, beta, weights, Ry, residual_std, result=result, history=tuple(history), notes=notes)


@estimator("ols")
@dataclass(frozen=True)
class OrdinaryLeastSquares(LinearEstimator):
    """min Σ (y − Aβ)², from the triangle of [A y].

    It is efficient if all joints have the same noise. Otherwise it is still unbiased, but the noisiest joint dominates.
    """

    about = "least squares, every row counts the same"

    def free(self, data: RegressionData, columns: Columns) -> FreeFit:
        problem = LeastSquaresProblem.of(data, columns)
        weights = np.ones(len(data.equations))
        Ry = problem.combined_triangle(weights)
        beta = problem.solve(Ry)
        best = weighted(problem, 100, 1e-8)
        residual_std = problem.residual_std(beta, Ry, weights)
        return FreeFit(problem, beta, weights, Ry, residual_std, best=(best.beta, best.weights))
