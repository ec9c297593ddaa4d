"""Simulates windows of a robot with its drives: leapfrog steps with implicit damping and dry friction.

Positions q_k are at the steps, velocities v_k half a step earlier, and

    M(q_k) (v_{k+1} − v_k)/h + c(q_k, v̂_k) + D (s v_{k+1} + (1 − s) v_k) + λ = τ_k,    q_{k+1} = q_k + h v_{k+1},

with s = 1/2, or more where damping stops a joint within a step, so that its velocity does not ring (`new_shares`), and
λ_j = Fc_j·clip(v_{k+1,j}/w, −1, 1). The method is of second order in h, needs the dynamics once per step, and
treats damping, dry friction and the undelayed damping of the drives implicitly, so that steps need not resolve them.
Newton's method on the piecewise linear equation determines the sticking joints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics import Dynamics, Evaluator
from steelyard.dynamics.function import Trace, dense
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.recent_values import Recent
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import MatchPoint
from steelyard.robot.robot import Robot

# Rounds of Newton's method for stick and slip; one or two are usual.
_ROUNDS = 8
# Above this ratio of damping times step to inertia, the trapezoidal rule changes the sign of a velocity in every step.
_RINGS = 2.0
# A window with a higher speed has diverged [rad/s, m/s].
_FASTEST = 1e3


@dataclass(frozen=True, eq=False)
class Physics:
    """Traced functions of a robot's links.

    Attributes:
        robot: Robot.
        links: Its dynamics without joint terms.
        widths: Largest speed of a sticking joint [rad/s, m/s].
    """

    robot: Robot
    links: Dynamics
    widths: Array

    @classmethod
    def of(cls, robot: Robot, widths: Array) -> Physics:
        """Trace the functions.

        Args:
            robot: Robot.
            widths: Largest speed of a sticking joint [rad/s, m/s].
        """
        return cls(robot, Dynamics(robot), widths)

    def mass_and_bias(self, q: Array, dq: Array, theta: Array) -> tuple[Array, Array]:
        """Compute the mass matrix and the torque at zero acceleration, of the links alone.

        Args:
            q: Positions [rad, m], shape (windows, joints).
            dq: Velocities [rad/s, m/s].
            theta: Ten parameters per link.
        """
        n = self.robot.dof
        both = _both_of(self.links)({"q": q, "dq": dq, "theta": theta})
        return both[:, : n * n].reshape(-1, n, n), both[:, n * n :]


_compiled: Recent[Evaluator] = Recent(16)


def _both_of(links: Dynamics) -> Evaluator:
    return _compiled.get(links.robot.fingerprint, lambda: _traced(links))


def _traced(links: Dynamics) -> Evaluator:
    n, count = links.robot.dof, links.robot.inertial_count
    widths = {"q": n, "dq": n, "theta": count}
    trace = Trace(widths)
    q, dq, theta = trace.all()
    matrix = links.mass_over_scalars(q, theta)
    entries = [matrix.get((i, j), 0.0) for i in range(n) for j in range(n)]
    bias = links.inverse_over_scalars(q, dq, [0.0] * n, theta)
    evaluator = Evaluator(dense("mass_and_bias", trace.graph, widths, [*entries, *bias]))
    evaluator.compile()
    return evaluator


@dataclass(frozen=True, eq=False)
class Feedback:
    """Weights of past steps in the feedback of a delayed drive.

    Attributes:
        first: Number of steps between the present and the first position with a weight.
        position, position_slope: Weights of three positions, and their derivative by the delay.
        first_speed: The same for velocities; 0 includes the unknown velocity of the step.
        speed, speed_slope: Weights of two velocities for each joint, shape (2, joints), and their derivative by the
            delay.
    """

    first: int
    position: Array
    position_slope: Array
    first_speed: int
    speed: Array
    speed_slope: Array

    @classmethod
    def of(cls, delay: float, step: float, shares: Array) -> Feedback:
        """Compute the weights.

        Args:
            delay: Delay of the feedback [s].
            step: Step of the simulation [s].
            shares: Share of the new velocity in the damping of each joint, without a delay.
        """
        x = delay / step
        first = int(np.floor(x + 1e-9))
        s = x - first
        weights = np.array([0.5 * (1 - s) * (2 - s), s * (2 - s), -0.5 * s * (1 - s)])
        slope = np.array([s - 1.5, 2.0 - 2.0 * s, s - 0.5]) / step
        y = x + 0.5
        early = int(np.floor(y + 1e-9))
        new = np.minimum(1.0 - (y - early) + (shares - 0.5 if early == 0 else 0.0 * shares), 1.0)
        return cls(first, weights, slope, early, np.array([new, 1.0 - new]), np.array([-1.0, 1.0]) / step)


def new_shares(physics: Physics, point: MatchPoint, q: Array, step: float) -> Array:
    """Return the share of the new velocity in the damping of each joint: half, and more where half would ring.

    Args:
        physics: Robot.
        point: Parameters.
        q: Positions, shape (windows, joints) [rad, m].
        step: Step of the simulation [s].
    """
    M, _ = physics.mass_and_bias(q - point.bias, np.zeros_like(q), point.links)
    eye = np.arange(q.shape[1])
    M[:, eye, eye] += point.armature
    # Inertia of each joint while the others are free.
    inertia = 1.0 / np.max(np.einsum("wii->wi", np.linalg.inv(M)), axis=0)
    ratio = step * (point.viscous + point.drives.kd) / inertia
    return np.asarray(np.where(ratio > _RINGS, 1.0 - 1.0 / np.maximum(ratio, _RINGS), 0.5))


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Simulated windows, with the values for their derivatives.

    Attributes:
        q: Positions at past steps and all steps, shape (past + steps + 1, windows, joints).
        v: Velocities half a step before each position, of the same shape.
        side: 0 for sticking joints, ±1 for the direction of sliding, shape (steps, windows, joints).
        saturated: 0, or ±1 where the torque is at its limit.
        past: Number of steps before the first sample.
        shares: Share of the new velocity in the damping of each joint.
        good: Number of samples of each window before it diverged.
    """

    q: Array
    v: Array
    side: NDArray[np.int8]
    saturated: NDArray[np.int8]
    past: int
    shares: Array
    good: NDArray[np.int64]

    def at_samples(self, windows: Windows) -> Array:
        """Return positions at the samples of `windows`, shape (windows, samples, joints)."""
        return np.ascontiguousarray(np.swapaxes(self.q[self.past :: windows.steps], 0, 1))


def rollout(physics: Physics, windows: Windows, point: MatchPoint, q0: Array, v0: Array) -> Trajectories:
    """Simulate all windows.

    Args:
        physics: Robot.
        windows: Windows with goals and history.
        point: Parameters.
        q0: Initial measured positions, shape (windows, joints) [rad, m].
        v0: Initial velocities, half a step before the first sample [rad/s, m/s].
    """
    h, steps, d = windows.step, windows.count, point.drives
    W, n = q0.shape
    past = len(windows.past_q) - 1
    Q, V = np.empty((past + steps + 1, W, n)), np.empty((past + steps + 1, W, n))
    Q[: past + 1], V[: past + 1] = windows.past_q, windows.past_dq
    Q[past], V[past] = q0, v0
    goals, _, feeds = windows.goals(d.delay)
    shares = new_shares(physics, point, q0, h)
    loop = Feedback.of(d.delay if d.delayed == "torque" else 0.0, h, shares)
    own_speed = loop.speed[0] if loop.first_speed == 0 else 0.0
    side, saturated = np.zeros((steps, W, n), np.int8), np.zeros((steps, W, n), np.int8)
    alive, good = np.ones(W, bool), np.full(W, windows.samples, np.int64)
    state = np.sign(v0).astype(np.int8)
    eye = np.arange(n)
    hold = point.dry / physics.widths
    finite = bool(np.all(np.isinf(d.limit)))
    with one_blas_thread(), np.errstate(all="ignore"):
        for k in range(steps):
            now = past + k
            v = V[now]
            M, c = physics.mass_and_bias(Q[now] - point.bias, 1.5 * v - 0.5 * V[now - 1], point.links)
            M[:, eye, eye] += point.armature
            M /= h
            feedback = sum(w * Q[now - loop.first - i] for i, w in enumerate(loop.position))
            u = d.kp * (goals[k] - feedback) + feeds[k]
            for i, w in enumerate(loop.speed):
                if loop.first_speed + i > 0:
                    u = u - d.kd * w * V[now + 1 - loop.first_speed - i]
            damping = shares * point.viscous + d.kd * own_speed
            if not finite:
                expected = u - d.kd * own_speed * (2.0 * v - V[now - 1])
                over = np.where(np.abs(expected) > d.limit, np.sign(expected), 0.0)
                saturated[k] = over
                u = np.where(over != 0.0, over * d.limit, u)
                damping = np.where(over != 0.0, shares * point.viscous, damping)
            b = (M @ v[..., None])[..., 0] - c - (1.0 - shares) * point.viscous * v + u
            A = M
            A[:, eye, eye] += damping
            new, state = _friction(A, b, state, point.dry, hold, physics.widths, eye)
            side[k] = state
            bad = ~(np.max(np.abs(new), axis=1) < _FASTEST)
            if bad.any():
                fresh = bad & alive
                good[fresh] = k // windows.steps
                alive &= ~bad
                new[bad] = 0.0
            V[now + 1] = new
            Q[now + 1] = Q[now] + h * new
    return Trajectories(Q, V, side, saturated, past, shares, good)


def _friction(
    A: Array, b: Array, state: NDArray[np.int8], dry: Array, hold: Array, width: Array, eye: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int8]]:
    """Solve A v + Fc·clip(v/w, −1, 1) = b for all windows; start from the sides of the previous step."""
    if not dry.any():
        v = np.linalg.solve(A, b[..., None])[..., 0]
        return np.asarray(v, dtype=np.float64), np.sign(v).astype(np.int8)
    v = np.zeros_like(b)
    for _ in range(_ROUNDS):
        stiff = A.copy()
        stiff[:, eye, eye] += np.where(state == 0, hold, 0.0)
        v = np.linalg.solve(stiff, (b - state * dry)[..., None])[..., 0]
        # A sliding joint keeps its side until its speed is below the width; a sticking joint slides above the width.
        outside = np.where(np.abs(v) <= width, 0, np.sign(v))
        new = np.where((state != 0) & (outside != state), 0, outside).astype(np.int8)
        if np.array_equal(new, state):
            break
        state = new
    return np.asarray(v, dtype=np.float64), state
