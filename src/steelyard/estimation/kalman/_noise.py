"""Likelihood of a log: as a function of noise levels, to estimate them, and of parameters, to compare results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.estimation.kalman._belief import CovarianceBelief, NotPositiveDefiniteError
from steelyard.estimation.kalman.rules import ByDerivatives
from steelyard.estimation.simulation_error.experiment import Run
from steelyard.ground.arrays import Array

if TYPE_CHECKING:
    from steelyard.estimation.kalman._prepare_filter import FilterSetup

# White noise is the same everywhere: a few stretches of this many samples determine it to some percent.
_SAMPLES, _STRETCHES = 500, 3
_ROUNDS = 12
# Largest change of the logarithms of levels in a round, and the change that ends the iteration.
_MAX_CHANGE, _TOLERANCE = 1.0, 0.02
_DIFFERENCE = 1e-4


class FilteredStretch:
    """A stretch of a run, filtered over its state with fixed base parameters.

    Its derivatives are stored, so that other noise levels need no dynamics.

    Args:
        setup: Experiment with its present noise levels.
        beta: Base parameters.
        run: A run.
        first: First sample.
    """

    def __init__(self, setup: FilterSetup, beta: Array, run: Run, first: int) -> None:
        n = setup.experiment.robot.dof
        last = min(first + _SAMPLES, len(run.t) - 1)
        transition, (starts, ends) = setup.transition(run), setup.torques(run)
        self.dof, self.measured = n, run.q[first + 1 : last + 1]
        self.x = np.concatenate([run.q[first], run.motion.dq[first]])
        self.P = np.diag(setup.tuning.first_state_std() ** 2)
        self.steps: list[tuple[Array, Array, Array]] = []
        self.state_noise = np.diag(setup.tuning.step.state**2)
        R, Q, x, P = np.diag(setup.tuning.positions**2), setup.tuning.step.torque**2, self.x, self.P
        self.log_likelihood = 0.0
        for k in range(first, last):
            step = transition.linearise(x, beta, starts[k], ends[k])
            A, G = step.by_state.copy(), step.by_torque.copy()
            self.steps.append((A, G, step.x - A @ x))
            P = A @ P @ A.T + (G * Q) @ G.T + self.state_noise
            S, innovation = P[:n, :n] + R, run.q[k + 1] - step.x[:n]
            if not (np.all(np.isfinite(S)) and np.all(np.isfinite(innovation))):
                self.log_likelihood = -np.inf
                return
            K = np.linalg.solve(S, np.column_stack([P[:n], innovation]))
            self.log_likelihood -= 0.5 * float(innovation @ K[:, -1] + np.linalg.slogdet(S)[1])
            x, P = step.x + innovation @ K[:, :-1], P - K[:, :-1].T @ P[:n]

    def log_likelihoods(self, levels: Array) -> Array:
        """Compute the log-likelihood of every sample, shape (samples, candidates).

        Args:
            levels: Logarithms of standard deviations, shape (candidates, 2 · dof): torques [N m, N], positions [rad,
                m].
        """
        n, at = self.dof, np.arange(self.dof)
        Q, R = np.exp(2.0 * levels[:, None, :n]), np.exp(2.0 * levels[:, n:])
        x, P = np.tile(self.x, (len(levels), 1)), np.tile(self.P, (len(levels), 1, 1))
        out = np.empty((len(self.steps), len(levels)))
        for row, (A, G, shift), q in zip(out, self.steps, self.measured, strict=True):
            x = x @ A.T + shift
            P = A @ P @ A.T + (G * Q) @ G.T + self.state_noise
            S = P[:, :n, :n].copy()
            S[:, at, at] += R
            half = np.linalg.cholesky(S)
            W = np.linalg.solve(half, np.concatenate([P[:, :n], (q - x[:, :n])[:, :, None]], axis=2))
            innovation = W[:, :, -1]
            row[:] = -0.5 * np.sum(innovation**2, axis=1) - np.log(half[:, at, at]).sum(axis=1)
            x = x + np.einsum("bij,bi->bj", W[:, :, :-1], innovation)
            P = P - W[:, :, :-1].transpose(0, 2, 1) @ W[:, :, :-1]
        return out


def filter_stretches(setup: FilterSetup, beta: Array) -> list[FilteredStretch]:
    """Filter a few stretches, evenly distributed over all runs.

    Args:
        setup: Experiment with its present noise levels.
        beta: Base parameters.
    """
    runs = setup.experiment.runs
    candidates = [(run, k) for run in runs for k in range(0, max(len(run.t) - _SAMPLES // 2, 1), _SAMPLES)]
    chosen = np.unique(np.linspace(0, len(candidates) - 1, min(_STRETCHES, len(candidates))).round().astype(int))
    with np.errstate(all="ignore"):  # the likelihood of impossible parameters is undefined
        return [FilteredStretch(setup, beta, *candidates[k]) for k in chosen]


def log_likelihood(setup: FilterSetup, beta: Array) -> float:
    """Compute the log-likelihood of the measured positions in a few stretches, for fixed parameters.

    Args:
        setup: Experiment with its noise levels.
        beta: Base parameters.
    """
    try:
        total = float(sum(m.log_likelihood for m in filter_stretches(setup, beta)))
    except np.linalg.LinAlgError:
        return -np.inf
    return total if np.isfinite(total) else -np.inf


def likeliest_noise(setup: FilterSetup) -> tuple[Array, Array] | None:
    """Find the standard deviations of torques and positions with the largest likelihood of the log; None without
    success.

    The parameters are those of one extended filter over the log, from least squares and the present noise levels.
    Scores are finite differences; their products approximate the Hessian (Berndt, Hall, Hall & Hausman 1974).
    """
    start = extended_pass(setup, setup.start.beta, setup.from_log)
    if start is None:
        return None
    n = setup.experiment.robot.dof
    levels = np.log(np.concatenate([setup.tuning.step.torque, setup.tuning.positions]))
    offsets = np.vstack([np.zeros(2 * n), _DIFFERENCE * np.eye(2 * n)])
    best, step = -np.inf, np.zeros(2 * n)
    try:
        motions = filter_stretches(setup, start[0])
        for _ in range(_ROUNDS):
            rows = np.vstack([m.log_likelihoods(levels + step + offsets) for m in motions])
            total = float(rows[:, 0].sum())
            if not total >= best:  # overshoot: halve the step
                step = 0.5 * step
                continue
            levels, best = levels + step, total
            scores = (rows[:, 1:] - rows[:, :1]) / _DIFFERENCE
            hessian = scores.T @ scores
            hessian += np.diag(0.01 * np.diag(hessian) + 1e-9)
            step = np.clip(np.linalg.solve(hessian, scores.sum(axis=0)), -_MAX_CHANGE, _MAX_CHANGE)
            if float(np.abs(step).max()) < _TOLERANCE:
                break
    except np.linalg.LinAlgError:
        return None
    return (np.exp(levels[:n]), np.exp(levels[n:])) if np.isfinite(best) else None


def extended_pass(setup: FilterSetup, beta: Array, covariance: Array) -> tuple[Array, Array] | None:
    """Run an extended filter over the log.

    Args:
        setup: Experiment with its noise levels.
        beta: Initial base parameters.
        covariance: Covariance of `beta`.

    Returns:
        Base parameters and covariance at the end; None if the filter diverged.
    """
    first, predict = setup.tuning, ByDerivatives()
    n = setup.experiment.robot.dof
    belief = CovarianceBelief(beta, covariance, np.zeros(2 * n), first.first_state_std())
    try:
        with np.errstate(all="ignore"):
            for run in setup.experiment.runs:
                transition, (starts, ends) = setup.transition(run), setup.torques(run)
                belief.restart(np.concatenate([run.q[0], run.motion.dq[0]]), first.first_state_std())
                for k in range(1, len(run.t)):
                    predict(belief, transition, starts[k - 1], ends[k - 1], first.step)
                    belief.measure(run.q[k], first.positions)
    except NotPositiveDefiniteError:
        return None
    p = belief.p
    return (belief.beta.copy(), belief.covariance[:p, :p].copy()) if np.all(np.isfinite(belief.z)) else None
