"""Solvers of `Program`: a Newton method, and CVXPY with Clarabel as an independent check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.possible._formulate import Program
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.extras import import_extra

# A path-following Newton method for `Program`: every iterate is strictly inside the physically possible set.
#
# The log-det terms of the problem are barriers of its cones. The method adds only μ times a barrier of the same kind,
# tr X − log det X, with μ → 0 (Nesterov & Nemirovskii 1994). Its trace keeps undetermined directions near the reference
# while μ is large; −log det alone would drive them to infinity. Some hundred variables take milliseconds.


# The last μ: the cost is within μ·(number of barrier degrees, some forty) squared standard deviations of the optimum.
# With a prior, whose log det keeps all matrices well inside, it can be small. On the boundary without a prior, matrices
# become singular and rounding sets the limit; a hundredth of σ² is accurate enough for the shares of the cost.
LAST_WITH_PRIOR = 1e-7
_LAST_WITHOUT_PRIOR = 1e-4
# Factor of μ between stages: without a prior, small factors leave the region of fast convergence.
_FACTOR_WITH_PRIOR = 0.1
_FACTOR_WITHOUT_PRIOR = 0.5
_MAX_STEPS = 60
_DECREMENT_TOLERANCE = 1e-10  # half the squared Newton decrement, in the units of the cost
_SUFFICIENT_DECREMENT = 0.1  # the same in units of μ, if rounding limits it

# Places of the upper triangle in a flat 4 × 4 matrix; entries off the diagonal count twice in a sum of squares.
_UPPER = np.array([0, 1, 2, 3, 5, 6, 7, 10, 11, 15])
_TWICE = np.where(np.isin(_UPPER, (0, 5, 10, 15)), 1.0, np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class Solution:
    """The best x and the last barrier weight μ."""

    x: Array
    barrier: float
    steps: int
    converged: bool


def solve_interior(program: Program, first: float | None = None) -> Solution:
    """Follow the central path from the start to a small μ.

    Args:
        program: The program.
        first: First μ, if the start is close to the solution.
    """
    with one_blas_thread():
        newton = _Newton(program)
        v = program.coordinates(program.start)
        if newton.value(v, 1.0) is None:
            raise EstimationError(
                "No physically possible robot is near these rows: check signs, zero positions, scales and clock "
                "(steelyard check), and bounds set by hand, which may be too narrow."
            )
        barriers = 4.0 * len(program.cones) + len(program.C)
        mu = first if first is not None else max(1.0, newton.quadratic(v) / max(barriers, 1.0))
        prior = bool(program.cone_weights.all())
        last = LAST_WITH_PRIOR if prior else _LAST_WITHOUT_PRIOR
        stride = _FACTOR_WITH_PRIOR if prior else _FACTOR_WITHOUT_PRIOR
        steps = 0
        while True:
            v, used, decrement = newton.descend(v, mu)
            steps += used
            if mu <= last:
                break
            mu = max(mu * stride, last)
        return Solution(newton.x(v), mu, steps, decrement < max(_SUFFICIENT_DECREMENT * mu, 1e-6))


def reference_response(program: Program, x: Array) -> Array:
    """Compute the change of the solution `x` per relative growth of each reference body, shape (links, x)."""
    with one_blas_thread():
        newton = _Newton(program)
        _, hessian = newton.derivatives(newton.inside(program.coordinates(x)), LAST_WITH_PRIOR)
        # A reference enters the gradient as the slope of tr P⁰⁻¹P, which falls as the body grows.
        traces = np.einsum("iaav->iv", newton.cones.reshape(len(program.cones), 4, 4, -1))
        return np.asarray(_solve(hessian, program.cone_weights[:, None] * traces) @ newton.V.T)


class _Newton:
    """Cost, gradient and Hessian over v = (z, n)."""

    def __init__(self, program: Program) -> None:
        self.p = program
        self.V, self.v0 = program.transform
        count = len(program.cones)
        self.cones = program.cones @ self.V  # (links, 16, v)
        self.cones0 = (program.cones @ self.v0).reshape(count, 4, 4)
        self.C, self.c = program.C @ self.V, program.C @ self.v0 + program.c
        self.D, self.d = program.D @ self.V, program.D @ self.v0 + program.d
        self.F, self.f = program.F @ self.V, program.f - program.F @ self.v0
        self.rank = len(program.G)

    def x(self, v: Array) -> Array:
        return np.asarray(self.v0 + self.V @ v)

    def quadratic(self, v: Array) -> float:
        rest = self.F @ v - self.f
        return 0.5 * float(v[: self.rank] @ v[: self.rank]) + 0.5 * float(rest @ rest)

    def matrices(self, v: Array) -> Array:
        return np.asarray((self.cones @ v).reshape(-1, 4, 4) + self.cones0)

    def value(self, v: Array, mu: float) -> float | None:
        """The cost with the barrier; None outside the possible set."""
        lines, scalars = self.C @ v + self.c, self.D @ v + self.d
        if np.any(lines <= 0.0) or np.any(scalars <= 0.0):
            return None
        X = self.matrices(v)
        try:
            logs = 2.0 * np.sum(np.log(np.diagonal(np.linalg.cholesky(X), axis1=1, axis2=2)), axis=1)
            inner = np.linalg.cholesky(X - self.p.margin * np.eye(4))
        except np.linalg.LinAlgError:
            return None
        traces = np.trace(X, axis1=1, axis2=2)
        barrier = float(traces.sum()) - 2.0 * float(np.sum(np.log(np.diagonal(inner, axis1=1, axis2=2))))
        barrier += float(np.sum(lines - np.log(lines)))
        entropic = float(self.p.cone_weights @ (traces - logs))
        entropic += float(self.p.scalar_weights @ (scalars - np.log(scalars)))
        return self.quadratic(v) + entropic + mu * barrier

    def inside(self, v: Array) -> Array:
        """Move v towards the start as little as necessary, if rounding left it on the boundary of the possible set."""
        start = self.p.coordinates(self.p.start)
        for part in (0.0, *10.0 ** np.arange(-12.0, 0.0)):
            point = (1.0 - part) * v + part * start
            if self.value(point, 1.0) is not None:
                return np.asarray(point)
        return start

    def derivatives(self, v: Array, mu: float) -> tuple[Array, Array]:
        p, eye = self.p, np.eye(4)
        gradient, hessian = np.zeros_like(v), self.F.T @ self.F
        gradient[: self.rank] = v[: self.rank]
        hessian[np.arange(self.rank), np.arange(self.rank)] += 1.0
        gradient += self.F.T @ (self.F @ v - self.f)
        X = self.matrices(v)
        # Both logarithms of all links at once: of P_i for the reference, of P_i − margin for the barrier.
        inside = np.stack([X, X - p.margin * eye])
        weights = np.stack([p.cone_weights, np.full(len(X), mu)])[:, :, None, None]
        if not p.cone_weights.any():
            inside, weights = inside[1:], weights[1:]
        root = np.linalg.inv(np.linalg.cholesky(inside))
        slopes = np.sum(weights * (eye - np.swapaxes(root, -1, -2) @ root), axis=0)
        gradient += slopes.reshape(-1) @ self.cones.reshape(-1, len(v))
        pairs = np.einsum("...ij,...km->...ikjm", root, root).reshape(*root.shape[:-2], 16, 16)
        pairs = pairs[..., _UPPER, :] * _TWICE[:, None]  # L⁻¹EL⁻ᵀ is symmetric: ten of its sixteen entries suffice
        half = ((np.sqrt(weights) * pairs) @ self.cones).reshape(-1, len(v))  # its square is Σ w Eᵀ(X⁻¹ ⊗ X⁻¹)E
        hessian += half.T @ half
        lines, scalars = self.C @ v + self.c, self.D @ v + self.d
        gradient += self.C.T @ (mu * (1.0 - 1.0 / lines))
        hessian += (self.C.T * (mu / lines**2)) @ self.C
        gradient += self.D.T @ (p.scalar_weights * (1.0 - 1.0 / scalars))
        hessian += (self.D.T * (p.scalar_weights / scalars**2)) @ self.D
        return gradient, hessian

    def descend(self, v: Array, mu: float) -> tuple[Array, int, float]:
        """Take damped Newton steps at one μ until the decrement is small: (v, steps, decrement)."""
        cost = self.value(v, mu)
        assert cost is not None
        decrement = np.inf
        for step in range(_MAX_STEPS):
            with np.errstate(over="ignore", invalid="ignore"):
                gradient, hessian = self.derivatives(v, mu)
            if not np.all(np.isfinite(hessian)):
                return v, step + 1, decrement  # a matrix is singular but for rounding: no step can be computed
            step_vector = -_solve(hessian, gradient)
            decrement = -0.5 * float(gradient @ step_vector)
            # Rounding in the Hessian's worst direction limits the decrement.
            if decrement < max(_DECREMENT_TOLERANCE, 1e-13 * abs(cost)):
                return v, step + 1, decrement
            length = 1.0
            while True:
                new = self.value(v + length * step_vector, mu)
                if new is not None and new <= cost - 0.2 * length * decrement:
                    break
                length *= 0.5
                if length < 1e-10:
                    return v, step + 1, decrement
            v, cost = v + length * step_vector, new
        return v, _MAX_STEPS, decrement


def _solve(hessian: Array, right: Array) -> Array:
    """Solve for one right side, or for several as rows."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian * scale * scale[:, None]
    try:
        np.linalg.cholesky(scaled)  # definite? NumPy cannot solve with its factor: one elimination is faster than two
        return np.asarray(scale * np.linalg.solve(scaled, (scale * right).T).T)
    except np.linalg.LinAlgError:  # undetermined directions (strength 0) do not change
        return np.asarray(scale * (np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) @ (scale * right).T).T)


def solve_conic(program: Program) -> Array:
    """Solve by a general interior-point solver; importing CVXPY takes longer than solving."""
    cp = import_extra("cvxpy", "clarabel", "solver='clarabel'", EstimationError)
    V, v0 = program.transform
    rank = len(program.G)
    v = cp.Variable(V.shape[1])
    cost: Any = 0.5 * cp.sum_squares(v[:rank])
    constraints: list[Any] = []
    for E, weight in zip(program.cones, program.cone_weights, strict=True):
        X = cp.reshape((E @ V) @ v + E @ v0, (4, 4), order="C")
        symmetric = 0.5 * (X + X.T)
        constraints.append(symmetric >> program.margin * np.eye(4))
        if weight > 0.0:
            cost += weight * (cp.trace(X) - cp.log_det(symmetric))
    x = v0 + V @ v
    if len(program.C):
        constraints.append(program.C @ x + program.c >= 0.0)
    if len(program.D):
        scalars = program.D @ x + program.d
        cost += program.scalar_weights @ (scalars - cp.log(scalars))
    if len(program.F):
        cost += 0.5 * cp.sum_squares(program.F @ x - program.f)
    problem = cp.Problem(cp.Minimize(cost), constraints)
    problem.solve(solver=cp.CLARABEL)
    if v.value is None:
        raise EstimationError(f"Clarabel failed to find a physically possible robot ({problem.status}).")
    return _inside(program, np.asarray(v0 + V @ v.value))


def _inside(program: Program, x: Array) -> Array:
    """Move x towards the start as little as necessary, if the solver's tolerance left it outside."""
    for part in (0.0, *10.0 ** np.arange(-12.0, 0.0)):
        point = (1.0 - part) * x + part * program.start
        matrices = program.matrices(point) - 0.5 * program.margin * np.eye(4)
        if np.linalg.eigvalsh(matrices).min() > 0.0 and np.all(program.C @ point + program.c >= 0.0):
            return np.asarray(point)
    raise EstimationError(
        "Clarabel stopped outside the physically possible set; use the solver newton (in Python: solver='newton')."
    )
