"""Maximum likelihood with noise on positions and torques, each of its own size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import FreeFit, nearest_theta
from steelyard.estimation.linear._instants import dense
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulation_error._start import Rounds, Start, fit_with_weights, starting_point
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData
from steelyard.signals.filters import derivative
from steelyard.signals.prepare import Motion

_STATES = ("q", "dq", "ddq")
# Rounds that update the noise of the torque; later ones use the same likelihood function.
_NOISE_ROUNDS = 3
# Largest number of halvings of a step.
_HALVINGS = 8


@estimator("ml")
@dataclass(frozen=True)
class MaximumLikelihood(Estimator[Experiment]):
    """min Σ_k e_kᵀ Σ_k(β)⁻¹ e_k with e = τ − Y β and Σ_k = cov τ + G_k (cov of q, q̇, q̈) G_kᵀ, G = ∂(Yβ)/∂(q, q̇, q̈).

    This is the errors-in-variables likelihood after Olsen, Swevers & Verdonck 2002, with the true motion eliminated.
    White noise of `position_noise` (of the experiment, else from the part that the filter removed) reaches q, q̇ and
    q̈ through the filter and its derivatives, which define their covariances. The gradient Σ Ỹᵀ Σ⁻¹ e has Ỹ = Y at the
    most likely true state instead of the measured one; Gauss–Newton solves it. The torque's noise is the experiment's
    (else from the filter), and larger if both noises together do not explain the residuals: model errors count as
    noise.

    Attributes:
        iterations: Largest number of rounds.
        tolerance: Change in standard errors that ends the rounds.
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
        rounds = Rounds(self.iterations, self.tolerance, _NOISE_ROUNDS)
        for k in rounds:
            if k < _NOISE_ROUNDS:
                likelihood = likelihood.with_updated_noise(beta, theta)
            free = likelihood.linear(beta, theta)
            before = beta
            beta, theta, value = likelihood.line_search(free.beta, beta, theta, prior)
            rounds.add(before, beta, free, cost=value)
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
    """Rows of a run: `A` (rows, equations, parameters) and `y` filtered, the state, and the noise of positions.

    `chain` is the covariance of (q, q̇, q̈) for positions of unit noise, `passed` the share of white torque noise
    after the filter, `independent_share` the share of independent rows.
    """

    A: Array
    y: Array
    state: dict[str, Array]
    sigma: Array
    chain: Array
    passed: float
    independent_share: float
    used: list[int]
    independent: tuple[int, ...]

    def slopes(self, dynamics: Dynamics, theta: Array) -> list[Array]:
        """Compute ∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈, each of shape (rows, equations, joints)."""
        return [dynamics.jacobian("inverse_dynamics", x, **self.state, theta=theta)[:, self.used, :] for x in _STATES]

    def position_part(self, slopes: list[Array]) -> Array:
        """Compute the torque covariance from noise of the positions, shape (rows, equations, equations)."""
        scaled = [G * self.sigma for G in slopes]
        mixed = [sum(self.chain[a, b] * scaled[b] for b in range(3)) for a in range(3)]
        return np.asarray(sum(np.einsum("kij,klj->kil", scaled[a], mixed[a]) for a in range(3)))

    def corrected(self, dynamics: Dynamics, slopes: list[Array], u: Array) -> Array:
        """Compute the rows at the most likely true state: the measured one plus (cov x) Gᵀ Σ⁻¹ e."""
        corrections = [np.einsum("kij,ki->kj", G, u) * self.sigma**2 for G in slopes]
        shifted = {
            x: self.state[x] + sum(self.chain[a, b] * corrections[b] for b in range(3)) for a, x in enumerate(_STATES)
        }
        columns = list(self.independent)
        Y, Y0 = (dynamics.torque_regressor(**s)[:, self.used][:, :, columns] for s in (shifted, self.state))
        return np.asarray(self.A + (Y - Y0))


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Rows and noise of all runs.

    Attributes:
        dynamics: Dynamics of the robot.
        base: Base parameters.
        data: Rows of least squares.
        pieces: Rows and states of each run.
        sensor: Standard deviations of the sensor noise of the torques in the rows.
        levels: Standard deviations of the rows' torque noise, including model errors.
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
        smallest = 1e-9 * np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        sensor = np.maximum(white[used] * np.sqrt(pieces[0].passed), smallest)
        return cls(experiment.dynamics, base, start.data, tuple(pieces), sensor, sensor)

    def with_updated_noise(self, beta: Array, theta: Array) -> _Likelihood:
        """Update the torque noise so that it explains the residuals at β together with the positions' noise."""
        total, explained, rows = 0.0, 0.0, 0.0
        for piece in self.pieces:
            part = piece.position_part(piece.slopes(self.dynamics, theta))
            total = total + np.sum((piece.y - piece.A @ beta) ** 2, axis=0)
            explained = explained + np.sum(np.diagonal(part, axis1=1, axis2=2), axis=0)
            rows += len(piece.y)
        # Two standard deviations of a mean square over the independent rows.
        free = max(rows * self.pieces[0].independent_share, 1.0)
        unexplained = (total - explained * (1.0 + 2.0 * np.sqrt(2.0 / free))) / rows
        return replace(self, levels=np.sqrt(np.maximum(self.sensor**2, unexplained)))

    def linear(self, beta: Array, theta: Array) -> FreeFit:
        """Solve one round: whitened rows at the most likely states, by least squares."""
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
        return fit_with_weights(LeastSquaresProblem.of(data, self.base), np.ones(len(data.equations)))

    def cost(self, beta: Array, theta: Array) -> float:
        """Σ eᵀ Σ⁻¹ e."""
        total = 0.0
        for piece in self.pieces:
            S = piece.position_part(piece.slopes(self.dynamics, theta)) + np.diag(self.levels**2)
            e = piece.y - piece.A @ beta
            total += float(np.sum(e * np.linalg.solve(S, e[..., None])[..., 0]))
        return total

    def line_search(self, goal: Array, beta: Array, theta: Array, prior: Prior | None) -> tuple[Array, Array, float]:
        """Return the longest halved step that does not decrease the likelihood."""
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
        independent_share = min(1.0, 2.0 * run.motion.filter.cutoff_hz * run.motion.row_period)
        out.append(_Piece(A[part], y[part], state, sigma, chain, passed, independent_share, used, base.independent))
        first = part.stop
    return out


def _impulse(motion: Motion) -> Array:
    x = np.zeros((8 * motion.filter.memory + 1, 1))
    x[len(x) // 2] = 1.0
    return x


def _chain(motion: Motion) -> tuple[Array, float]:
    """Propagation of white noise of positions and torques to the rows, by impulse responses of the preparation."""
    low, h = motion.filter, motion.filter.period
    q = low(_impulse(motion))
    dq = low(derivative(q, h))
    ddq = low(derivative(dq, h))
    H = np.hstack([low(x) for x in (q, dq, ddq)])  # the rows are filtered once more
    return H.T @ H, float(np.sum(q**2))


def _removed(motion: Motion, raw: Array, smooth: Array) -> Array:
    """Standard deviation of white noise, from the part that the filter removed."""
    impulse = _impulse(motion)
    share = float(np.sum((impulse - motion.filter(impulse)) ** 2))
    removed = (raw - smooth)[motion.keep.start : motion.keep.stop]
    return np.asarray(np.sqrt(np.mean(removed**2, axis=0) / share))


def _noise_of(levels: list[Array]) -> Array:
    return np.asarray(np.sqrt(np.mean(np.square(levels), axis=0)))
