"""Inverse kinematics of any robot by damped least squares (Levenberg–Marquardt) within the joint limits."""

from __future__ import annotations

import numpy as np

from steelyard.robot.inverse_kinematics_target import Pose, Tip, pose_error
from steelyard.robot.spatial import Array

# Metres and radians: a hundred times above what rounding leaves of a pose, far below any encoder.
TOLERANCE = 1e-10
_ITERATIONS = 100
_STARTS = 48


def solve_from(tip: Tip, pose: Pose, starts: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """From each of `starts` (n, joints) to a posture near the pose; (postures, what is missing (n,)).

    Joints that a step would push over a limit are held there for that step, so the others make up for them.
    """
    q = np.clip(starts, low, high)
    damping = np.full(len(q), 1e-3)
    error, J = _state(tip, pose, q)
    cost = np.linalg.norm(error, axis=1)
    for _ in range(_ITERATIONS):
        active = (cost > TOLERANCE) & (damping < 1e10)
        if not active.any():
            break
        step = _step(J[active], error[active], damping[active], q[active], low, high)
        trial = np.clip(q[active] + step, low, high)
        new_error, new_J = _state(tip, pose, trial)
        new_cost = np.linalg.norm(new_error, axis=1)
        better = new_cost < cost[active]
        rows = np.flatnonzero(active)
        damping[rows] = np.where(better, np.maximum(damping[rows] / 8.0, 1e-14), damping[rows] * 8.0)
        won = rows[better]
        q[won], error[won], J[won], cost[won] = trial[better], new_error[better], new_J[better], new_cost[better]
    return q, cost


def random_starts(low: Array, high: Array, seed: int) -> Array:
    """Postures all over the joints' ranges; joints without limits turn once."""
    a, b = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(a, np.maximum(a, b), (_STARTS, len(low)))


def _state(tip: Tip, pose: Pose, q: Array) -> tuple[Array, Array]:
    J, rotation, place = tip.jacobian(q)
    error = pose_error(pose, rotation, place)
    return error, J[:, : error.shape[1]]


def _step(J: Array, error: Array, damping: Array, q: Array, low: Array, high: Array) -> Array:
    held = np.zeros(q.shape, dtype=bool)
    step = np.zeros(q.shape)
    # Each round holds at least one joint more or ends; three rounds settle nearly all, the clip of the caller the rest.
    for _ in range(3):
        free = J * ~held[:, None, :]
        normal = np.einsum("nij,nik->njk", free, free)
        size = np.maximum(np.einsum("njj->n", normal), 1e-12)
        normal += (damping * size)[:, None, None] * np.eye(q.shape[1])
        right = np.einsum("nij,ni->nj", free, error)
        step = np.linalg.solve(normal, right[..., None])[..., 0]
        over = ~held & (((q + step < low) & (q <= low)) | ((q + step > high) & (q >= high)))
        if not over.any():
            break
        held |= over
    return np.where(held, 0.0, step)
