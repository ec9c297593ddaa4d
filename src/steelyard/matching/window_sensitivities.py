"""Exact derivatives of simulated windows, and their normal equations.

The derivative of a leapfrog step with respect to all parameters follows by implicit differentiation, with the matrix of
the step itself. The matrices ∂τ/∂q, ∂τ/∂q̇ and the regressor are computed for many steps together, after the simulation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import JOINT_BLOCKS, MatchPoint
from steelyard.matching.window_rollout import Feedback, Physics, Trajectories
from steelyard.regression.base_parameters import BaseParameters

# Number of steps in one evaluation of the matrices: enough for vectorised code, few enough for memory.
_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Σ w JᵀJ and Σ w Jᵀr of each window, over all numbers of a point and the window's initial state.

    Attributes:
        H: Matrices, shape (windows, columns, columns).
        g: Right sides, shape (windows, columns).
    """

    H: Array
    g: Array


def normal_equations(
    physics: Physics, base: BaseParameters, windows: Windows, point: MatchPoint, run: Trajectories, weights: Array,
    residuals: Array, fit: tuple[str, ...],
) -> NormalEquations:  # fmt: skip
    """Compute the normal equations of all windows for weighted position residuals.

    Columns are those of `MatchCoordinates.slope`, then initial positions and velocities.

    Args:
        physics: Robot.
        base: Base parameters of its links.
        windows: Windows.
        point: Parameters.
        run: Simulated windows.
        weights: Weight of each residual, shape (windows, samples, joints); zero excludes a residual.
        residuals: Measured minus simulated positions, of the same shape [rad, m].
        fit: Estimated blocks; the derivatives with respect to the others are zero.
    """
    n, nb, h = physics.robot.dof, base.rank, windows.step
    sizes = [("beta", nb), *((b, 1 if b == "delay" else n) for b in JOINT_BLOCKS), ("q0", n), ("v0", n)]
    place, start = {}, 0
    for name, size in sizes:
        place[name] = slice(start, start + size)
        start += size
    P, W = start, len(windows)
    eye = np.arange(n)
    d, past = point.drives, run.past
    goals, goal_slopes, _ = windows.goals(d.delay)
    late = d.delayed == "torque"
    shares = run.shares
    loop = Feedback.of(d.delay if late else 0.0, h, shares)
    reach = max(loop.first + 3, loop.first_speed + 3, 3)
    zero = np.zeros((W, n, P))
    Sq0, Sv0 = zero.copy(), zero.copy()
    Sq0[:, eye, np.arange(P)[place["q0"]]] = 1.0
    Sv0[:, eye, np.arange(P)[place["v0"]]] = 1.0
    Sq = deque([Sq0, *[zero] * reach], maxlen=reach + 1)  # newest first
    Sv = deque([Sv0, *[zero] * reach], maxlen=reach + 1)
    own = loop.speed[0] if loop.first_speed == 0 else 0.0
    hold = point.dry / physics.widths
    H, g = np.zeros((W, P, P)), np.zeros((W, P))
    rows: list[Array] = []
    places: list[int] = []

    def add(sample: int, S: Array) -> None:
        rows.append(S)
        places.append(sample)
        if len(rows) == 16:
            flush()

    def flush() -> None:
        if not rows:
            return
        J = np.concatenate(rows, axis=1)
        w = weights[:, places].reshape(W, -1)
        r = residuals[:, places].reshape(W, -1)
        J *= np.sqrt(w)[..., None]
        np.add(H, np.swapaxes(J, 1, 2) @ J, out=H)
        np.add(g, (np.swapaxes(J, 1, 2) @ (np.sqrt(w) * r)[..., None])[..., 0], out=g)
        rows.clear()
        places.clear()

    with one_blas_thread(), np.errstate(all="ignore"):
        add(0, Sq0)
        for first in range(0, windows.count, _TOGETHER):
            stop = min(first + _TOGETHER, windows.count)
            block = _Matrices.of(physics, base, point, run, h, first, stop)
            for k in range(first, stop):
                now, i = past + k, k - first
                M = block.M[i] / h
                side, over = run.side[k], run.saturated[k] != 0
                free = ~over
                sv, sq = Sv[0], Sq[0]
                right = M @ sv - block.Jq[i] @ sq - block.Jv[i] @ (1.5 * sv - 0.5 * Sv[1])
                right -= ((1.0 - shares) * point.viscous)[:, None] * sv
                right[:, :, place["beta"]] -= block.Y[i]
                a = (run.v[now + 1] - run.v[now]) / h
                if "armature" in fit:
                    right[:, eye, eye + place["armature"].start] -= a
                if "viscous" in fit:
                    right[:, eye, eye + place["viscous"].start] -= shares * run.v[now + 1] + (1.0 - shares) * run.v[now]
                if "dry" in fit:
                    share = np.where(side == 0, np.clip(run.v[now + 1] / physics.widths, -1.0, 1.0), side)
                    right[:, eye, eye + place["dry"].start] -= share
                if "bias" in fit:
                    right[:, :, place["bias"]] += block.Jq[i]
                back_q = sum(w * Sq[loop.first + j] for j, w in enumerate(loop.position))
                pull = -d.kp[:, None] * back_q
                back_v: Array | float = 0.0
                for j, w in enumerate(loop.speed):
                    if loop.first_speed + j > 0:
                        back_v = back_v + w[:, None] * Sv[loop.first_speed + j - 1]
                pull = pull - d.kd[:, None] * back_v
                feedback = sum(w * run.q[now - loop.first - j] for j, w in enumerate(loop.position))
                speed = sum(w * run.v[now + 1 - loop.first_speed - j] for j, w in enumerate(loop.speed))
                if "kp" in fit:
                    pull[:, eye, eye + place["kp"].start] += goals[k] - feedback
                if "kd" in fit:
                    pull[:, eye, eye + place["kd"].start] -= speed
                if "delay" in fit:
                    change = d.kp * goal_slopes[k]
                    if late:
                        dq = sum(w * run.q[now - loop.first - j] for j, w in enumerate(loop.position_slope))
                        dv = sum(w * run.v[now + 1 - loop.first_speed - j] for j, w in enumerate(loop.speed_slope))
                        change = change - d.kp * dq - d.kd * dv
                    pull[:, :, place["delay"].start] += change
                right += np.where(free[..., None], pull, 0.0)
                if "limit" in fit:
                    right[:, eye, eye + place["limit"].start] += run.saturated[k]
                A = M
                A[:, eye, eye] += shares * point.viscous + np.where(free, d.kd * own, 0.0)
                A[:, eye, eye] += np.where(side == 0, hold, 0.0)
                new = np.linalg.solve(A, right)
                Sv.appendleft(new)
                Sq.appendleft(sq + h * new)
                if (k + 1) % windows.steps == 0:
                    add((k + 1) // windows.steps, Sq[0])
        flush()
    return NormalEquations(H, g)


@dataclass(frozen=True, eq=False)
class _Matrices:
    """Mass matrix with armature, ∂τ/∂q, ∂τ/∂q̇ and base regressor at steps, each (steps, windows, …)."""

    M: Array
    Jq: Array
    Jv: Array
    Y: Array

    @classmethod
    def of(
        cls,
        physics: Physics,
        base: BaseParameters,
        point: MatchPoint,
        run: Trajectories,
        h: float,
        first: int,
        stop: int,
    ) -> _Matrices:
        at = slice(run.past + first, run.past + stop)
        before = slice(at.start - 1, at.stop - 1)
        after = slice(at.start + 1, at.stop + 1)
        n = physics.robot.dof
        q = (run.q[at] - point.bias).reshape(-1, n)
        v = (1.5 * run.v[at] - 0.5 * run.v[before]).reshape(-1, n)
        a = ((run.v[after] - run.v[at]) / h).reshape(-1, n)
        shape = (stop - first, -1)
        links = physics.links
        state = {"q": q, "dq": v, "ddq": a, "theta": point.links}
        Jq, Jv = (links.jacobian("inverse_dynamics", x, **state).reshape(*shape, n, n) for x in ("q", "dq"))
        Y = base.regressor_columns(links.torque_regressor(q, v, a)).reshape(*shape, n, base.rank)
        M = physics.mass_and_bias(q, v, point.links)[0].reshape(*shape, n, n).copy()
        M[..., np.arange(n), np.arange(n)] += point.armature
        return cls(M, Jq, Jv, Y)
