"""Solvers of `Program`: a Newton method of our own, and CVXPY with Clarabel, a second opinion and the tests' oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.possible._formulate import Program
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.extras import import_extra

# A path-following Newton method for `Program`: every iterate is strictly inside what is physically possible.
#
# The log-det terms of the problem are the barrier of its own cones, so nothing is added but μ times a barrier of the
# same kind, tr X − log det X, with μ → 0 (Nesterov & Nemirovskii 1994). Its trace keeps what the data do not show
# near the reference while μ is large; a bare −log det would drive it to infinity. Some hundred variables take
# milliseconds.


# The last μ: the cost is within μ·(number of barrier degrees, some forty) squared standard deviations of the best.
# With a prior, whose own log det keeps all matrices well inside, it can be small; on the bare boundary, where they
# get singular, rounding sets the limit, and a hundredth of σ² is good enough to say what costs how much.
LAST_WITH_PRIOR = 1e-7
_LAST_BARE = 1e-4
# How μ falls from stage to stage: on the bare boundary long strides leave Newton's region of fast convergence.
_STRIDE_WITH_PRIOR = 0.1
_STRIDE_BARE = 0.5
_STEPS = 60
_STILL = 1e-10  # half the squared Newton decrement, in the units of the cost
_STILL_ENOUGH = 0.1  # the same in units of μ, where rounding stopped it


@dataclass(frozen=True, eq=False)
class Solution:
    """The best x and the barrier weight μ it was found with."""

    x: Array
    barrier: float
    steps: int
    converged: bool


def solve_interior(program: Program, first: float | None = None) -> Solution:
    """Follow the central path from the start to a small μ; `first`: the first μ, where the start is a good one."""
    with one_blas_thread():
        walker = _Walker(program)
        v = program.coordinates(program.start)
        if walker.value(v, 1.0) is None:
            raise EstimationError(
                "No physically possible robot is near these rows: look for a wrong sign, zero, scale or clock "
                "(steelyard check); bounds set by hand may be too narrow as well."
            )
        barriers = 4.0 * len(program.cones) + len(program.C)
        mu = first if first is not None else max(1.0, walker.quadratic(v) / max(barriers, 1.0))
        prior = bool(program.cone_weights.all())
        last = LAST_WITH_PRIOR if prior else _LAST_BARE
        stride = _STRIDE_WITH_PRIOR if prior else _STRIDE_BARE
        steps = 0
        while True:
            v, used, decrement = walker.descend(v, mu)
            steps += used
            if mu <= last:
                break
            mu = max(mu * stride, last)
        return Solution(walker.x(v), mu, steps, decrement < max(_STILL_ENOUGH * mu, 1e-6))


class _Walker:
    """The cost, its gradient and Hessian over v = (z, n)."""

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
        """The cost with the barrier; None outside."""
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
        half = ((np.sqrt(weights) * pairs) @ self.cones).reshape(-1, len(v))  # its square is Σ w Eᵀ(X⁻¹ ⊗ X⁻¹)E
        hessian += half.T @ half
        lines, scalars = self.C @ v + self.c, self.D @ v + self.d
        gradient += self.C.T @ (mu * (1.0 - 1.0 / lines))
        hessian += (self.C.T * (mu / lines**2)) @ self.C
        gradient += self.D.T @ (p.scalar_weights * (1.0 - 1.0 / scalars))
        hessian += (self.D.T * (p.scalar_weights / scalars**2)) @ self.D
        return gradient, hessian

    def descend(self, v: Array, mu: float) -> tuple[Array, int, float]:
        """Damped Newton steps at one μ until the decrement is small: (v, steps, decrement)."""
        now = self.value(v, mu)
        assert now is not None
        decrement = np.inf
        for step in range(_STEPS):
            gradient, hessian = self.derivatives(v, mu)
            move = -_solve(hessian, gradient)
            decrement = -0.5 * float(gradient @ move)
            # Rounding in the Hessian's worst direction limits how still it can get.
            if decrement < max(_STILL, 1e-13 * abs(now)):
                return v, step + 1, decrement
            length = 1.0
            while True:
                new = self.value(v + length * move, mu)
                if new is not None and new <= now - 0.2 * length * decrement:
                    break
                length *= 0.5
                if length < 1e-10:
                    return v, step + 1, decrement
            v, now = v + length * move, new
        return v, _STEPS, decrement


def _solve(hessian: Array, right: Array) -> Array:
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian * scale * scale[:, None]
    try:
        root = np.linalg.cholesky(scaled)
        return np.asarray(scale * np.linalg.solve(root.T, np.linalg.solve(root, scale * right)))
    except np.linalg.LinAlgError:  # directions that nothing holds (strength 0): stay there
        return np.asarray(scale * (np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) @ (scale * right)))


def solve_conic(program: Program) -> Array:
    """x by a general interior-point solver; importing CVXPY takes longer than solving."""
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
        raise EstimationError(f"Clarabel found no physically possible robot ({problem.status}).")
    return _inside(program, np.asarray(v0 + V @ v.value))


def _inside(program: Program, x: Array) -> Array:
    """Move towards the start, by as little as it takes, where the solver's tolerance left x outside."""
    for part in (0.0, *10.0 ** np.arange(-12.0, 0.0)):
        moved = (1.0 - part) * x + part * program.start
        matrices = program.matrices(moved) - 0.5 * program.margin * np.eye(4)
        if np.linalg.eigvalsh(matrices).min() > 0.0 and np.all(program.C @ moved + program.c >= 0.0):
            return np.asarray(moved)
    raise EstimationError(
        "Clarabel stopped outside of what is physically possible; use the solver newton (in Python: solver='newton')."
    )
