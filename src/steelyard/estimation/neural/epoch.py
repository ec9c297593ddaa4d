"""`Epoch`: one pass over all patterns as the affine map that it is, w → G w + h; computed once, repeated for free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.robot.spatial import Array

# Rows that are taken together: their products with one another fit into the second cache.
_TOGETHER = 256


@dataclass(frozen=True, eq=False)
class Epoch:
    """w → `matrix` w + `shift`."""

    matrix: Array
    shift: Array

    @classmethod
    def of_delta_rule(cls, X: Array, d: Array, step: float) -> Epoch:
        """w ← w + γ (d − x·w) x, row after row (Widrow & Hoff 1960), exactly.

        The errors e of a block of rows obey (I + γ tril(XXᵀ, −1)) e = d − X w, and w grows by γ Xᵀe.
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
