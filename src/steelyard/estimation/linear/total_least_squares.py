"""Total least squares: errors in the columns as well as in the torque, with some columns exact if requested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import EstimationError, LinearEstimator
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear.least_squares import weighted
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.parameters.term import TERMS
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import triangle
from steelyard.regression.unknowns import Columns


@estimator("tls")
@dataclass(frozen=True)
class TotalLeastSquares(LinearEstimator):
    """The nearest consistent system [A + ΔA] β = y + Δy, by the smallest singular vector of the Ry triangle.

    The scaling defines "nearest": rows of joint j are divided by σ_j (standard deviation of its residuals in weighted
    least squares), every column of A by its root mean square times `column_error`, and y by `torque_error`. By default
    all relative errors are equal. After Van Huffel & Vandewalle 1991, "The Total Least Squares Problem"; for robots
    Gautier, Vandanjon & Presse 1994.

    Attributes:
        column_error: Relative errors of the columns: one number, or one per base parameter. If they are much smaller
            than that of the torque, the result is weighted least squares; if only the torque is noisy, use weighted
            least squares instead, because total least squares is then biased.
        torque_error: Relative error of the torque.
    """

    about = "errors in the columns as well as in the torque"

    column_error: float | tuple[float, ...] = 1.0
    torque_error: float = 1.0

    def free(self, data: RegressionData, columns: Columns) -> FreeFit:
        start = weighted(LeastSquaresProblem.of(data, columns), 100, 1e-8)
        Ry = start.triangle
        scale = self._scale(Ry, columns.rank)
        _, values, directions = np.linalg.svd(Ry / scale)
        last = directions[-1] / scale
        if abs(directions[-1][-1]) < 1e-8:
            raise EstimationError(
                "Total least squares has no finite solution: the columns are nearer to dependence than the torque "
                "is to the model. Use weighted least squares."
            )
        beta = -last[:-1] / last[-1]
        R = Ry[:-1, :-1]
        # The normal equations of total least squares: (AᵀA − σ²D²) β = Aᵀy.
        bread = R.T @ R - np.diag((values[-1] * scale[:-1]) ** 2)
        return FreeFit(
            start.problem, beta, start.weights, Ry, start.problem.residual_std(beta, Ry, start.weights),
            bread=bread, history=start.history,
            details={"singular_values": (float(values[0]), float(values[-2]), float(values[-1]))},
        )  # fmt: skip

    def _scale(self, Ry: Array, rank: int) -> Array:
        """Size of one unit of error for every column of [A y]."""
        errors = np.broadcast_to(np.asarray(self.column_error, dtype=float), (rank,))
        if np.any(errors <= 0.0) or self.torque_error <= 0.0:
            raise EstimationError("column_error and torque_error must be positive.")
        lengths = np.linalg.norm(Ry, axis=0)
        length = lengths[-1] if lengths[-1] > 0.0 else 1.0
        return np.concatenate([lengths[:-1] * errors, [length * self.torque_error]])


# Smallest last entry of the singular vector for which finite parameters exist.
_NO_SOLUTION = 1e-8


@estimator("rtls")
@dataclass(frozen=True)
class RestrictedTotalLeastSquares(LinearEstimator):
    """The nearest consistent system [A₁, A₂ + ΔA₂] β = y + Δy with exact columns A₁.

    A QR factorisation with the exact columns first leaves a small total-least-squares problem in the others; the exact
    ones follow by back substitution (Van Huffel & Vandewalle 1991, "The Total Least Squares Problem", algorithm 3.2,
    mixed LS–TLS). Rows are divided by σ_j and columns by their root mean square, as in `TotalLeastSquares`.

    Attributes:
        exact: Kinds of terms with exact columns (None: those whose class is exact; (): total least squares; all kinds:
            weighted least squares).
        column_error: Relative error of the other columns.
        torque_error: Relative error of the torque.
    """

    about = "total least squares, but some columns are exact"
    any_columns = False

    exact: tuple[str, ...] | None = None
    column_error: float = 1.0
    torque_error: float = 1.0

    def __post_init__(self) -> None:
        for kind in self.exact or ():
            if kind not in TERMS:
                raise UnknownNameError("term", kind, TERMS)
        if not (self.column_error > 0.0 and self.torque_error > 0.0):
            raise EstimationError("column_error and torque_error must be positive.")

    def free(self, data: RegressionData, columns: BaseParameters) -> FreeFit:
        start = weighted(LeastSquaresProblem.of(data, columns), 100, 1e-8)
        Ry = start.triangle
        exact = self.exact_columns(columns)
        scale = self._scale(Ry)
        with one_blas_thread():
            beta, smallest = _solve(Ry / scale, exact)
        beta = beta * scale[-1] / scale[:-1]
        R = Ry[:-1, :-1]
        # The normal equations: (AᵀA − σ²D²) β = Aᵀy, with no D where there is no error.
        bread = R.T @ R - np.diag(np.where(exact, 0.0, smallest * scale[:-1]) ** 2)
        return FreeFit(
            start.problem, beta, start.weights, Ry, start.problem.residual_std(beta, Ry, start.weights),
            bread=bread, history=start.history,
            details={"exact": tuple(n for n, k in zip(columns.names, exact, strict=True) if k)},
        )  # fmt: skip

    def exact_columns(self, base: BaseParameters) -> NDArray[np.bool_]:
        """Find which columns of `base` are exact."""
        is_exact = [False] * base.robot.inertial_count
        is_exact += base.terms.per_parameter(
            lambda term, _: term.exact if self.exact is None else term.kind in self.exact
        )
        return np.array([is_exact[k] for k in base.independent])

    def _scale(self, Ry: Array) -> Array:
        lengths = np.linalg.norm(Ry, axis=0)
        length = lengths[-1] if lengths[-1] > 0.0 else 1.0
        return np.concatenate([lengths[:-1] * self.column_error, [length * self.torque_error]])


def _solve(Ry: Array, is_exact: NDArray[np.bool_]) -> tuple[Array, float]:
    """β of a scaled triangle [A y], and the singular value that is removed."""
    from scipy.linalg import solve_triangular

    exact, other = np.flatnonzero(is_exact), np.flatnonzero(~is_exact)
    first = len(exact)
    T = triangle(Ry[:, [*exact, *other, Ry.shape[1] - 1]])
    beta, smallest = np.zeros(Ry.shape[1] - 1), 0.0
    if len(other):
        _, values, directions = np.linalg.svd(T[first:, first:])
        last, smallest = directions[-1], float(values[-1])
        if abs(last[-1]) < _NO_SOLUTION:
            raise EstimationError(
                "Restricted total least squares has no finite solution: the columns are nearer to dependence than "
                "the torque is to the model. Use weighted least squares."
            )
        beta[other] = -last[:-1] / last[-1]
    if first:
        rest = T[:first, -1] - T[:first, first:-1] @ beta[other]
        beta[exact] = solve_triangular(T[:first, :first], rest)
    return beta, smallest
