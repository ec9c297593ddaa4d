"""`RecursiveLeastSquares`: the rows of a log in their order in time, as an estimator like the others."""

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

# Instants that go through the compiled loop in one call; after each a moment of the way can be kept.
_AT_ONCE = 1024
_PIECES, _LEAST = 128, 16


@estimator("rls")
@dataclass(frozen=True)
class RecursiveLeastSquares(LinearEstimator):
    """Recursive least squares over a log: at the end, ordinary least squares, unless something is forgotten.

    `forgetting` is a factor in (0, 1] or one of `Constant`, `Directional`, `Variable`; `P0` the covariance of the start
    (the prior's base parameters, or zero) in units of the noise's variance, infinite by default: then nothing pulls.
    With forgetting the result is the model at the end of the log. Error bars are those of all rows, also of those that
    were forgotten; with forgetting they are too short. `history` has some hundred moments of the way.
    """

    about = "least squares row by row, as they come in"
    weights_like, any_columns = "ols", False

    forgetting: float | Forgetting = 1.0
    P0: float = np.inf

    def __post_init__(self) -> None:
        make_forgetting(self.forgetting)
        if not self.P0 > 0.0:
            raise EstimationError(f"P0 is {self.P0}; it must be positive (inf: nothing is known beforehand).")

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, prior).estimate(prior)

    def free(self, data: RegressionData, columns: BaseParameters, prior: Prior | None = None) -> FreeFit:
        """As for all linear estimators; `prior` gives the base parameters to start from (None: zero)."""
        base = columns
        problem = LeastSquaresProblem.of(data, base)
        weights = np.ones(len(data.equations))
        plain = problem.joined(weights)
        problem.check_rank(plain[:-1, :-1])
        way = _Way(data.period)
        state = self._run(data, base, base.matrix @ prior_theta(base, prior), way)
        joined = state.joined
        beta = np.asarray(solve_triangular(joined[:-1, :-1], joined[:-1, -1]))
        best = weighted(problem, 100, 1e-8)
        notes = () if self._remembers else ("Something was forgotten: the values are those of the end of the log.",)
        return FreeFit(
            problem, beta, weights, plain, problem.residual_std(beta, plain, weights),
            sharpest=(best.beta, best.weights), notes=notes, history=way.history(),
            details={"updates": state.updates, "remembered_rows": state.weight},
        )  # fmt: skip

    @property
    def _remembers(self) -> bool:
        return make_forgetting(self.forgetting) == Constant(1.0)

    def _run(self, data: RegressionData, base: BaseParameters, start: Array, way: _Way) -> Information:
        forgetting = make_forgetting(self.forgetting)
        state = Information(base.rank, len(data.equations))
        state.start(start, self.P0)
        for stretch in simultaneous(data, base):
            if stretch is None:
                return self._out_of_order(data, base, start, way)
            if isinstance(forgetting, Constant) and state.rows <= MOST_ROWS:
                self._at_once(state, stretch, sqrt(forgetting.factor), way)
                continue
            for rows in stretch:
                state.buffer[:, : rows.shape[1]] = rows
                state.buffer[:, rows.shape[1] :] = 0.0
                forgetting.absorb(state, False)
                way.add(state)
        return state

    def _at_once(self, state: Information, stretch: Array, scale: float, way: _Way) -> None:
        width, length = state.buffer.shape[1], min(max(len(stretch) // _PIECES, _LEAST), _AT_ONCE)
        for first in range(0, len(stretch), length):
            part = stretch[first : first + length]
            padded = np.zeros((*part.shape[:2], width))
            padded[:, :, : part.shape[2]] = part
            state.absorb_many(padded, scale)
            way.add(state)

    def _out_of_order(self, data: RegressionData, base: BaseParameters, start: Array, way: _Way) -> Information:
        """Masked rows do not tell their time; where nothing is forgotten it does not matter."""
        if not self._remembers:
            raise SteelyardError("Forgetting needs all rows in their order in time; set mask to 0.")
        way.restart()
        state = Information(base.rank, 1)
        state.start(start, self.P0)
        for rows in one_by_one(data, base):
            self._at_once(state, rows, 1.0, way)
        return state


class _Way:
    """Triangles of some moments; base parameters are worked out at the end, for those that knew all of them."""

    def __init__(self, period: float) -> None:
        self._period, self.in_time = period, True
        self._moments: Moments[tuple[int, Array]] = Moments()

    def restart(self) -> None:
        """From here on rows are not in their order in time."""
        self._moments, self.in_time = Moments(), False

    def add(self, state: Information) -> None:
        self._moments.add((state.updates, state.joined))

    def history(self) -> tuple[dict[str, Any], ...]:
        known = [(k, J[:-1, :-1], J[:-1, -1]) for k, J in self._moments.all if determined(J[:-1, :-1])]
        return tuple(
            {
                **self._when(k),
                "beta": tuple(solve_triangular(R, z).tolist()),
                "eigenvalues": tuple(covariance_eigenvalues(R).tolist()),
            }
            for k, R, z in known
        )

    def _when(self, updates: int) -> dict[str, Any]:
        return {"updates": updates, **({"t": updates * self._period} if self.in_time else {})}
