"""Common parts of all networks: ordinary least squares for checks and error bars, epochs as affine maps, results."""

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

# Weights after a number of passes; fractions are within a pass.
WeightHistory = Moments[tuple[float, Array]]


class Network(LinearEstimator):
    """A network that learns named columns, starting from the prior's base parameters or from zero."""

    family = "network"
    physical_form, weights_like = "none", "ols"

    @abstractmethod
    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        """Fit any named columns, such as the eight of the paper.

        Args:
            data: The rows.
            columns: The unknowns.
            start: Initial values of the unknowns.
        """

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base, base.values(prior_theta(base, prior))).estimate(prior)


def least_squares_fit(data: RegressionData, columns: Columns) -> FreeFit:
    """Fit by ordinary least squares, for error bars and to reject rows that are not finite or rank deficient.

    Args:
        data: The rows.
        columns: The unknowns.
    """
    return OrdinaryLeastSquares().free(data, columns)


def excitation(free: FreeFit) -> dict[str, Any]:
    """Report whether ∩ₜ ker Φ(t) = {0}, with a margin: σ_min/σ_max of all rows with columns of unit length."""
    R = free.triangle[:-1, :-1]
    values = np.linalg.svd(R / np.linalg.norm(R, axis=0), compute_uv=False)
    return {"holds": bool(values[-1] > 0.0), "margin": float(values[-1] / values[0])}


def network_fit(
    free: FreeFit, beta: Array, converged: bool, history: Sequence[Mapping[str, Any]], notes: Sequence[str],
    details: Mapping[str, Any],
) -> FreeFit:  # fmt: skip
    """Replace the parameters of a least-squares fit by those of the network; error bars are the sandwich covariance
    there.

    Args:
        free: Ordinary least squares.
        beta: Parameters of the network.
        converged: Whether the network converged.
        history: Steps of the parameters.
        notes: Notes for the user.
        details: Details of the result.
    """
    residual_std = free.problem.residual_std(beta, free.triangle, free.weights)
    warning = () if converged else (
        "Error bars are those of least squares; they do not include the network's distance from convergence.",
    )  # fmt: skip
    return replace(
        free, beta=beta, residual_std=residual_std, result=Result.CONVERGED if converged else Result.NOT_CONVERGED,
        history=tuple(history), notes=(*notes, *warning), details={**details, "excitation": excitation(free)},
    )  # fmt: skip


def repeat(
    epoch: Any, w: Array, times: int, tolerance: float, history: WeightHistory | None = None
) -> tuple[Array, int, float]:  # fmt: skip
    """Repeat an epoch until no weight changes by more than `tolerance`.

    Args:
        epoch: Maps weights to those after one pass.
        w: Initial weights.
        times: Largest number of passes.
        tolerance: Largest change, relative to the largest weight.
        history: Receives the weights after each pass.

    Returns:
        Weights, number of passes, last change.
    """
    change = np.inf
    for k in range(times):
        new = epoch(w)
        if history is not None:
            history.add((k + 1.0, new))
        change = float(np.abs(new - w).max() / max(float(np.abs(new).max()), 1e-300))
        w = new
        if not np.isfinite(change) or change < tolerance:
            return w, k + 1, change
    return w, times, change


# Rows per block: their mutual products fit into the second-level cache.
_BLOCK_ROWS = 256


@dataclass(frozen=True, eq=False)
class Epoch:
    """One pass over all patterns as an affine map, w → `matrix` w + `shift`."""

    matrix: Array
    shift: Array

    @classmethod
    def of_delta_rule(
        cls, X: Array, d: Array, step: float, start: Array | float = 0.0, history: WeightHistory | None = None
    ) -> Epoch:
        """Compute w ← w + γ (d − x·w) x, row after row (Widrow & Hoff 1960), exactly.

        The errors e of a block of rows satisfy (I + γ tril(XXᵀ, −1)) e = d − X w, and w grows by γ Xᵀe.

        Args:
            X: Inputs, shape (rows, weights).
            d: Targets, shape (rows,).
            step: γ.
            start: Initial weights for `history`.
            history: Receives the weights within the first epoch.
        """
        p = X.shape[1]
        state = np.hstack([np.eye(p), np.zeros((p, 1))])  # images of the unit vectors and of zero
        for first in range(0, len(X), _BLOCK_ROWS):
            rows, target = X[first : first + _BLOCK_ROWS], d[first : first + _BLOCK_ROWS]
            lower = step * np.tril(rows @ rows.T, -1)
            with np.errstate(all="ignore"):  # a step that is too long is detected by `growth`
                right = -rows @ state
                right[:, -1] += target
                errors = solve_triangular(lower, right, lower=True, unit_diagonal=True, check_finite=False)
                state = state + step * rows.T @ errors
                if history is not None and first + _BLOCK_ROWS < len(X):
                    weights = state[:, :-1] @ np.broadcast_to(start, p) + state[:, -1]
                    history.add(((first + _BLOCK_ROWS) / len(X), weights))
        return cls(state[:, :-1], state[:, -1])

    @classmethod
    def of_steps(cls, inputs: Array, targets: Array, length: float) -> Epoch:
        """Compute w ← w + l Φᵀ(I + l ΦΦᵀ)⁻¹(y − Φ w) instant by instant: implicit Euler of ẇ = Φᵀ(y − Φ w).

        Args:
            inputs: Φ, shape (instants, rows, weights).
            targets: y, shape (instants, rows).
            length: l.
        """
        p = inputs.shape[2]
        state = np.hstack([np.eye(p), np.zeros((p, 1))])
        grams = np.eye(inputs.shape[1]) + length * inputs @ inputs.transpose(0, 2, 1)
        gains = length * np.linalg.solve(grams, inputs).transpose(0, 2, 1)
        for gain, rows, target in zip(gains, inputs, targets, strict=True):
            right = -rows @ state
            right[:, -1] += target
            state = state + gain @ right
        return cls(state[:, :-1], state[:, -1])

    def __call__(self, w: Array) -> Array:
        return np.asarray(self.matrix @ w + self.shift)

    @property
    def growth(self) -> float:
        """Factor of the slowest error in a pass; above 1 it grows."""
        if not np.all(np.isfinite(self.matrix)):
            return np.inf
        return float(np.abs(np.linalg.eigvals(self.matrix)).max())


@dataclass(frozen=True, eq=False)
class Patterns:
    """Inputs (instants, rows, weights) and targets (instants, rows); β = weights · `target_scale` / `scales`.

    If rows are masked, they cannot be matched across equations; then every row is an instant.
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
            norms = np.linalg.norm(free.triangle, axis=0) / np.sqrt(count)
            scales, size = norms[:-1], float(norms[-1]) or 1.0
        return cls(A / scales, y / size, scales, size)

    def beta(self, weights: Array) -> Array:
        """Convert weights to base parameters."""
        return np.asarray(weights * self.target_scale / self.scales)

    def history(self, weights: WeightHistory) -> list[dict[str, Any]]:
        """Convert weights by pass to base parameters by pass."""
        return [{"pass": at, "beta": tuple(self.beta(w).tolist())} for at, w in weights.all]

    def weights(self, beta: Array) -> Array:
        return np.asarray(beta * self.scales / self.target_scale)
