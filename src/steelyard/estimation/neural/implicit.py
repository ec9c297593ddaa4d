"""A step of a Hopfield network that no stiffness can break: implicit Euler, solved in the space of the rows."""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array

_NEWTON_STEPS = 50
_HALVINGS = 40


def implicit_step(u: Array, rows: Array, targets: Array, length: float, bound: float, gain: float) -> Array:
    """u' with u' = u + l Φᵀ(y − Φ λ(u')), λ = c tanh(u/β).

    With r = y − Φλ(u') this is g(r) = r + Φ λ(u + l Φᵀr) − y = 0, the gradient of a strictly convex function: its
    Hessian I + l Φ (c/β) diag(1 − tanh²) Φᵀ is never singular, and Newton's method with a line search always ends.
    """
    r = targets - rows @ (bound * np.tanh(u / gain))
    moved = u + length * rows.T @ r
    miss = _miss(r, moved, rows, targets, bound, gain)
    size = float(miss @ miss)
    goal = 1e-26 * (float(targets @ targets) + 1e-300)
    for _ in range(_NEWTON_STEPS):
        if size <= goal:
            break
        slope = bound / gain * (1.0 - np.tanh(moved / gain) ** 2)
        hessian = np.eye(len(r)) + length * (rows * slope) @ rows.T
        direction = np.linalg.solve(hessian, miss)
        share = 1.0
        for _ in range(_HALVINGS):
            trial = r - share * direction
            there = u + length * rows.T @ trial
            new = _miss(trial, there, rows, targets, bound, gain)
            if float(new @ new) < size:
                break
            share *= 0.5
        else:
            break  # nothing but rounding is left
        r, moved, miss, size = trial, there, new, float(new @ new)
    return np.asarray(moved)


def _miss(r: Array, u: Array, rows: Array, targets: Array, bound: float, gain: float) -> Array:
    return np.asarray(r + rows @ (bound * np.tanh(u / gain)) - targets)
