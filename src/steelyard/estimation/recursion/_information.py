"""`Information`: all rows so far as one triangle [R z; 0 ρ], to which new rows are added a few at a time.

R is the square root of the information, RᵀR = P⁻¹; the estimate is R⁻¹z and ρ² the weighted sum of squared residuals.
Of the two square-root forms this one was chosen over the covariance's (Potter, Carlson, Bierman) because "nothing is
known yet" is simply R = 0, because orthogonal transformations of rows can only lengthen columns (no sum of squares is
ever subtracted, so P = R⁻¹R⁻ᵀ cannot lose its sign), and because batch least squares does the same, so that the two
agree to rounding.
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

# A pivot below this part of its column is rounding: the column is still a combination of the earlier ones.
_DEPENDENT = 1e-12
# Below this pivot (P above 1e200) forgetting pauses: the next decade of forgetting would end in underflow.
_SMALLEST_PIVOT = 1e-100
_LOOKED_AT_EVERY = 64
# Squared lengths below this part of the longest are rounding, not directions.
_NO_DIRECTION = 1e-12
# Rows whose lengths apart from one another differ by less than this need no eigenvalues.
_WELL_APART = 1e-4


class Information:
    """The triangle of `count` parameters with room for `rows` new rows at a time."""

    def __init__(self, count: int, rows: int) -> None:
        self.count, self.rows = count, rows
        self.updates = 0
        self.weight = 0.0  # rows, each counting as much as forgetting has left of it
        self.faded = 0.0  # ln of what forgetting has left of the first rows
        self.filled = rows  # how many of the rows in the buffer count: rows of zeros say nothing
        self.paused = False
        self._known = False  # whether the rows have ever fixed every parameter
        size = count + 1
        self._triangle, self.buffer, self._removed = (wide_rows(k, size) for k in (size, rows, rows))
        self._theta: Array = wide_rows(1, size)[0]
        self._above = np.triu(np.ones((size, size), dtype=bool))
        self._take_in = Reflections(self._triangle, self.buffer, size, theta=self._theta)
        self._take_out = Reflections(self._triangle, self._removed, count, remove=True)

    # ---------------------------------------------------------------- new rows

    def start(self, theta0: Array, P0: ArrayLike) -> None:
        """Begin with the estimate θ0 of covariance P0 (a number, a diagonal or a matrix; inf: nothing is known)."""
        R = _root_of_inverse(P0, self.count)
        self.replace(np.column_stack([R, R @ theta0]), 0.0)
        self.updates, self.weight, self.paused, self._known = 0, 0.0, False, False
        self.faded = 0.0

    def update(self, A: ArrayLike, y: ArrayLike, scale: float = 1.0) -> None:
        """Add rows y = A θ, after the triangle was multiplied by `scale`."""
        new, right = np.asarray(A, dtype=float), np.asarray(y, dtype=float)
        if new.shape != (self.rows, self.count) or right.shape != (self.rows,):
            raise ShapeError(
                f"A has shape {new.shape} and y {right.shape}; ({self.rows}, {self.count}) and ({self.rows},) fit."
            )
        self.buffer[:, : self.count] = new
        self.buffer[:, self.count] = right
        self.absorb(scale)

    def absorb(self, scale: float = 1.0, solve: bool = False) -> None:
        """Add the rows [A y] that stand in `buffer` (and are used up); `solve` for the estimate at once."""
        self._take_in(scale, solve)
        self.updates += 1
        self.weight = scale * scale * self.weight + self.filled
        if scale != 1.0:
            self.faded += 2.0 * log(scale)
        if self.updates % _LOOKED_AT_EVERY == 0:
            self._look(scale)

    def absorb_many(self, rows: Array, scale: float) -> None:
        """Add `(updates, rows, columns of the buffer)` one after the other; the array is used up."""
        if self.rows > MOST_ROWS or not rows.flags.c_contiguous or rows.shape[1:] != self.buffer.shape:
            raise ShapeError(f"rows have shape {rows.shape}; (updates, {self.rows}, {self.buffer.shape[1]}) fit.")
        self._take_in.update_many(rows, scale)
        left = scale ** (2 * len(rows))
        self.faded += 2.0 * len(rows) * log(scale)
        self.weight = left * self.weight + self.rows * (
            len(rows) if scale == 1.0 else (1.0 - left) / (1.0 - scale * scale)
        )
        self.updates += len(rows)
        self._look(scale)

    def _look(self, scale: float) -> None:
        if scale < 1.0:
            self.paused = bool(self.pivots.min() < _SMALLEST_PIVOT)

    # ---------------------------------------------------------------- less information

    def scale(self, factor: float) -> None:
        """Multiply all information by factor²: what was known counts less, the estimate stays."""
        self._triangle *= factor
        self.weight *= factor * factor
        self.faded += 2.0 * log(factor)

    def forget_along(self, A: Array, factor: float) -> None:
        """Leave `factor` of the information in the directions of the rows A, and all of it in the others."""
        self._known = self._known or self.determined
        if not self._known:
            return  # what is not known cannot be forgotten
        root = self._triangle[: self.count, : self.count + 1]
        B = root[:, :-1] @ A.T
        removed = _along(B, root)
        self._removed[len(removed) :] = 0.0
        self._removed[: len(removed), : self.count + 1] = sqrt(1.0 - factor) * removed
        # The information is at least `factor` of what it was in every direction: nothing cancels.
        self._take_out()
        self._triangle[self.count, self.count] *= sqrt(factor)
        self.weight *= factor
        self.faded += log(factor)

    def replace(self, root: Array, residual: float) -> None:
        """Put another [R z] (any matrix with the wanted RᵀR) and ρ in place."""
        with one_blas_thread():
            made = triangle(np.asarray(root))[: self.count]
        made = made * np.where(np.diag(made) < 0.0, -1.0, 1.0)[:, None]
        self._triangle[:] = 0.0
        self._triangle[: self.count, : self.count + 1] = np.triu(made)
        self._triangle[self.count, self.count] = residual

    def reset(self, P0: ArrayLike) -> None:
        """Forget how well the estimate is known, not the estimate (Goodwin & Sin 1984, section 3.3)."""
        R = _root_of_inverse(P0, self.count)
        if not np.all(np.diag(R) > 0.0):
            raise EstimationError(
                "Resetting needs a finite P0: with an infinite one the estimate itself would be lost."
            )
        self.replace(np.column_stack([R, R @ self.theta()]), self.residual)

    # ---------------------------------------------------------------- what is known

    @property
    def R(self) -> Array:
        """The square root of the information, upper triangular."""
        return self.joined[:-1, :-1]

    @property
    def joined(self) -> Array:
        """[R z; 0 ρ]."""
        # The kernel leaves rounding below the diagonal, within a vector of it.
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
        """Whether the rows so far (and the prior) fix every parameter."""
        return determined(self.R)

    @property
    def solved(self) -> Array:
        """What the last `absorb(solve=True)` found; the next one overwrites it."""
        return self._theta[: self.count]

    def theta(self) -> Array:
        """The estimate; not a number where it is not determined yet."""
        if not self.determined:
            return np.full(self.count, np.nan)
        return np.asarray(solve_triangular(self.R, self._triangle[: self.count, self.count]))

    @property
    def noise(self) -> float:
        """Standard deviation of the weighted residuals, as far as rows beyond the parameters tell."""
        return self.residual / sqrt(max(self.weight - self.count, 1.0))

    def covariance(self) -> Array:
        """P = R⁻¹R⁻ᵀ: the covariance for rows of unit noise."""
        with one_blas_thread():
            inverse = solve_triangular(self._checked(), np.eye(self.count))
            return np.asarray(inverse @ inverse.T)

    def eigenvalues(self) -> Array:
        """Of P, from the largest to the smallest."""
        with one_blas_thread():
            return np.asarray(np.linalg.svd(self._checked(), compute_uv=False)[::-1] ** -2.0, dtype=np.float64)

    def _checked(self) -> Array:
        if not self.determined:
            raise EstimationError("The rows so far do not fix all parameters; P is not finite yet.")
        return self.R

    # ---------------------------------------------------------------- to be continued elsewhere

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Where a saved state may differ from that of a new one: those of before have one number less."""
        return {"counts": ArrayRule(rows=5, fewest=4)}

    def state(self) -> dict[str, Array]:
        """All that the future depends on, as arrays."""
        counts = np.array([self.updates, self.weight, float(self.paused), float(self._known), self.faded])
        return {"triangle": self._triangle[:, : self.count + 1].copy(), "counts": counts}

    def restore(self, state: Mapping[str, Array]) -> None:
        self._triangle[:] = 0.0
        self._triangle[:, : self.count + 1] = state["triangle"]
        updates, weight, paused, known, *more = state["counts"]
        self.updates, self.weight, self.paused, self._known = int(updates), float(weight), bool(paused), bool(known)
        self.faded = float(more[0]) if more else 0.0  # states of before have none


def determined(R: Array) -> bool:
    """Whether a triangle can be solved: every pivot is more than rounding."""
    return bool(np.all(np.diagonal(R) > _DEPENDENT * np.linalg.norm(R, axis=0)))


def _root_of_inverse(P0: ArrayLike, count: int) -> Array:
    """R with RᵀR = P0⁻¹."""
    given = np.asarray(P0, dtype=float)
    if given.ndim < 2:
        if given.shape not in ((), (count,)) or not np.all(given > 0.0):
            raise EstimationError(f"P0 must be positive: a number, {count} variances, or a matrix (inf: not known).")
        return np.diag(np.broadcast_to(1.0 / np.sqrt(given), (count,)))
    if given.shape != (count, count) or not np.allclose(given, given.T, rtol=1e-9, atol=0.0):
        raise EstimationError(f"P0 has shape {given.shape}; a symmetric matrix of {count} × {count} is needed.")
    try:
        lower = np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        raise EstimationError("P0 is not positive definite; give variances, or inf for what is not known.") from None
    return triangle(np.asarray(solve_triangular(lower, np.eye(count), lower=True)))


def _along(B: Array, root: Array) -> Array:
    """Uᵀ · root, where U is an orthonormal basis of the columns of B: any will do, since what counts is UUᵀ."""
    gram = B.T @ B
    half, fault = dpotrf(gram, lower=1)
    steps = half.diagonal()
    if not fault and steps.min() > _WELL_APART * steps.max():  # a tenth of the time of the general case
        return np.asarray(dtrtrs(half, B.T @ root, lower=1)[0])
    squares, V = np.linalg.eigh(gram)
    shown = squares > _NO_DIRECTION * squares[-1]
    return np.asarray(((B @ V[:, shown]) / np.sqrt(squares[shown])).T @ root)
