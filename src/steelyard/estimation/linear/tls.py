"""`TotalLeastSquares`: errors in the columns as well as in the torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Prior
from steelyard.estimation.linear.free import FreeFit
from steelyard.estimation.linear.problem import Problem
from steelyard.estimation.linear.wls import weighted
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.robot.spatial import Array


@dataclass(frozen=True)
class TotalLeastSquares:
    """The nearest consistent system [A + ΔA] β = y + Δy, by the smallest singular vector of the joined triangle.

    Nearness depends on scaling, so it is part of the method: rows of joint j are divided by σ_j (its residuals'
    spread under weighted least squares), then every column of A by its own root mean square times `column_error`,
    and y by `torque_error`. The defaults say: equal relative errors everywhere. After Van Huffel & Vandewalle 1991,
    "The Total Least Squares Problem"; for robots Gautier, Vandanjon & Presse 1994.

    `column_error`: one number, or one per base parameter: relative errors of the columns. Where they are much smaller
    than the torque's, this is weighted least squares; where the torque alone is noisy, use that instead, because
    this one is then biased.
    """

    column_error: float | tuple[float, ...] = 1.0
    torque_error: float = 1.0

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base).estimate(prior)

    def free(self, data: RegressionData, base: BaseParameters) -> FreeFit:
        start = weighted(Problem.of(data, base), 100, 1e-8)
        joined = start.joined
        scale = self._scale(joined, base.rank)
        _, values, directions = np.linalg.svd(joined / scale)
        last = directions[-1] / scale
        if abs(directions[-1][-1]) < 1e-8:
            raise EstimationError(
                "Total least squares finds no finite solution: the columns are nearer to dependence than the torque "
                "is to the model. Use weighted least squares."
            )
        beta = -last[:-1] / last[-1]
        R = joined[:-1, :-1]
        # The normal equations of total least squares: (AᵀA − σ²D²) β = Aᵀy.
        bread = R.T @ R - np.diag((values[-1] * scale[:-1]) ** 2)
        return FreeFit(
            start.problem, beta, start.weights, joined, start.problem.spreads(beta, joined, start.weights),
            bread=bread, history=start.history,
            details={"singular_values": (float(values[0]), float(values[-2]), float(values[-1]))},
        )  # fmt: skip

    def _scale(self, joined: Array, rank: int) -> Array:
        """What one unit of error is, for every column of [A y]."""
        errors = np.broadcast_to(np.asarray(self.column_error, dtype=float), (rank,))
        if np.any(errors <= 0.0) or self.torque_error <= 0.0:
            raise EstimationError("column_error and torque_error must be positive.")
        lengths = np.linalg.norm(joined, axis=0)
        length = lengths[-1] if lengths[-1] > 0.0 else 1.0
        return np.concatenate([lengths[:-1] * errors, [length * self.torque_error]])
