"""What all networks share: least squares beside them for checks and error bars, and how a result is told."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.estimation.estimate import Estimate, LinearEstimator, Prior, Result
from steelyard.estimation.linear._free import FreeFit, prior_theta
from steelyard.estimation.linear._instants import one_by_one, simultaneous
from steelyard.estimation.linear.least_squares import OrdinaryLeastSquares
from steelyard.ground.arrays import Array
from steelyard.ground.moments import Moments
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# Weights, and the passes after which a network had them; within a pass they are fractions.
Way = Moments[tuple[float, Array]]


class Network(LinearEstimator):
    """A network that learns named columns from a start: the prior's base parameters, or zero."""

    family = "network"
    physical_form, weights_like = "none", "ols"

    @abstractmethod
    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        """For any named columns, such as the paper's own eight; `start` are first values of them."""

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, base.values(prior_theta(base, prior))).estimate(prior)


def beside(data: RegressionData, columns: Columns) -> FreeFit:
    """Ordinary least squares: refuses rows that are not finite or do not show every parameter, gives error bars."""
    return OrdinaryLeastSquares().free(data, columns)


def excitation(free: FreeFit) -> dict[str, Any]:
    """Whether ∩ₜ ker Φ(t) = {0}, and by how much: σ_min/σ_max of all rows, columns of unit length."""
    R = free.joined[:-1, :-1]
    values = np.linalg.svd(R / np.linalg.norm(R, axis=0), compute_uv=False)
    return {"holds": bool(values[-1] > 0.0), "margin": float(values[-1] / values[0])}


def finished(
    free: FreeFit, beta: Array, converged: bool, history: Sequence[Mapping[str, Any]], notes: Sequence[str],
    details: Mapping[str, Any],
) -> FreeFit:  # fmt: skip
    """The network's parameters in place of least squares'; the error bars are the sandwich of least squares there."""
    residual_std = free.problem.residual_std(beta, free.joined, free.weights)
    more = () if converged else (
        "Error bars are those of least squares; how far the network still is from its goal is not in them.",
    )  # fmt: skip
    return replace(
        free, beta=beta, residual_std=residual_std, result=Result.CONVERGED if converged else Result.NOT_CONVERGED,
        history=tuple(history), notes=(*notes, *more), details={**details, "excitation": excitation(free)},
    )  # fmt: skip


def repeat(
    epoch: Any, w: Array, times: int, tolerance: float, way: Way | None = None
) -> tuple[Array, int, float]:  # fmt: skip
    """Passes until nothing moves by more than `tolerance` of the largest weight: weights, passes, last change.

    The weights after each pass go into `way`.
    """
    change = np.inf
    for k in range(times):
        new = epoch(w)
        if way is not None:
            way.add((k + 1.0, new))
        change = float(np.abs(new - w).max() / max(float(np.abs(new).max()), 1e-300))
        w = new
        if not np.isfinite(change) or change < tolerance:
            return w, k + 1, change
    return w, times, change


# Rows that are taken together: their products with one another fit into the second cache.
_TOGETHER = 256


@dataclass(frozen=True, eq=False)
class Epoch:
    """One pass over all patterns as the affine map that it is, w → `matrix` w + `shift`."""

    matrix: Array
    shift: Array

    @classmethod
    def of_delta_rule(
        cls, X: Array, d: Array, step: float, start: Array | float = 0.0, way: Way | None = None
    ) -> Epoch:
        """w ← w + γ (d − x·w) x, row after row (Widrow & Hoff 1960), exactly.

        The errors e of a block of rows obey (I + γ tril(XXᵀ, −1)) e = d − X w, and w grows by γ Xᵀe. What becomes of
        the weights `start` within the first epoch goes into `way`.
        """
        p = X.shape[1]
        state = np.hstack([np.eye(p), np.zeros((p, 1))])  # columns: what becomes of every start, and of zero
        for first in range(0, len(X), _TOGETHER):
            rows, wanted = X[first : first + _TOGETHER], d[first : first + _TOGETHER]
            lower = step * np.tril(rows @ rows.T, -1)
            with np.errstate(all="ignore"):  # a step that is too long shows in `growth`
                right = -rows @ state
                right[:, -1] += wanted
                errors = solve_triangular(lower, right, lower=True, unit_diagonal=True, check_finite=False)
                state = state + step * rows.T @ errors
                if way is not None and first + _TOGETHER < len(X):
                    way.add(((first + _TOGETHER) / len(X), state[:, :-1] @ np.broadcast_to(start, p) + state[:, -1]))
        return cls(state[:, :-1], state[:, -1])

    @classmethod
    def of_steps(cls, inputs: Array, targets: Array, length: float) -> Epoch:
        """w ← w + l Φᵀ(I + l ΦΦᵀ)⁻¹(y − Φ w), instant after instant: implicit Euler of ẇ = Φᵀ(y − Φ w)."""
        p = inputs.shape[2]
        state = np.hstack([np.eye(p), np.zeros((p, 1))])
        grams = np.eye(inputs.shape[1]) + length * inputs @ inputs.transpose(0, 2, 1)
        gains = length * np.linalg.solve(grams, inputs).transpose(0, 2, 1)
        for gain, rows, wanted in zip(gains, inputs, targets, strict=True):
            right = -rows @ state
            right[:, -1] += wanted
            state = state + gain @ right
        return cls(state[:, :-1], state[:, -1])

    def __call__(self, w: Array) -> Array:
        return np.asarray(self.matrix @ w + self.shift)

    @property
    def growth(self) -> float:
        """How much the slowest error is multiplied by in a pass; above 1 it grows."""
        if not np.all(np.isfinite(self.matrix)):
            return np.inf
        return float(np.abs(np.linalg.eigvals(self.matrix)).max())


@dataclass(frozen=True, eq=False)
class Patterns:
    """Inputs `(instants, rows, weights)` and targets `(instants, rows)`; β = weights · `target_scale` / `scales`.

    Where rows are masked nobody knows which belong to the same instant: then every row is an instant of its own.
    """

    inputs: Array
    targets: Array
    scales: Array
    target_scale: float

    @classmethod
    def of(cls, data: RegressionData, columns: Columns, free: FreeFit, scaled: bool) -> Patterns:
        stretches = list(simultaneous(data, columns))
        whole = [s for s in stretches if s is not None]
        if len(whole) < len(stretches):
            whole = list(one_by_one(data, columns))
        rows = np.concatenate(whole)
        A, y = rows[:, :, :-1], rows[:, :, -1]
        scales, size = np.ones(columns.rank), 1.0
        if scaled:
            count = float(free.problem.rows.sum())
            norms = np.linalg.norm(free.joined, axis=0) / np.sqrt(count)
            scales, size = norms[:-1], float(norms[-1]) or 1.0
        return cls(A / scales, y / size, scales, size)

    def beta(self, weights: Array) -> Array:
        """Base parameters of weights."""
        return np.asarray(weights * self.target_scale / self.scales)

    def history(self, way: Way) -> list[dict[str, Any]]:
        """Base parameters by passes."""
        return [{"pass": at, "beta": tuple(self.beta(w).tolist())} for at, w in way.all]

    def weights(self, beta: Array) -> Array:
        return np.asarray(beta * self.scales / self.target_scale)
