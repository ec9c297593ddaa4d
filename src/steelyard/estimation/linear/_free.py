"""The fit without physical constraints, as needed for error bars and for the constrained fit."""

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
    """β and its triangle: `triangle` = [R y] under `weights` (and row weights, for robust fits).

    `bread` and `best` are those of `covariance`.
    """

    problem: LeastSquaresProblem
    beta: Array
    weights: Array
    triangle: Array
    residual_std: Array
    influence: Influence | None = None
    bread: Array | None = None
    best: tuple[Array, Array] | None = None
    result: Result = Result.CONVERGED
    history: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The weighted sum of squares."""
        return float(np.sum((self.triangle[:, :-1] @ self.beta - self.triangle[:, -1]) ** 2))

    @property
    def noise(self) -> float:
        """Standard deviation of the weighted residuals; about 1 if the weights are 1/σ."""
        degrees = max(float(self.problem.rows.sum()) - len(self.beta), 1.0)
        return float(np.sqrt(self.cost / degrees))

    @cached_property
    def covariance(self) -> Covariance:
        """Covariance of β; needs a pass over the data."""
        p = self.problem
        return covariance(p.data, p.base, self.beta, self.weights, self.influence, self.bread, self.best)

    def estimate(self, prior: Prior | None) -> Estimate:
        """Create the estimate with error bars and the full parameters nearest to the `prior` that have these base
        parameters."""
        covariance_ = self.covariance
        base = self.problem.base
        assert isinstance(base, BaseParameters)  # other unknowns do not define full parameters
        return Estimate(
            base=base,
            beta=self.beta,
            covariance=covariance_.matrix,
            theta=nearest_theta(base, self.beta, prior),
            residual_std=self.residual_std,
            cost=self.cost,
            result=self.result,
            history=self.history,
            notes=self.notes,
            details={**covariance_.details(), "rows": self.problem.factor.rows, **self.details},
        )


def nearest_theta(base: BaseParameters, beta: Array, prior: Prior | None) -> Array:
    """Find the full parameters with base parameters β that differ least from the prior (from zero without one).

    Parameters of terms that the prior states as zero stay zero if links can explain their effect.

    Args:
        base: Base parameters.
        beta: Values of the base parameters.
        prior: Prior knowledge.
    """
    start = prior_theta(base, prior)
    mobility = np.where(known_to_be_zero(base, prior), _ZERO_MOBILITY, 1.0)
    with one_blas_thread():
        change = np.linalg.lstsq(base.matrix * mobility, beta - base.matrix @ start, rcond=None)[0]
    return np.asarray(start + mobility * change)


# Factor on changes of parameters that are known to be zero, when links can share the change; its square counts.
_ZERO_MOBILITY = 1e-3


def known_to_be_zero(base: BaseParameters, prior: Prior | None) -> NDArray[np.bool_]:
    """Find the parameters of terms that the prior states as zero.

    Args:
        base: Base parameters.
        prior: Prior knowledge.
    """
    zero = (prior_theta(base, prior) == 0.0) & (np.zeros(len(base.parameters), bool) if prior is None else prior.mask)
    zero[: base.robot.inertial_count] = False
    return np.asarray(zero)


def prior_theta(base: BaseParameters, prior: Prior | None) -> Array:
    """Return the full parameters of the prior, zero for unknown ones.

    Args:
        base: Base parameters.
        prior: Prior knowledge.
    """
    if prior is None:
        return np.zeros(len(base.parameters))
    if prior.theta.shape != (len(base.parameters),):
        raise EstimationError(
            f"The prior has {prior.theta.size} parameters; '{base.robot.name}' with its terms has "
            f"{len(base.parameters)}."
        )
    return np.where(prior.mask, prior.theta, 0.0)
