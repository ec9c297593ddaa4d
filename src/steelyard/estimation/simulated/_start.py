"""Where iterative estimators begin and when they end: weighted least squares, and steps in standard errors."""

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
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# A step is over, whatever the noise, when it changes no column's part of the torque by more than this.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Start:
    """Least squares on the measured motion.

    Attributes:
        beta: base parameters.
        theta: full parameters that have them.
        free: the fit they came from.
        data: its rows.
    """

    beta: Array
    theta: Array
    free: FreeFit
    data: RegressionData


def starting_point(experiment: Experiment, base: BaseParameters, prior: Prior | None, physical: bool = False) -> Start:
    """Weighted least squares on the measured motion (IDIM-LS); physically consistent if asked."""
    if not isinstance(experiment, Experiment):
        raise EstimationError(
            "This estimator needs an Experiment (a robot's dynamics, its motions, its controller), not rows."
        )
    data = experiment.regression(base)
    free = WeightedLeastSquares().free(data, base)
    if physical:
        found = PhysicallyConsistent().fit(data, base, prior)
        return Start(found.beta, found.theta, free, data)
    return Start(free.beta, nearest_theta(base, free.beta, prior), free, data)


def reweighted(problem: LeastSquaresProblem, weights: Array) -> FreeFit:
    """One fit under given weights."""
    joined = problem.joined(weights)
    beta = problem.solve(joined)
    return FreeFit(problem, beta, weights, joined, problem.residual_std(beta, joined, weights))


def moved_by(old: Array, new: Array, free: FreeFit) -> float:
    """The largest change of a parameter in standard errors (of white residuals); zero where torque does not notice."""
    R = free.joined[:-1, :-1]
    inverse = np.linalg.inv(R / np.linalg.norm(R, axis=0))
    errors = free.noise * np.linalg.norm(inverse, axis=1) / np.linalg.norm(R, axis=0)
    unseen = _NOTHING * float(np.linalg.norm(free.joined[:, -1])) / np.linalg.norm(R, axis=0)
    change = np.abs(new - old)
    return float(np.max(np.where(change < unseen, 0.0, change / np.maximum(errors, 1e-300)), initial=0.0))


class Rounds:
    """The rounds of an iterative estimator, to be gone through by `for`: they end when nothing moves any more.

    Args:
        most: how many there are at most.
        tolerance: no parameter moves by more than this, in standard errors.
        least: how many there are at least.
    """

    def __init__(self, most: int, tolerance: float, least: int = 1) -> None:
        self.most, self.tolerance, self.least = max(1, most), tolerance, least
        self.result, self.change = Result.NOT_CONVERGED, np.inf
        self.history: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[int]:
        for k in range(self.most):
            yield k
            if self.change < self.tolerance and k + 1 >= self.least:
                self.result = Result.CONVERGED
                return

    def moved(self, old: Array, new: Array, free: FreeFit, **more: Any) -> None:
        """A round led from base parameters `old` to `new`, by the fit `free`; `more` is kept in the history as well."""
        self.change = moved_by(old, new, free)
        self.history.append({"beta": tuple(new.tolist()), "change": self.change, **more})

    @property
    def outcome(self) -> dict[str, Any]:
        """How it ended, as an `Estimate` or a `FreeFit` holds it."""
        settled = self.result is Result.CONVERGED
        note = f"The parameters still moved by {self.change:.2g} standard errors in the last round."
        return {"result": self.result, "history": tuple(self.history), "notes": () if settled else (note,)}
