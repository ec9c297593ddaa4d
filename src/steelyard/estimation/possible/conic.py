"""The same `Program` by CVXPY and Clarabel: a second opinion, and the oracle of the tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.possible.formulate import Program
from steelyard.ground.arrays import Array


def solve_conic(program: Program) -> Array:
    """x by a general interior-point solver; importing CVXPY takes longer than solving."""
    try:
        from importlib import import_module

        cp: Any = import_module("cvxpy")  # half-typed: its functions are unknown to type checkers
    except ImportError as error:
        raise EstimationError("solver='clarabel' needs CVXPY and Clarabel: pip install 'steelyard[conic]'.") from error
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
    raise EstimationError("Clarabel stopped outside of what is physically possible; use solver='newton'.")
