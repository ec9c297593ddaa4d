"""Ridge regression: least squares with a penalty on deviations from a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import FreeFit, nearest_theta, prior_theta
from steelyard.estimation.linear.least_squares import weighted
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData


@estimator("ridge")
@dataclass(frozen=True)
class Ridge(Estimator[RegressionData]):
    """min ‖R β − y‖² + strength·Σ (‖R_k‖ (β_k − β⁰_k))², weighted per joint; β⁰ from the prior, zero without one.

    Error bars include noise but not the bias towards the prior. Hoerl & Kennard 1970.

    Attributes:
        strength: Weight of the prior relative to the information of each column alone, without unit.
        space: "base" penalises base parameters, "full" the full parameters θ (so that a group's deviation is shared
            among its members).
    """

    family, physical_form, weights_like = "linear", "none", "wls"
    about = "weighted least squares, drawn to the prior"

    strength: float = 1e-4
    space: Literal["base", "full"] = "base"

    def __post_init__(self) -> None:
        if self.space not in ("base", "full"):
            raise UnknownNameError("space", self.space, ("base", "full"))
        if not self.strength >= 0.0:
            raise EstimationError(f"strength is {self.strength}; it must not be negative.")

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        start = weighted(LeastSquaresProblem.of(data, base), 100, 1e-8)
        R, y = start.triangle[:, :-1], start.triangle[:, -1]
        theta0 = prior_theta(base, prior)
        beta0 = base.matrix @ theta0
        columns = R if self.space == "base" else R @ base.matrix
        change, pull = self._solve(columns, y - R @ beta0)
        beta = beta0 + (change if self.space == "base" else base.matrix @ change)
        bread = R.T @ R + pull if self.space == "base" else self._bread(R, base, pull)
        fit = FreeFit(
            start.problem,
            beta,
            start.weights,
            start.triangle,
            start.problem.residual_std(beta, start.triangle, start.weights),
            bread=bread,
            best=(start.beta, start.weights),
            result=start.result,
            history=start.history,
            notes=start.notes,
        )
        estimate = fit.estimate(prior)
        if self.space == "base":
            return estimate
        # In the full space θ is the solution; except for rounding it already has these base parameters.
        theta = nearest_theta(base, beta, Prior(theta0 + change))
        return Estimate(**{**vars(estimate), "theta": theta})

    def _solve(self, columns: Array, right: Array) -> tuple[Array, Array]:
        """The change from the prior, and the matrix of the penalty; columns without information do not change."""
        lengths = np.linalg.norm(columns, axis=0)
        excited = lengths > 1e-12 * lengths.max(initial=0.0)
        weight = np.where(excited, np.sqrt(self.strength) * lengths, 0.0)
        stacked = np.vstack([columns, np.diag(weight)])[:, excited]
        scaled = stacked / lengths[excited]
        change = np.zeros(len(lengths))
        solution = np.linalg.lstsq(scaled, np.concatenate([right, np.zeros(len(lengths))]), rcond=None)[0]
        change[excited] = solution / lengths[excited]
        return change, np.diag(weight**2)

    @staticmethod
    def _bread(R: Array, base: BaseParameters, pull: Array) -> Array:
        """Penalty on the base parameters: with M P⁻¹ Mᵀ = Q, the least penalty of a change d is dᵀQ⁻¹d."""
        weight = np.diag(pull)
        if not np.any(weight > 0.0):
            return R.T @ R
        excited = weight > 0.0
        M = base.matrix[:, excited]
        return R.T @ R + np.linalg.inv((M / weight[excited]) @ M.T)
