"""Robust regression: outlying rows have less weight, so that spikes, stuck phases and collisions do not bias the
model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import LinearEstimator, Result
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear.least_squares import weighted
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.unknowns import Columns

Loss = Literal["huber", "bisquare"]

# 95 % efficiency for Gaussian residuals (Huber 1964; Beaton & Tukey 1974).
_TUNING: dict[str, float] = {"huber": 1.345, "bisquare": 4.685}
_MAD = 1.4826  # median absolute deviation → σ of a Gaussian


@estimator("huber", "a few bad rows count less", loss="huber")
@estimator("bisquare", "grossly bad rows do not count at all", loss="bisquare")
@dataclass(frozen=True)
class Robust(LinearEstimator):
    """min Σ_j Σ ρ((y_j − A_jβ)/σ_j) by iterated reweighting of rows; σ_j is robust: 1.4826·median|residual|.

    Each iteration needs two passes over the data.

    Attributes:
        loss: "huber" grows linearly for large residuals; "bisquare" ignores them, and starts from the Huber fit because
            it has several minima.
        tuning: Smallest residual with a reduced weight, in σ.
        iterations: Largest number of iterations.
        tolerance: Step in standard errors that ends the iteration.
    """

    loss: Loss = "huber"
    tuning: float | None = None
    iterations: int = 100
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if self.loss not in get_args(Loss):
            raise UnknownNameError("loss", self.loss, get_args(Loss))

    def free(self, data: RegressionData, columns: Columns) -> FreeFit:
        if self.loss == "bisquare":
            start = Robust("huber", None, self.iterations, max(self.tolerance, 1e-3)).free(data, columns)
        else:
            start = weighted(LeastSquaresProblem.of(data, columns), 100, 1e-8)
        return self._iterate(data, columns, start)

    def _iterate(self, data: RegressionData, columns: Columns, start: FreeFit) -> FreeFit:
        tuning = self.tuning if self.tuning is not None else _TUNING[self.loss]
        floor = start.problem.floor
        beta = start.beta
        history: list[dict[str, Any]] = []
        result = Result.NOT_CONVERGED
        step = np.inf
        for _ in range(max(self.iterations, 1)):
            scale = _scales(data, columns, beta, floor)
            problem = LeastSquaresProblem.of(data, columns, _Weigher(data, columns, beta, scale, self.loss, tuning))
            Ry = problem.combined_triangle(1.0 / scale)
            new = problem.solve(Ry)
            # The step in standard errors of white noise, which are accurate enough for the stopping rule.
            step = float(np.linalg.norm(Ry[:-1, :-1] @ (new - beta)) / np.sqrt(len(beta)))
            beta = new
            history.append({"step": step, "residual_std": tuple(scale.tolist())})
            # If all residuals are rounding, reweighting is useless.
            if step < self.tolerance or np.all(scale <= floor):
                result = Result.CONVERGED
                break
        notes = () if result is Result.CONVERGED else (f"Not converged; the last step was {step:.1e} standard errors.",)

        def influence(equation: int, residual: Array) -> tuple[Array, Array]:
            u = residual / scale[equation]
            weight, slope = _weight_and_slope(u, self.loss, tuning)
            return weight * residual, slope

        return FreeFit(
            problem, beta, 1.0 / scale, Ry, scale, influence=influence, result=result, history=tuple(history),
            notes=notes, details={"row_weight": _mean_weights(problem, start)},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Weigher:
    """Gives the square root of each row's weight for fixed parameters."""

    data: RegressionData
    columns: Columns
    beta: Array
    scale: Array
    loss: Loss
    tuning: float

    def __call__(self, block: Block) -> Array:
        full = np.zeros(self.data.parameters)
        full[list(self.columns.independent)] = self.beta
        residual = block.y - block.A @ full[self.data.equations[block.equation].columns]
        weight, _ = _weight_and_slope(residual / self.scale[block.equation], self.loss, self.tuning)
        return np.sqrt(weight)


def _weight_and_slope(u: Array, loss: Loss, tuning: float) -> tuple[Array, Array]:
    """ψ(u)/u and ψ'(u)."""
    size = np.abs(u)
    if loss == "huber":
        inside = size <= tuning
        return np.where(inside, 1.0, tuning / np.maximum(size, tuning)), inside.astype(float)
    square = np.minimum((u / tuning) ** 2, 1.0)
    return (1.0 - square) ** 2, (1.0 - square) * (1.0 - 5.0 * square)


def _scales(data: RegressionData, columns: Columns, beta: Array, floor: Array) -> Array:
    full = np.zeros(data.parameters)
    full[list(columns.independent)] = beta
    out = []
    for parts, low in zip(data.residuals(full), floor, strict=True):
        values = np.abs(np.concatenate(parts)) if parts else np.zeros(1)
        out.append(max(_MAD * float(np.median(values)), float(low)))
    return np.array(out)


def _mean_weights(problem: LeastSquaresProblem, start: FreeFit) -> tuple[float, ...]:
    """Share of each equation's torque (sum of squares) that still counts; 1 if no row was down-weighted."""
    now = [float(np.sum(b[:, -1] ** 2)) for b in problem.blocks]
    before = [float(np.sum(b[:, -1] ** 2)) for b in start.problem.blocks]
    return tuple(a / b if b > 0.0 else 1.0 for a, b in zip(now, before, strict=True))
