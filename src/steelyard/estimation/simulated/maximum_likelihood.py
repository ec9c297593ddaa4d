"""`MaximumLikelihood`: noise on the positions as well as on the torques, each with its own size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear._instants import dense
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulated._start import Rounds, Start, reweighted, starting_point
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.signals.filters import derivative
from steelyard.signals.prepare import Motion

_STATES = ("q", "dq", "ddq")
# Rounds in which the torque's noise is found anew; later ones keep it, so that the likelihood stays one function.
_SETTLING = 3
# A step is halved so often before the search is given up.
_HALVINGS = 8


@estimator("ml")
@dataclass(frozen=True)
class MaximumLikelihood(Estimator[Experiment]):
    """min Σ_k e_kᵀ Σ_k(β)⁻¹ e_k with e = τ − Y β and Σ_k = cov τ + G_k (cov of q, q̇, q̈) G_kᵀ, G = ∂(Yβ)/∂(q, q̇, q̈).

    The errors-in-variables likelihood after Olsen, Swevers & Verdonck 2002, with the true motion eliminated. White
    noise of `position_noise` (of the experiment; else: of what the filter took away) reaches q, q̇ and q̈ through the
    filter and its derivatives, which tells their covariances. The gradient Σ Ỹᵀ Σ⁻¹ e has Ỹ = Y at the likeliest true
    state instead of the measured one, and is solved by Gauss–Newton. The torque's noise is the experiment's (else: what
    the filter took away), and more where positions and torque together do not explain the residuals: what the model
    lacks counts as noise. Ends when no parameter moves by more than `tolerance` standard errors.
    """

    needs = "experiment"
    family = "likelihood"
    about = "noise of positions and of torques, each of its own size"

    iterations: int = 50
    tolerance: float = 1e-2

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        start = starting_point(experiment, base, prior)
        experiment.terms.refuse_history("Maximum likelihood")
        if experiment.mask > 0.0:
            raise EstimationError("Maximum likelihood needs all rows; set the preparation's mask to zero.")
        likelihood = _Likelihood.of(experiment, base, start)
        beta, theta = start.beta, start.theta
        rounds = Rounds(self.iterations, self.tolerance, _SETTLING)
        for k in rounds:
            if k < _SETTLING:
                likelihood = likelihood.settled(beta, theta)
            free = likelihood.linear(beta, theta)
            taken = beta
            beta, theta, value = likelihood.towards(free.beta, beta, theta, prior)
            rounds.moved(taken, beta, free, cost=value)
        errors = np.vstack([piece.y - piece.A @ beta for piece in likelihood.pieces])
        details = {
            "start": start.beta,
            "position_noise": tuple(likelihood.pieces[0].sigma.tolist()),
            "torque_noise": tuple(likelihood.levels.tolist()),
        }
        std = np.sqrt(np.mean(errors**2, axis=0))
        return replace(free, beta=beta, residual_std=std, details=details, **rounds.outcome).estimate(prior)


@dataclass(frozen=True, eq=False)
class _Piece:
    """The kept rows of a run: `A` (rows, equations, parameters) and `y` filtered; the state; noise of positions.

    `chain` is the covariance of (q, q̇, q̈) for positions of unit noise, `passed` what the filter leaves of white
    torque noise, `fresh` the share of rows that say something new.
    """

    A: Array
    y: Array
    state: dict[str, Array]
    sigma: Array
    chain: Array
    passed: float
    fresh: float
    used: list[int]
    independent: tuple[int, ...]

    def slopes(self, dynamics: Dynamics, theta: Array) -> list[Array]:
        """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈, each `(rows, equations, joints)`."""
        return [dynamics.jacobian("inverse_dynamics", x, **self.state, theta=theta)[:, self.used, :] for x in _STATES]

    def position_part(self, slopes: list[Array]) -> Array:
        """What noise of the positions adds to the torques' covariance, `(rows, equations, equations)`."""
        scaled = [G * self.sigma for G in slopes]
        mixed = [sum(self.chain[a, b] * scaled[b] for b in range(3)) for a in range(3)]
        return np.asarray(sum(np.einsum("kij,klj->kil", scaled[a], mixed[a]) for a in range(3)))

    def corrected(self, dynamics: Dynamics, slopes: list[Array], u: Array) -> Array:
        """The rows at the likeliest true state: that measured plus (cov x) Gᵀ Σ⁻¹ e."""
        pulls = [np.einsum("kij,ki->kj", G, u) * self.sigma**2 for G in slopes]
        shifted = {x: self.state[x] + sum(self.chain[a, b] * pulls[b] for b in range(3)) for a, x in enumerate(_STATES)}
        columns = list(self.independent)
        Y, Y0 = (dynamics.torque_regressor(**s)[:, self.used][:, :, columns] for s in (shifted, self.state))
        return np.asarray(self.A + (Y - Y0))


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Rows and noise of all runs.

    Attributes:
        dynamics: the robot.
        base: the parameters that are looked for.
        data: the rows of least squares.
        pieces: rows and states of each run.
        sensor: standard deviations of the torque sensors' noise in the rows.
        levels: standard deviations of the rows' own torque noise, the model's lacks included.
    """

    dynamics: Dynamics
    base: BaseParameters
    data: RegressionData
    pieces: tuple[_Piece, ...]
    sensor: Array
    levels: Array

    @classmethod
    def of(cls, experiment: Experiment, base: BaseParameters, start: Start) -> _Likelihood:
        pieces = _pieces(experiment, start, base)
        used = np.flatnonzero(experiment.robot.torque_used)
        white = experiment.torque_noise
        if white is None:
            white = _noise_of([_removed(run.motion, run.tau, run.motion.filter(run.tau)) for run in experiment.runs])
        size = np.sqrt(np.mean(np.vstack([p.y for p in pieces]) ** 2, axis=0))
        least = 1e-9 * np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        sensor = np.maximum(white[used] * np.sqrt(pieces[0].passed), least)
        return cls(experiment.dynamics, base, start.data, tuple(pieces), sensor, sensor)

    def settled(self, beta: Array, theta: Array) -> _Likelihood:
        """With torque noise that, with the positions', explains the residuals at β; at least the sensor's."""
        total, explained, rows = 0.0, 0.0, 0.0
        for piece in self.pieces:
            part = piece.position_part(piece.slopes(self.dynamics, theta))
            total = total + np.sum((piece.y - piece.A @ beta) ** 2, axis=0)
            explained = explained + np.sum(np.diagonal(part, axis1=1, axis2=2), axis=0)
            rows += len(piece.y)
        # Twice the scatter of a mean square over so many rows that do not repeat one another.
        free = max(rows * self.pieces[0].fresh, 1.0)
        beyond = (total - explained * (1.0 + 2.0 * np.sqrt(2.0 / free))) / rows
        return replace(self, levels=np.sqrt(np.maximum(self.sensor**2, beyond)))

    def linear(self, beta: Array, theta: Array) -> FreeFit:
        """One round: whitened rows at the likeliest states, solved by least squares."""
        blocks: list[Block] = []
        for piece in self.pieces:
            slopes = piece.slopes(self.dynamics, theta)
            S = piece.position_part(slopes) + np.diag(self.levels**2)
            e = piece.y - piece.A @ beta
            u = np.asarray(np.linalg.solve(S, e[..., None])[..., 0], dtype=np.float64)
            rows = piece.corrected(self.dynamics, slopes, u)
            white = np.linalg.solve(np.linalg.cholesky(S), np.concatenate([rows, e[..., None]], axis=2))
            for k in range(len(self.levels)):
                A = np.ascontiguousarray(white[:, k, :-1])
                blocks.append(Block(k, A, white[:, k, -1] + A @ beta))
        data = self.data.with_blocks(blocks, self.base.independent)
        return reweighted(LeastSquaresProblem.of(data, self.base), np.ones(len(data.equations)))

    def cost(self, beta: Array, theta: Array) -> float:
        """Σ eᵀ Σ⁻¹ e."""
        total = 0.0
        for piece in self.pieces:
            S = piece.position_part(piece.slopes(self.dynamics, theta)) + np.diag(self.levels**2)
            e = piece.y - piece.A @ beta
            total += float(np.sum(e * np.linalg.solve(S, e[..., None])[..., 0]))
        return total

    def towards(self, goal: Array, beta: Array, theta: Array, prior: Prior | None) -> tuple[Array, Array, float]:
        """The longest of the halved steps that does not lower the likelihood."""
        value, share = self.cost(beta, theta), 1.0
        for _ in range(_HALVINGS):
            new = beta + share * (goal - beta)
            full = nearest_theta(self.base, new, prior)
            cost = self.cost(new, full)
            if cost <= value * (1.0 + 1e-9):
                return new, full, cost
            share *= 0.5
        return beta, theta, value


def _pieces(experiment: Experiment, start: Start, base: BaseParameters) -> list[_Piece]:
    used = [int(j) for j in np.flatnonzero(experiment.robot.torque_used)]
    rows: list[list[Array]] = [[] for _ in used]
    right: list[list[Array]] = [[] for _ in used]
    for block in start.data.blocks():
        rows[block.equation].append(dense(start.data, block, base))
        right[block.equation].append(block.y)
    A, y = np.stack([np.vstack(x) for x in rows], axis=1), np.stack([np.concatenate(x) for x in right], axis=1)
    out, first = [], 0
    sigma = experiment.position_noise
    if sigma is None:
        sigma = _noise_of([_removed(run.motion, run.q, run.motion.q) for run in experiment.runs])
    for run in experiment.runs:
        chain, passed = _chain(run.motion)
        part = slice(first, first + run.motion.rows)
        state = {x: np.ascontiguousarray(getattr(run.motion, x)[run.motion.keep]) for x in _STATES}
        fresh = min(1.0, 2.0 * run.motion.filter.cutoff_hz * run.motion.row_period)
        out.append(_Piece(A[part], y[part], state, sigma, chain, passed, fresh, used, base.independent))
        first = part.stop
    return out


def _impulse(motion: Motion) -> Array:
    x = np.zeros((8 * motion.filter.memory + 1, 1))
    x[len(x) // 2] = 1.0
    return x


def _chain(motion: Motion) -> tuple[Array, float]:
    """How white noise of positions and torques reaches the rows: by the impulse responses of the preparation."""
    low, h = motion.filter, motion.filter.period
    q = low(_impulse(motion))
    dq = low(derivative(q, h))
    ddq = low(derivative(dq, h))
    H = np.hstack([low(x) for x in (q, dq, ddq)])  # the rows themselves are filtered once more
    return H.T @ H, float(np.sum(q**2))


def _removed(motion: Motion, raw: Array, smooth: Array) -> Array:
    """The standard deviation of white noise, from what the filter took away."""
    impulse = _impulse(motion)
    share = float(np.sum((impulse - motion.filter(impulse)) ** 2))
    gone = (raw - smooth)[motion.keep.start : motion.keep.stop]
    return np.asarray(np.sqrt(np.mean(gone**2, axis=0) / share))


def _noise_of(levels: list[Array]) -> Array:
    return np.asarray(np.sqrt(np.mean(np.square(levels), axis=0)))
