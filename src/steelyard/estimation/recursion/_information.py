"""All rows as one triangle [R z; 0 ρ], to which new rows are added.

R is the square root of the information, RᵀR = P⁻¹; the estimate is R⁻¹z and ρ² the weighted sum of squared residuals.
This form has three advantages over square roots of the covariance (Potter, Carlson, Bierman): "no information" is R =
0; orthogonal transformations only lengthen columns (no sum of squares is subtracted, so P = R⁻¹R⁻ᵀ cannot become
indefinite); and batch least squares does the same, so that both agree to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtrs

from steelyard.dynamics.native.reflect import MOST_ROWS, Reflections, wide_rows
from steelyard.errors import ShapeError
from steelyard.estimation.estimate import EstimationError
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.factor import triangle

# Pivots below this part of their column are rounding: the column depends on earlier ones.
_DEPENDENT = 1e-12
# Forgetting pauses below this pivot (P above 1e200), to avoid underflow.
_SMALLEST_PIVOT = 1e-100
_CHECK_INTERVAL = 64
# Squared lengths below this part of the longest are rounding.
_MIN_SQUARE = 1e-12
# Smallest ratio of pivots for which the fast decomposition is accurate.
_MIN_PIVOT_RATIO = 1e-4


class Information:
    """Triangle of `count` parameters with a buffer for `rows` new rows."""

    def __init__(self, count: int, rows: int) -> None:
        self.count, self.rows = count, rows
        self.updates = 0
        self.weight = 0.0  # effective number of rows after forgetting
        self.faded = 0.0  # logarithm of the remaining weight of the first rows
        self.filled = rows  # number of rows in the buffer that count; the others are zero
        self.paused = False
        self._was_determined = False  # whether all parameters were ever determined
        size = count + 1
        self._triangle, self.buffer, self._removed = (wide_rows(k, size) for k in (size, rows, rows))
        self._theta: Array = wide_rows(1, size)[0]
        self._above = np.triu(np.ones((size, size), dtype=bool))
        self._add_rows = Reflections(self._triangle, self.buffer, size, theta=self._theta)
        self._remove_rows = Reflections(self._triangle, self._removed, count, remove=True)

    # ---------------------------------------------------------------- new rows

    def start(self, theta0: Array, P0: ArrayLike) -> None:
        """Start with an estimate.

        Args:
            theta0: The estimate.
            P0: Its covariance: a number, a diagonal or a matrix; inf: unknown.
        """
        R = _root_of_inverse(P0, self.count)
        self.replace(np.column_stack([R, R @ theta0]), 0.0)
        self.updates, self.weight, self.paused, self._was_determined = 0, 0.0, False, False
        self.faded = 0.0

    def update(self, A: ArrayLike, y: ArrayLike, scale: float = 1.0) -> None:
        """Add rows y = A θ.

        Args:
            A: Regressor rows, shape (rows, parameters).
            y: Right sides, shape (rows,).
            scale: Factor on the triangle before the update.
        """
        new, right = np.asarray(A, dtype=float), np.asarray(y, dtype=float)
        if new.shape != (self.rows, self.count) or right.shape != (self.rows,):
            raise ShapeError(
                f"A has shape {new.shape} and y {right.shape}; ({self.rows}, {self.count}) and ({self.rows},) are "
                "needed."
            )
        self.buffer[:, : self.count] = new
        self.buffer[:, self.count] = right
        self.absorb(scale)

    def absorb(self, scale: float = 1.0, solve: bool = False) -> None:
        """Add the rows [A y] in `buffer`, which is overwritten.

        Args:
            scale: Factor on the triangle before the update.
            solve: Also compute the estimate.
        """
        self._add_rows(scale, solve)
        self.updates += 1
        self.weight = scale * scale * self.weight + self.filled
        if scale != 1.0:
            self.faded += 2.0 * log(scale)
        if self.updates % _CHECK_INTERVAL == 0:
            self._check_pivots(scale)

    def absorb_many(self, rows: Array, scale: float) -> None:
        """Add several updates.

        Args:
            rows: Rows [A y], shape (updates, rows, columns of the buffer); overwritten.
            scale: Factor on the triangle before each update.
        """
        if self.rows > MOST_ROWS or not rows.flags.c_contiguous or rows.shape[1:] != self.buffer.shape:
            raise ShapeError(f"rows have shape {rows.shape}; (updates, {self.rows}, {self.buffer.shape[1]}) is needed.")
        self._add_rows.update_many(rows, scale)
        remaining = scale ** (2 * len(rows))
        self.faded += 2.0 * len(rows) * log(scale)
        self.weight = remaining * self.weight + self.rows * (
            len(rows) if scale == 1.0 else (1.0 - remaining) / (1.0 - scale * scale)
        )
        self.updates += len(rows)
        self._check_pivots(scale)

    def _check_pivots(self, scale: float) -> None:
        if scale < 1.0:
            self.paused = bool(self.pivots.min() < _SMALLEST_PIVOT)

    # ---------------------------------------------------------------- forgetting

    def scale(self, factor: float) -> None:
        """Multiply all information by `factor`²; the estimate does not change."""
        self._triangle *= factor
        self.weight *= factor * factor
        self.faded += 2.0 * log(factor)

    def forget_along(self, A: Array, factor: float) -> None:
        """Keep the share `factor` of the information in the directions of the rows, and all of it in the others.

        Args:
            A: The rows.
            factor: Remaining share.
        """
        self._was_determined = self._was_determined or self.determined
        if not self._was_determined:
            return  # undetermined parameters cannot be forgotten
        root = self._triangle[: self.count, : self.count + 1]
        B = root[:, :-1] @ A.T
        removed = _along(B, root)
        self._removed[len(removed) :] = 0.0
        self._removed[: len(removed), : self.count + 1] = sqrt(1.0 - factor) * removed
        # The information stays at least `factor` of what it was in every direction, so there is no cancellation.
        self._remove_rows()
        self._triangle[self.count, self.count] *= sqrt(factor)
        self.weight *= factor
        self.faded += log(factor)

    def replace(self, root: Array, residual: float) -> None:
        """Replace [R z] and ρ.

        Args:
            root: Any matrix with the required RᵀR.
            residual: ρ.
        """
        with one_blas_thread():
            result = triangle(np.asarray(root))[: self.count]
        result = result * np.where(np.diag(result) < 0.0, -1.0, 1.0)[:, None]
        self._triangle[:] = 0.0
        self._triangle[: self.count, : self.count + 1] = np.triu(result)
        self._triangle[self.count, self.count] = residual

    def reset(self, P0: ArrayLike) -> None:
        """Reset the covariance to `P0` and keep the estimate (Goodwin & Sin 1984, section 3.3)."""
        R = _root_of_inverse(P0, self.count)
        if not np.all(np.diag(R) > 0.0):
            raise EstimationError("reset needs a finite P0; with an infinite one the estimate would be lost.")
        self.replace(np.column_stack([R, R @ self.theta()]), self.residual)

    # ---------------------------------------------------------------- results

    @property
    def R(self) -> Array:
        """The square root of the information, upper triangular."""
        return self.triangle[:-1, :-1]

    @property
    def triangle(self) -> Array:
        """[R z; 0 ρ]."""
        # The kernel leaves rounding below the diagonal.
        return np.where(self._above, self._triangle[:, : self.count + 1], 0.0)

    @property
    def pivots(self) -> Array:
        return np.diagonal(self._triangle)[: self.count]

    @property
    def residual(self) -> float:
        """ρ, the square root of the weighted sum of squared residuals."""
        return float(self._triangle[self.count, self.count])

    @property
    def determined(self) -> bool:
        """Whether rows and prior determine every parameter."""
        return determined(self.R)

    @property
    def solved(self) -> Array:
        """Estimate of the last `absorb(solve=True)`; the next call overwrites it."""
        return self._theta[: self.count]

    def theta(self) -> Array:
        """Return the estimate; NaN if it is not determined yet."""
        if not self.determined:
            return np.full(self.count, np.nan)
        return np.asarray(solve_triangular(self.R, self._triangle[: self.count, self.count]))

    @property
    def noise(self) -> float:
        """Standard deviation of the weighted residuals."""
        return self.residual / sqrt(max(self.weight - self.count, 1.0))

    def covariance(self) -> Array:
        """Compute P = R⁻¹R⁻ᵀ, the covariance for rows of unit noise."""
        with one_blas_thread():
            inverse = solve_triangular(self._checked(), np.eye(self.count))
            return np.asarray(inverse @ inverse.T)

    def eigenvalues(self) -> Array:
        """Compute the eigenvalues of P, largest first."""
        with one_blas_thread():
            return np.asarray(np.linalg.svd(self._checked(), compute_uv=False)[::-1] ** -2.0, dtype=np.float64)

    def _checked(self) -> Array:
        if not self.determined:
            raise EstimationError("The rows do not determine all parameters yet; P is not finite yet.")
        return self.R

    # ---------------------------------------------------------------- saved states

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Allowed differences of a saved state from a new one: older versions have one number less."""
        return {"counts": ArrayRule(rows=5, fewest=4)}

    def state(self) -> dict[str, Array]:
        """Return the complete state as arrays."""
        counts = np.array([self.updates, self.weight, float(self.paused), float(self._was_determined), self.faded])
        return {"triangle": self._triangle[:, : self.count + 1].copy(), "counts": counts}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._triangle[:] = 0.0
        self._triangle[:, : self.count + 1] = state["triangle"]
        updates, weight, paused, known, *more = state["counts"]
        self.updates, self.weight, self.paused, self._was_determined = (
            int(updates),
            float(weight),
            bool(paused),
            bool(known),
        )
        self.faded = float(more[0]) if more else 0.0  # missing in states of older versions


def determined(R: Array) -> bool:
    """Whether a triangle `R` can be solved: every pivot is larger than rounding."""
    return bool(np.all(np.diagonal(R) > _DEPENDENT * np.linalg.norm(R, axis=0)))


def _root_of_inverse(P0: ArrayLike, count: int) -> Array:
    """R with RᵀR = P0⁻¹."""
    covariance = np.asarray(P0, dtype=float)
    if covariance.ndim < 2:
        if covariance.shape not in ((), (count,)) or not np.all(covariance > 0.0):
            raise EstimationError(f"P0 must be positive: a number, {count} variances, or a matrix (inf: unknown).")
        return np.diag(np.broadcast_to(1.0 / np.sqrt(covariance), (count,)))
    if covariance.shape != (count, count) or not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0.0):
        raise EstimationError(f"P0 has shape {covariance.shape}; a symmetric matrix of {count} × {count} is needed.")
    try:
        lower = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise EstimationError("P0 is not positive definite; give variances, or inf for unknown parameters.") from None
    return triangle(np.asarray(solve_triangular(lower, np.eye(count), lower=True)))


def _along(B: Array, root: Array) -> Array:
    """Uᵀ · root with any orthonormal basis U of the columns of B, since only UUᵀ matters."""
    gram = B.T @ B
    half, fault = dpotrf(gram, lower=1)
    steps = half.diagonal()
    if not fault and steps.min() > _MIN_PIVOT_RATIO * steps.max():  # a tenth of the time of the general case
        return np.asarray(dtrtrs(half, B.T @ root, lower=1)[0])
    squares, V = np.linalg.eigh(gram)
    significant = squares > _MIN_SQUARE * squares[-1]
    return np.asarray(((B @ V[:, significant]) / np.sqrt(squares[significant])).T @ root)
