"""Recursive least squares over the rows of a log, as an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.dynamics.native.reflect import MOST_ROWS
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, EstimationError, LinearEstimator, Prior
from steelyard.estimation.linear._free import FreeFit, prior_theta
from steelyard.estimation.linear._instants import one_by_one, simultaneous
from steelyard.estimation.linear.least_squares import weighted
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.recursion._history import covariance_eigenvalues
from steelyard.estimation.recursion._information import Information, determined
from steelyard.estimation.recursion.forgetting import Constant, Forgetting, make_forgetting
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.ground.moments import Moments
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# After each call of the compiled loop the history may get an entry. Limits of the number of instants per call.
_MAX_INSTANTS = 1024
_CALLS, _MIN_INSTANTS = 128, 16


@estimator("rls")
@dataclass(frozen=True)
class RecursiveLeastSquares(LinearEstimator):
    """Recursive least squares over a log; without forgetting equal to ordinary least squares.

    With forgetting the result is the model at the end of the log. Error bars are those of all rows, so with forgetting
    they are too small. `history` has some hundred steps.

    Attributes:
        forgetting: A factor in (0, 1], or `Constant`, `Directional`, `Variable`.
        P0: Covariance of the start (the prior's base parameters, or zero) in units of the noise's variance; inf: the
            start has no influence.
    """

    about = "least squares row by row, as they come in"
    weights_like, any_columns = "ols", False

    forgetting: float | Forgetting = 1.0
    P0: float = np.inf

    def __post_init__(self) -> None:
        make_forgetting(self.forgetting)
        if not self.P0 > 0.0:
            raise EstimationError(f"P0 is {self.P0}; it must be positive (inf: no prior information).")

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, prior).estimate(prior)

    def free(self, data: RegressionData, columns: BaseParameters, prior: Prior | None = None) -> FreeFit:
        """Fit without physical constraints.

        Args:
            data: The rows.
            columns: Base parameters.
            prior: Prior for the base parameters at the start; None: zero.
        """
        base = columns
        problem = LeastSquaresProblem.of(data, base)
        weights = np.ones(len(data.equations))
        plain = problem.combined_triangle(weights)
        problem.check_rank(plain[:-1, :-1])
        history = _StepHistory(data.period)
        state = self._run(data, base, base.matrix @ prior_theta(base, prior), history)
        Ry = state.triangle
        beta = np.asarray(solve_triangular(Ry[:-1, :-1], Ry[:-1, -1]))
        best = weighted(problem, 100, 1e-8)
        notes = () if self._has_no_forgetting else ("With forgetting the values are those of the end of the log.",)
        return FreeFit(
            problem, beta, weights, plain, problem.residual_std(beta, plain, weights),
            best=(best.beta, best.weights), notes=notes, history=history.history(),
            details={"updates": state.updates, "remembered_rows": state.weight},
        )  # fmt: skip

    @property
    def _has_no_forgetting(self) -> bool:
        return make_forgetting(self.forgetting) == Constant(1.0)

    def _run(self, data: RegressionData, base: BaseParameters, start: Array, history: _StepHistory) -> Information:
        forgetting = make_forgetting(self.forgetting)
        state = Information(base.rank, len(data.equations))
        state.start(start, self.P0)
        for stretch in simultaneous(data, base):
            if stretch is None:
                return self._run_unordered(data, base, start, history)
            if isinstance(forgetting, Constant) and state.rows <= MOST_ROWS:
                self._absorb_stretch(state, stretch, sqrt(forgetting.factor), history)
                continue
            for rows in stretch:
                state.buffer[:, : rows.shape[1]] = rows
                state.buffer[:, rows.shape[1] :] = 0.0
                forgetting.absorb(state, False)
                history.add(state)
        return state

    def _absorb_stretch(self, state: Information, stretch: Array, scale: float, history: _StepHistory) -> None:
        width, length = state.buffer.shape[1], min(max(len(stretch) // _CALLS, _MIN_INSTANTS), _MAX_INSTANTS)
        for first in range(0, len(stretch), length):
            part = stretch[first : first + length]
            padded = np.zeros((*part.shape[:2], width))
            padded[:, :, : part.shape[2]] = part
            state.absorb_many(padded, scale)
            history.add(state)

    def _run_unordered(
        self, data: RegressionData, base: BaseParameters, start: Array, history: _StepHistory
    ) -> Information:
        """Process masked rows, whose order in time is unknown; without forgetting it does not matter."""
        if not self._has_no_forgetting:
            raise SteelyardError("Forgetting needs all rows in order of time; set mask to 0.")
        history.restart()
        state = Information(base.rank, 1)
        state.start(start, self.P0)
        for rows in one_by_one(data, base):
            self._absorb_stretch(state, rows, 1.0, history)
        return state


class _StepHistory:
    """Triangles of some steps; base parameters are computed at the end, if they are determined."""

    def __init__(self, period: float) -> None:
        self._period, self.in_time = period, True
        self._steps: Moments[tuple[int, Array]] = Moments()

    def restart(self) -> None:
        """Discard all steps; the following rows are not in order of time."""
        self._steps, self.in_time = Moments(), False

    def add(self, state: Information) -> None:
        self._steps.add((state.updates, state.triangle))

    def history(self) -> tuple[dict[str, Any], ...]:
        solvable = [(k, J[:-1, :-1], J[:-1, -1]) for k, J in self._steps.all if determined(J[:-1, :-1])]
        return tuple(
            {
                **self._when(k),
                "beta": tuple(solve_triangular(R, z).tolist()),
                "eigenvalues": tuple(covariance_eigenvalues(R).tolist()),
            }
            for k, R, z in solvable
        )

    def _when(self, updates: int) -> dict[str, Any]:
        return {"updates": updates, **({"t": updates * self._period} if self.in_time else {})}
