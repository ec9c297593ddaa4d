"""Least squares over base columns on small triangles, with rank checks before anything is solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array, one_blas_thread, solve_triangle
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.unknowns import Columns

# σ_min/σ_max of the columns scaled to unit length. For dependent columns rounding leaves 1e-13 or less; at 1e-10
# torques with six digits would not determine the worst combination either.
_DEPENDENT = 1e-10

# Residuals below this part of a joint's torque are rounding; weighting by them would be meaningless.
_SMALLEST_STD = 1e-9


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem:
    """Least squares over the base parameters of one data set; all computations use p × p triangles."""

    data: RegressionData
    base: Columns
    factor: Factor

    @classmethod
    def of(
        cls, data: RegressionData, base: Columns, weigh: Callable[[Block], Array] | None = None
    ) -> LeastSquaresProblem:  # fmt: skip
        """Create the problem in one pass over the data.

        Args:
            data: The rows.
            base: Columns of the unknowns.
            weigh: Gives the square root of each row's weight.
        """
        factor = data.reduction().factor if weigh is None else data.factor(weigh)
        if not all(np.all(np.isfinite(r)) for r in factor.triangles):
            raise EstimationError(_first_bad_row(data))
        return cls(data, base, factor)

    @cached_property
    def blocks(self) -> tuple[Array, ...]:
        """Triangle [A_e y_e] of every equation over the base columns and the right side."""
        return tuple(self.factor.blocks(self.base.independent))

    @property
    def rows(self) -> Array:
        """Number of rows of every equation."""
        return np.array(self.factor.rows, dtype=float)

    def combined_triangle(self, weights: Array) -> Array:
        """Compute the triangle [R y] of all equations with `weights` (1/σ) per equation."""
        with one_blas_thread():
            return triangle(np.vstack([w * b for w, b in zip(weights, self.blocks, strict=True)]))

    def solve(self, Ry: Array) -> Array:
        """Solve the triangle `Ry` = [R y] for β; raises an error if not all base parameters are identifiable."""
        with one_blas_thread():
            self.check_rank(Ry[:-1, :-1])
            return solve_triangle(Ry[:-1, :-1], Ry[:-1, -1])

    def check_rank(self, R: Array) -> None:
        """Raise an error if the triangle `R` over the base columns is rank deficient."""
        lengths = np.linalg.norm(R, axis=0)
        hidden = [name for name, length in zip(self.base.names, lengths, strict=True) if length == 0.0]
        if not hidden:
            values = np.linalg.svd(R / lengths, compute_uv=False)
            if values[-1] > _DEPENDENT * values[0]:
                return
            part = np.abs(np.linalg.svd(R / lengths)[2][-1])
            hidden = [self.base.names[k] for k in np.argsort(-part)[:4] if part[k] > 0.1]
        raise EstimationError(
            f"Not all base parameters are identifiable from the data: {', '.join(hidden)} (and parameters that depend "
            "on them). Use a motion that moves every joint, lock the joints that stand still, or remove the term."
        )

    def residual_std(self, beta: Array, Ry: Array, weights: Array) -> Array:
        """Compute the standard deviation of each equation's residuals, corrected for its degrees of freedom.

        Args:
            beta: Parameters.
            Ry: Triangle of the fit.
            weights: Weight of each equation in the triangle.
        """
        sums = np.array([float(np.sum((b[:, :-1] @ beta - b[:, -1]) ** 2)) for b in self.blocks])
        used = []
        with one_blas_thread():
            for w, block in zip(weights, self.blocks, strict=True):
                hat = solve_triangle(Ry[:-1, :-1], w * block[:, :-1].T, transposed=True)
                used.append(float(np.sum(hat**2)))
        return np.asarray(np.sqrt(sums / np.maximum(self.rows - np.array(used), 1.0)))

    @property
    def floor(self) -> Array:
        """Lower limit of the standard deviations: the rounding of each equation's torque."""
        size = np.array([np.linalg.norm(b[:, -1]) for b in self.blocks]) / np.sqrt(np.maximum(self.rows, 1.0))
        top = float(size.max(initial=0.0))
        return np.where(size > 0.0, size, top if top > 0.0 else 1.0) * _SMALLEST_STD


def _first_bad_row(data: RegressionData) -> str:
    rows_before = [0] * len(data.equations)
    for block in data.blocks():
        bad = np.flatnonzero(~np.isfinite(block.y) | ~np.all(np.isfinite(block.A), axis=1))
        if bad.size:
            row = rows_before[block.equation] + int(bad[0]) + 1
            name = data.equations[block.equation].name
            return f"Row {row} of equation '{name}' is not finite; mask or correct the samples around it."
        rows_before[block.equation] += len(block.y)
    return "The rows are too large to be squared; check the units."
