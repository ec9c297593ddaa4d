"""Output error by multiple shooting: each window has its own initial state, and all share the robot's parameters.

Levenberg–Marquardt on the positions of all windows. Initial states are eliminated window by window. The weight of a
residual is the inverse variance of its joint, divided by the correlation time in samples, so that the weights count
independent residuals relative to the prior. A diverged window counts up to its divergence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.matching.command_stretch import CommandStretch
from steelyard.matching.gaussian_fit import chosen_link_std, solve_bounded
from steelyard.matching.log_windows import Windows
from steelyard.matching.match_coordinates import MatchCoordinates, MatchPoint
from steelyard.matching.window_rollout import Physics, Trajectories, rollout
from steelyard.matching.window_sensitivities import normal_equations

_ROUNDS = 20
# A step below this share of the standard errors ends the rounds.
_DONE = 0.05
_HALVINGS = 6
# Windows with residuals above this multiple of the median have smaller weights (Huber).
_OUTLIER = 2.5
# Prior of the initial states: standard deviations relative to the noise of the position and to the rms speed. Each
# window determines its own state; the prior only regularises sticking joints.
_START_NOISE, _START_SPEED = 5.0, 0.3
# Largest phase per step of the fastest motion of a position loop [rad]: the frequency error of the leapfrog is its
# square over 24, 0.3 %. Overdamped loops need only be stable: the limit of the leapfrog is a phase of two.
_PHASE, _STABLE = 0.25, 1.0
_MOST_STEPS = 16


@dataclass(frozen=True, eq=False)
class WindowFit:
    """Result of the fit to windows.

    Attributes:
        coordinates: Parameters of the match with the weight of the description.
        z: Their values.
        windows: Windows.
        q0, v0: Initial states of the windows.
        residuals: Measured minus simulated positions, shape (windows, samples, joints) [rad, m].
        H, g: Normal equations of each window in z, initial states eliminated.
        noise: Standard deviation of the residuals of each joint [rad, m].
        correlation_time: Correlation time of the residuals, by joint [samples].
        diverged: Windows that diverged at the start and at the end of the search.
        rounds: Number of rounds.
        converged: Whether the steps became small.
    """

    coordinates: MatchCoordinates
    z: Array
    windows: Windows
    q0: Array
    v0: Array
    residuals: Array
    H: Array
    g: Array
    noise: Array
    correlation_time: Array
    diverged: tuple[int, int]
    rounds: int
    converged: bool

    @property
    def point(self) -> MatchPoint:
        return self.coordinates.point(self.z)


def steps_for(physics: Physics, point: MatchPoint, stretches: Sequence[CommandStretch]) -> int:
    """Choose the steps per sample that resolve the fastest position loop.

    Args:
        physics: Robot.
        point: Parameters.
        stretches: Pieces of the logs.
    """
    q = np.concatenate([s.motion.q[:: max(1, len(s) // 20)] for s in stretches])
    M, _ = physics.mass_and_bias(q, np.zeros_like(q), point.links)
    M[:, np.arange(q.shape[1]), np.arange(q.shape[1])] += point.armature
    d = point.drives
    # Inertia of each joint while the others are free.
    inertia = 1.0 / np.max(np.einsum("tii->ti", np.linalg.inv(M)), axis=0)
    fast = np.sqrt(d.kp / inertia)
    damping = d.kd + point.viscous
    slow = d.kp / np.maximum(damping, 1e-12)
    visible = np.where(damping > 2.0 * np.sqrt(d.kp * inertia), np.minimum(slow, fast), fast)
    period = stretches[0].period
    need = period * max(float(np.max(visible)) / _PHASE, float(np.max(fast)) / _STABLE)
    return int(np.clip(np.ceil(need - 1e-9), 1, _MOST_STEPS))


def fit_windows(physics: Physics, coordinates: MatchCoordinates, z: Array, windows: Windows) -> WindowFit:
    """Fit the parameters to the positions of all windows.

    Args:
        physics: Robot.
        coordinates: Parameters of the match with their prior.
        z: Start.
        windows: Windows.
    """
    search = _Search.of(physics, coordinates, windows)
    q0, v0 = windows.past_q[-1].copy(), windows.past_dq[-1].copy()
    state = search.simulate(z, q0, v0)
    first_bad = int(np.sum(state.run.good < windows.samples))
    if first_bad > 0.5 * len(windows):
        z, state = search.calmer(z, q0, v0)
    damping, rounds, converged = 0.0, 0, False
    for rounds in range(1, _ROUNDS + 1):
        weights, noise, correlation_time = search.weights(state)
        pieces = search.pieces(state, weights)
        H, g = pieces.H.sum(axis=0), pieces.g.sum(axis=0)
        search = search.with_link_std(H, g + H @ state.z) if rounds <= 6 else search
        accepted, size = None, 0.0
        for _ in range(_HALVINGS):
            extra = damping * np.diag(H)
            goal = solve_bounded(H + np.diag(extra), g + (H + np.diag(extra)) @ state.z, search.coordinates)
            new = search.moved(state, goal, pieces)
            size = search.size(goal - state.z, H)
            if search.cost(new, weights) <= search.cost(state, weights) * (1.0 + 1e-9):
                accepted = new
                break
            damping = max(4.0 * damping, 1e-2)
        if accepted is None:
            converged = size < 1.0
            break
        state, damping = accepted, 0.25 * damping if damping > 1e-3 else 0.0
        if size < _DONE:
            converged = True
            break
    weights, noise, correlation_time = search.weights(state)
    pieces = search.pieces(state, weights)
    last_bad = int(np.sum(state.run.good < windows.samples))
    if last_bad == len(windows):
        raise SteelyardError(
            "The simulated robot diverges in every window: check the gains' units (N m/rad, N m s/rad), the signs of "
            "the joints and the delay."
        )
    return WindowFit(
        search.coordinates, state.z, windows, state.q0, state.v0, state.residuals, pieces.H, pieces.g, noise,
        correlation_time, (first_bad, last_bad), rounds, converged,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _State:
    z: Array
    q0: Array
    v0: Array
    point: MatchPoint
    run: Trajectories
    residuals: Array
    good: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Reduced normal equations of each window, and the terms for the change of its initial state."""

    H: Array
    g: Array
    back: Array
    own: Array


@dataclass(frozen=True, eq=False)
class _Search:
    physics: Physics
    coordinates: MatchCoordinates
    windows: Windows
    smallest: Array
    start_std: Array

    @classmethod
    def of(cls, physics: Physics, coordinates: MatchCoordinates, windows: Windows) -> _Search:
        noise = np.zeros(physics.robot.dof)
        speed = np.zeros_like(noise)
        for s in windows.stretches:
            noise = np.maximum(noise, np.std(s.q - s.motion.q, axis=0))
            speed = np.maximum(speed, np.sqrt(np.mean(s.motion.dq**2, axis=0)))
        # The noise of the positions is at least the error of their rounding.
        smallest = np.maximum(resolution(windows.stretches) / np.sqrt(12.0), 1e-7)
        q_std = _START_NOISE * np.maximum(noise, smallest)
        return cls(physics, coordinates, windows, smallest, np.concatenate([q_std, _START_SPEED * speed + 1e-6]))

    def with_link_std(self, H: Array, b: Array) -> _Search:
        return replace(self, coordinates=chosen_link_std(self.coordinates, H, b))

    def simulate(self, z: Array, q0: Array, v0: Array) -> _State:
        point = self.coordinates.point(z)
        run = rollout(self.physics, self.windows, point, q0, v0)
        residuals = self.windows.q - run.at_samples(self.windows)
        good = np.arange(self.windows.samples)[None, :] < run.good[:, None]
        residuals[~good] = 0.0
        return _State(z, q0, v0, point, run, residuals, good)

    def calmer(self, z: Array, q0: Array, v0: Array) -> tuple[Array, _State]:
        """Move towards a heavier and more damped robot until most windows do not diverge."""
        blocks = self.coordinates.blocks
        for factor in (1.0, 3.0, 10.0):
            new = z.copy()
            for name in ("armature", "viscous"):
                if name in blocks:
                    new[blocks[name]] = np.maximum(z[blocks[name]], factor * 0.1 * self.coordinates.std[name])
            state = self.simulate(new, q0, v0)
            if np.sum(state.run.good < self.windows.samples) <= 0.5 * len(self.windows):
                return new, state
        return new, state

    def weights(self, state: _State) -> tuple[Array, Array, Array]:
        """Weights of the residuals, their standard deviation and correlation time by joint."""
        counts = np.maximum(state.good.sum(axis=1), 1)[:, None]
        mean_squares = np.sum(state.residuals**2, axis=1) / counts
        whole = state.run.good >= self.windows.samples
        used = mean_squares[whole] if whole.any() else mean_squares
        typical = np.maximum(np.median(used, axis=0), self.smallest**2)
        ratio = np.sqrt(np.mean(mean_squares / typical, axis=1))
        ratio = ratio / max(float(np.median(ratio)), 1e-9)
        outlier = np.minimum(1.0, _OUTLIER / np.maximum(ratio, 1e-9))
        noise = np.sqrt(np.maximum(np.average(mean_squares, axis=0, weights=outlier * counts[:, 0]), self.smallest**2))
        correlation_time = correlation_samples(state.residuals, state.good)
        weights = outlier[:, None, None] * state.good[..., None] / (noise**2 * correlation_time)
        return weights, noise, correlation_time

    def pieces(self, state: _State, weights: Array) -> _Pieces:
        c = self.coordinates
        ne = normal_equations(
            self.physics, c.base, self.windows, state.point, state.run, weights, state.residuals, c.fit
        )
        local = 2 * self.physics.robot.dof
        T = c.slope(state.z, state.point)
        Hgg, Hgl, Hll = ne.H[:, :-local, :-local], ne.H[:, :-local, -local:], ne.H[:, -local:, -local:]
        own = np.concatenate([state.q0 - self.windows.past_q[-1], state.v0 - self.windows.past_dq[-1]], axis=1)
        prior = 1.0 / self.start_std**2
        Hll = Hll + np.diag(prior)
        gl = ne.g[:, -local:] - prior * own
        scale = 1.0 / np.sqrt(np.einsum("wii->wi", Hll))
        inverse = np.linalg.inv(Hll * scale[:, :, None] * scale[:, None, :]) * scale[:, :, None] * scale[:, None, :]
        cross = np.swapaxes(Hgl, 1, 2) @ T  # (windows, local, z)
        back = inverse @ cross
        H = T.T @ Hgg @ T - np.swapaxes(cross, 1, 2) @ back
        change = (inverse @ gl[..., None])[..., 0]
        g = ne.g[:, :-local] @ T - np.einsum("wlz,wl->wz", cross, change)
        return _Pieces(0.5 * (H + np.swapaxes(H, 1, 2)), g, back, change)

    def moved(self, state: _State, goal: Array, pieces: _Pieces) -> _State:
        change = pieces.own - pieces.back @ (goal - state.z)
        n = self.physics.robot.dof
        limit = 10.0 * self.start_std
        change = np.clip(change, -limit, limit)
        return self.simulate(goal, state.q0 + change[:, :n], state.v0 + change[:, n:])

    def cost(self, state: _State, weights: Array) -> float:
        """Weighted sum of squares; samples after a divergence count like the largest residuals before it."""
        c = self.coordinates
        own = np.concatenate([state.q0 - self.windows.past_q[-1], state.v0 - self.windows.past_dq[-1]], axis=1)
        prior = np.sum(((state.z - c.centre) / c.stds) ** 2) + np.sum((own / self.start_std) ** 2)
        lost = int(np.count_nonzero((weights[..., 0] > 0.0) & ~state.good))
        typical = float(np.max(weights)) * float(np.max(np.abs(state.residuals))) ** 2
        return float(np.sum(weights * state.residuals**2) + prior + lost * typical)

    def size(self, step: Array, H: Array) -> float:
        """Size of a step in standard errors."""
        A = H + np.diag(1.0 / self.coordinates.stds**2)
        return float(np.sqrt(max(float(step @ A @ step), 0.0) / len(step)))


def resolution(stretches: Sequence[CommandStretch]) -> Array:
    """Return the resolution of the positions of each joint [rad, m]: the smallest frequent change, or 0.

    Args:
        stretches: Pieces of the logs.
    """
    out = []
    for j in range(stretches[0].q.shape[1]):
        steps = np.abs(np.concatenate([np.diff(s.q[:, j]) for s in stretches]))
        steps = steps[steps > 1e-12]
        smallest = np.quantile(steps, 0.01) if len(steps) else 0.0
        near = np.abs(steps / smallest - np.round(steps / smallest)) < 0.05 if smallest > 0.0 else np.zeros(0)
        out.append(smallest if len(near) and np.mean(near) > 0.9 else 0.0)
    return np.array(out)


def correlation_samples(residuals: Array, good: NDArray[np.bool_]) -> Array:
    """Return the correlation time of the residuals in samples, by joint: 1 + 2 Σ of the autocorrelation.

    Args:
        residuals: Residuals, shape (windows, samples, joints).
        good: Mask of the samples before a divergence.
    """
    N, n = residuals.shape[1:]
    x = residuals * good[..., None]
    F = np.fft.rfft(x, 2 * N, axis=1)
    auto = np.fft.irfft(np.abs(F) ** 2, axis=1)[:, :N].sum(axis=0)
    auto = auto / np.maximum(auto[:1], 1e-300)
    out = np.ones(n)
    for j in range(n):
        below = np.flatnonzero(auto[:, j] <= 0.0)
        end = int(below[0]) if len(below) else N
        out[j] = max(1.0, 1.0 + 2.0 * float(np.sum(auto[1:end, j])))
    return np.minimum(out, N)
