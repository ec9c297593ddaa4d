"""How likely a log is: under noise levels, which finds them; under parameters, which tells a start from an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.estimation.kalman._belief import LostPositiveError, WholeBelief
from steelyard.estimation.kalman.rules import ByDerivatives
from steelyard.estimation.simulated.experiment import Run
from steelyard.ground.arrays import Array

if TYPE_CHECKING:
    from steelyard.estimation.kalman._prepare_filter import Ready

# Noise is white and the same everywhere: a few stretches of this many samples tell it to some percent.
_SAMPLES, _STRETCHES = 500, 3
_ROUNDS = 12
# Logarithms of levels move by this much in a round at most, and are found when they move by less than the second.
_FAR, _NEAR = 1.0, 0.02
_DIFFERENCE = 1e-4


class MotionAbout:
    """A stretch of a run filtered over its state alone, base parameters held: derivatives are kept, so that any other
    noise costs no dynamics.

    Args:
        about: the experiment with its present noise levels.
        beta: base parameters.
        run: a run.
        first: its sample to begin with.
    """

    def __init__(self, about: Ready, beta: Array, run: Run, first: int) -> None:
        n = about.experiment.robot.dof
        last = min(first + _SAMPLES, len(run.t) - 1)
        transition, (starts, ends) = about.transition(run), about.torques(run)
        self.dof, self.measured = n, run.q[first + 1 : last + 1]
        self.x = np.concatenate([run.q[first], run.motion.dq[first]])
        self.P = np.diag(about.tuned.first_state_std() ** 2)
        self.steps: list[tuple[Array, Array, Array]] = []
        self.added = np.diag(about.tuned.step.state**2)
        R, Q, x, P = np.diag(about.tuned.positions**2), about.tuned.step.torque**2, self.x, self.P
        self.log_likelihood = 0.0
        for k in range(first, last):
            found = transition.linearised(x, beta, starts[k], ends[k])
            A, G = found.by_state.copy(), found.by_torque.copy()
            self.steps.append((A, G, found.x - A @ x))
            P = A @ P @ A.T + (G * Q) @ G.T + self.added
            S, miss = P[:n, :n] + R, run.q[k + 1] - found.x[:n]
            if not (np.all(np.isfinite(S)) and np.all(np.isfinite(miss))):
                self.log_likelihood = -np.inf
                return
            K = np.linalg.solve(S, np.column_stack([P[:n], miss]))
            self.log_likelihood -= 0.5 * float(miss @ K[:, -1] + np.linalg.slogdet(S)[1])
            x, P = found.x + miss @ K[:, :-1], P - K[:, :-1].T @ P[:n]

    def under(self, levels: Array) -> Array:
        """The logarithm of every sample's likelihood, `(samples, candidates)`.

        Args:
            levels: logarithms of standard deviations, `(candidates, 2 · dof)`: torques (N m, N), positions (rad, m).
        """
        n, at = self.dof, np.arange(self.dof)
        Q, R = np.exp(2.0 * levels[:, None, :n]), np.exp(2.0 * levels[:, n:])
        x, P = np.tile(self.x, (len(levels), 1)), np.tile(self.P, (len(levels), 1, 1))
        out = np.empty((len(self.steps), len(levels)))
        for row, (A, G, shift), q in zip(out, self.steps, self.measured, strict=True):
            x = x @ A.T + shift
            P = A @ P @ A.T + (G * Q) @ G.T + self.added
            S = P[:, :n, :n].copy()
            S[:, at, at] += R
            half = np.linalg.cholesky(S)
            W = np.linalg.solve(half, np.concatenate([P[:, :n], (q - x[:, :n])[:, :, None]], axis=2))
            miss = W[:, :, -1]
            row[:] = -0.5 * np.sum(miss**2, axis=1) - np.log(half[:, at, at]).sum(axis=1)
            x = x + np.einsum("bij,bi->bj", W[:, :, :-1], miss)
            P = P - W[:, :, :-1].transpose(0, 2, 1) @ W[:, :, :-1]
        return out


def motions_about(about: Ready, beta: Array) -> list[MotionAbout]:
    """A few stretches, evenly spread over all runs."""
    runs = about.experiment.runs
    places = [(run, k) for run in runs for k in range(0, max(len(run.t) - _SAMPLES // 2, 1), _SAMPLES)]
    chosen = np.unique(np.linspace(0, len(places) - 1, min(_STRETCHES, len(places))).round().astype(int))
    with np.errstate(all="ignore"):  # parameters of no robot have no likelihood
        return [MotionAbout(about, beta, *places[k]) for k in chosen]


def log_likelihood(about: Ready, beta: Array) -> float:
    """Of the measured positions in a few stretches of the log, the state filtered and the parameters held at `beta`."""
    try:
        found = float(sum(m.log_likelihood for m in motions_about(about, beta)))
    except np.linalg.LinAlgError:
        return -np.inf
    return found if np.isfinite(found) else -np.inf


def likeliest_noise(about: Ready) -> tuple[Array, Array] | None:
    """The standard deviations of torques and positions under which the log is likeliest; None where none is found.

    The parameters are those of one extended filter over the log, from least squares and the present noise levels.
    Scores come from differences, their products make the Hessian (Berndt, Hall, Hall & Hausman 1974).
    """
    found = extended_pass(about, about.start.beta, about.from_log)
    if found is None:
        return None
    n = about.experiment.robot.dof
    levels = np.log(np.concatenate([about.tuned.step.torque, about.tuned.positions]))
    moves = np.vstack([np.zeros(2 * n), _DIFFERENCE * np.eye(2 * n)])
    best, step = -np.inf, np.zeros(2 * n)
    try:
        motions = motions_about(about, found[0])
        for _ in range(_ROUNDS):
            rows = np.vstack([m.under(levels + step + moves) for m in motions])
            total = float(rows[:, 0].sum())
            if not total >= best:  # too far: half of it
                step = 0.5 * step
                continue
            levels, best = levels + step, total
            scores = (rows[:, 1:] - rows[:, :1]) / _DIFFERENCE
            hessian = scores.T @ scores
            hessian += np.diag(0.01 * np.diag(hessian) + 1e-9)
            step = np.clip(np.linalg.solve(hessian, scores.sum(axis=0)), -_FAR, _FAR)
            if float(np.abs(step).max()) < _NEAR:
                break
    except np.linalg.LinAlgError:
        return None
    return (np.exp(levels[:n]), np.exp(levels[n:])) if np.isfinite(best) else None


def extended_pass(about: Ready, beta: Array, covariance: Array) -> tuple[Array, Array] | None:
    """Base parameters and covariance after an extended filter went over the log from these; None where it was lost."""
    first, predict = about.tuned, ByDerivatives()
    n = about.experiment.robot.dof
    belief = WholeBelief(beta, covariance, np.zeros(2 * n), first.first_state_std())
    try:
        with np.errstate(all="ignore"):
            for run in about.experiment.runs:
                transition, (starts, ends) = about.transition(run), about.torques(run)
                belief.restart(np.concatenate([run.q[0], run.motion.dq[0]]), first.first_state_std())
                for k in range(1, len(run.t)):
                    predict(belief, transition, starts[k - 1], ends[k - 1], first.step)
                    belief.measure(run.q[k], first.positions)
    except LostPositiveError:
        return None
    p = belief.p
    return (belief.beta.copy(), belief.covariance[:p, :p].copy()) if np.all(np.isfinite(belief.z)) else None
