"""Start and end of iterative estimators: weighted least squares, and steps in standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.estimation.estimate import EstimationError, Prior, Result
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.possible.physical import PhysicallyConsistent
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Changes below this part of a column's torque are negligible, even without noise.
_NEGLIGIBLE_CHANGE = 1e-6


@dataclass(frozen=True, eq=False)
class Start:
    """Least squares on the measured motion.

    Attributes:
        beta: Base parameters.
        theta: Full parameters with these base parameters.
        free: The fit.
        data: Rows of the fit.
    """

    beta: Array
    theta: Array
    free: FreeFit
    data: RegressionData


def starting_point(experiment: Experiment, base: BaseParameters, prior: Prior | None, physical: bool = False) -> Start:
    """Fit by weighted least squares on the measured motion (IDIM-LS).

    Args:
        experiment: The motions.
        base: Base parameters.
        prior: Prior knowledge.
        physical: Whether the result must be physically possible.
    """
    if not isinstance(experiment, Experiment):
        raise EstimationError("This estimator needs an Experiment (dynamics, motions and controller) instead of rows.")
    data = experiment.regression(base)
    free = WeightedLeastSquares().free(data, base)
    if physical:
        possible = PhysicallyConsistent().fit(data, base, prior)
        return Start(possible.beta, possible.theta, free, data)
    return Start(free.beta, nearest_theta(base, free.beta, prior), free, data)


def fit_with_weights(problem: LeastSquaresProblem, weights: Array) -> FreeFit:
    """Fit with fixed weights.

    Args:
        problem: The problem.
        weights: 1/σ of each equation.
    """
    Ry = problem.combined_triangle(weights)
    beta = problem.solve(Ry)
    return FreeFit(problem, beta, weights, Ry, problem.residual_std(beta, Ry, weights))


def relative_change(old: Array, new: Array, free: FreeFit) -> float:
    """Compute the largest change of a parameter in standard errors (of white residuals); negligible changes count as
    zero.

    Args:
        old: Old base parameters.
        new: New ones.
        free: Fit with the standard errors.
    """
    R = free.triangle[:-1, :-1]
    inverse = np.linalg.inv(R / np.linalg.norm(R, axis=0))
    errors = free.noise * np.linalg.norm(inverse, axis=1) / np.linalg.norm(R, axis=0)
    negligible = _NEGLIGIBLE_CHANGE * float(np.linalg.norm(free.triangle[:, -1])) / np.linalg.norm(R, axis=0)
    change = np.abs(new - old)
    return float(np.max(np.where(change < negligible, 0.0, change / np.maximum(errors, 1e-300)), initial=0.0))


class Rounds:
    """Rounds of an iterative estimator for a `for` loop, which end after convergence.

    Args:
        largest: Largest number of rounds.
        tolerance: Largest change of a parameter at the end, in standard errors.
        smallest: Smallest number of rounds.
    """

    def __init__(self, largest: int, tolerance: float, smallest: int = 1) -> None:
        self.largest, self.tolerance, self.smallest = max(1, largest), tolerance, smallest
        self.result, self.change = Result.NOT_CONVERGED, np.inf
        self.history: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[int]:
        for k in range(self.largest):
            yield k
            if self.change < self.tolerance and k + 1 >= self.smallest:
                self.result = Result.CONVERGED
                return

    def add(self, old: Array, new: Array, free: FreeFit, **more: Any) -> None:
        """Add a round.

        Args:
            old: Base parameters before.
            new: Base parameters after.
            free: Fit of the round.
            more: Other values for the history.
        """
        self.change = relative_change(old, new, free)
        self.history.append({"beta": tuple(new.tolist()), "change": self.change, **more})

    @property
    def outcome(self) -> dict[str, Any]:
        """Result, history and notes for an `Estimate` or a `FreeFit`."""
        converged = self.result is Result.CONVERGED
        note = f"Not converged: the last round changed the parameters by {self.change:.2g} standard errors."
        return {"result": self.result, "history": tuple(self.history), "notes": () if converged else (note,)}
