"""`OrdinaryLeastSquares`: every row counts the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.linear.free import FreeFit
from steelyard.estimation.linear.problem import Problem
from steelyard.estimation.linear.wls import weighted
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns


@dataclass(frozen=True)
class OrdinaryLeastSquares:
    """min Σ (y − Aβ)², from the triangle of [A y].

    Right where all joints have the same noise; otherwise unbiased still, but the noisiest joint spoils the others.
    """

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base).estimate(prior)

    def free(self, data: RegressionData, base: Columns) -> FreeFit:
        problem = Problem.of(data, base)
        weights = np.ones(len(data.equations))
        joined = problem.joined(weights)
        beta = problem.solve(joined)
        best = weighted(problem, 100, 1e-8)
        return FreeFit(
            problem, beta, weights, joined, problem.spreads(beta, joined, weights), sharpest=(best.beta, best.weights)
        )
