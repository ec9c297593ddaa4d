"""`FreeFit`: what a fit without physical constraints leaves for the error bars and for the constrained fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.linear.covariance import Covariance, Influence, covariance
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters


@dataclass(frozen=True, eq=False)
class FreeFit:
    """β and the triangle it came from: `joined` = [R y] under `weights` (and row weights, for robust fits)."""

    problem: LeastSquaresProblem
    beta: Array
    weights: Array
    joined: Array
    residual_std: Array
    influence: Influence | None = None
    bread: Array | None = None
    sharpest: tuple[Array, Array] | None = None
    result: Result = Result.CONVERGED
    history: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The weighted sum of squares."""
        return float(np.sum((self.joined[:, :-1] @ self.beta - self.joined[:, -1]) ** 2))

    @property
    def noise(self) -> float:
        """Standard deviation of the weighted residuals; about 1 where the weights are 1/σ."""
        free = max(float(self.problem.rows.sum()) - len(self.beta), 1.0)
        return float(np.sqrt(self.cost / free))

    @cached_property
    def covariance(self) -> Covariance:
        """The error bars; a pass over the data."""
        p = self.problem
        return covariance(p.data, p.base, self.beta, self.weights, self.influence, self.bread, self.sharpest)

    def estimate(self, prior: Prior | None) -> Estimate:
        """With error bars, and the full vector nearest to the prior that has these base parameters."""
        found = self.covariance
        base = self.problem.base
        assert isinstance(base, BaseParameters)  # other unknowns have no full parameters
        return Estimate(
            base=base,
            beta=self.beta,
            covariance=found.matrix,
            theta=nearest_theta(base, self.beta, prior),
            residual_std=self.residual_std,
            cost=self.cost,
            result=self.result,
            history=self.history,
            notes=self.notes,
            details={**found.details(), "rows": self.problem.factor.rows, **self.details},
        )


def nearest_theta(base: BaseParameters, beta: Array, prior: Prior | None) -> Array:
    """The full vector with base parameters β that differs least from the prior (from zero without one).

    Terms that the prior knows to be zero stay so where links can take their part.
    """
    start = prior_theta(base, prior)
    ease = np.where(known_to_be_zero(base, prior), _RELUCTANT, 1.0)
    with one_blas_thread():
        change = np.linalg.lstsq(base.matrix * ease, beta - base.matrix @ start, rcond=None)[0]
    return np.asarray(start + ease * change)


# How much of a change that links and a term could share goes to a term that is known to be zero: its square.
_RELUCTANT = 1e-3


def known_to_be_zero(base: BaseParameters, prior: Prior | None) -> NDArray[np.bool_]:
    """The parameters of terms of `base` that the `prior` states to be zero."""
    zero = (prior_theta(base, prior) == 0.0) & (np.zeros(len(base.parameters), bool) if prior is None else prior.mask)
    zero[: base.robot.inertial_count] = False
    return np.asarray(zero)


def prior_theta(base: BaseParameters, prior: Prior | None) -> Array:
    """The prior's numbers, zero where it knows nothing."""
    if prior is None:
        return np.zeros(len(base.parameters))
    if prior.theta.shape != (len(base.parameters),):
        raise EstimationError(
            f"The prior has {prior.theta.size} parameters; '{base.robot.name}' with its terms has "
            f"{len(base.parameters)}."
        )
    return np.where(prior.mask, prior.theta, 0.0)
