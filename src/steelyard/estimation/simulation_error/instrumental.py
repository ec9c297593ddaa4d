"""Instrumental variables (IDIM-IV): least squares with instruments from a noise-free simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.linear._instants import dense
from steelyard.estimation.linear.covariance import Covariance, covariance
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulation_error._closed_loop import ClosedLoop, simulate_or_retreat
from steelyard.estimation.simulation_error._start import Rounds, starting_point
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData


@estimator("iv")
@dataclass(frozen=True)
class InstrumentalVariables(Estimator[Experiment]):
    """Zᵀ W (y − A β) = 0 with instruments Z from a simulated closed loop (Janot, Vandanjon & Gautier 2014).

    The noise of the measured motion in A also appears in y through the controller, which biases least squares. Z is the
    regressor of the motion simulated with the present parameters: correlated with the true regressor, but not with the
    noise. β gives new instruments until convergence. W are 1/σ² per joint, from the residuals.

    Attributes:
        iterations: Largest number of rounds.
        tolerance: Change in standard errors that ends the rounds.
        mismatch: Largest relative difference between simulation and log.
    """

    needs = "experiment"
    family = "loop"
    about = "instruments from a noise-free simulated motion"
    needs_controller = True

    iterations: int = 20
    tolerance: float = 1e-2
    mismatch: float = 0.25

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        start = starting_point(experiment, base, prior)
        loop = ClosedLoop.of(experiment, base, start.theta, self.mismatch)
        problem = start.free.problem
        beta, weights = start.beta, start.free.weights
        rounds = Rounds(self.iterations, self.tolerance)
        for _ in rounds:
            before, instruments = _instruments(loop, beta, start.beta, prior)
            pairs = _Pairs.of(start.data, instruments, base)
            beta, weights, residual_std = pairs.solve(problem, weights)
            rounds.add(before, beta, start.free, residual_std=tuple(residual_std.tolist()))
        error_bars = pairs.covariance(beta, weights)
        sums = [float(np.sum((b[:, :-1] @ beta - b[:, -1]) ** 2)) for b in problem.blocks]
        return Estimate(
            base=base,
            beta=beta,
            covariance=error_bars.matrix,
            theta=nearest_theta(base, beta, prior),
            residual_std=residual_std,
            cost=float(np.sum(weights**2 * sums)),
            details={**error_bars.details(), "rows": problem.factor.rows, "start": start.beta},
            **rounds.outcome,
        )


def _instruments(loop: ClosedLoop, beta: Array, safe: Array, prior: Prior | None) -> tuple[Array, RegressionData]:
    """Rows of the simulated motions; after a divergence from parameters half way back to the start."""
    beta, motions = simulate_or_retreat(beta, safe, lambda x: loop.motions(nearest_theta(loop.base, x, prior)))
    mask = loop.experiment.mask
    if mask > 0.0:  # the mask would depend on the speed, which differs between measurement and simulation
        raise EstimationError("Instrumental variables need all rows; set the preparation's mask to zero.")
    # Instruments need not be exact, so all rows of the log are used.
    rows = [replace(m, keep=run.motion.keep) for m, run in zip(motions, loop.experiment.runs, strict=True)]
    return beta, loop.regression(rows)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Blocks of A, y and Z over the base columns, and their products per equation."""

    base: BaseParameters
    data: RegressionData
    blocks: tuple[tuple[int, Array, Array, Array], ...]
    ZA: tuple[Array, ...]
    Zy: tuple[Array, ...]

    @classmethod
    def of(cls, data: RegressionData, instruments: RegressionData, base: BaseParameters) -> _Pairs:
        p, count = base.rank, len(data.equations)
        ZA, Zy = [np.zeros((p, p)) for _ in range(count)], [np.zeros(p) for _ in range(count)]
        blocks = []
        with one_blas_thread():
            for own, other in zip(data.blocks(), instruments.blocks(), strict=True):
                e = own.equation
                A = dense(data, own, base)
                Z = dense(instruments, other, base)
                ZA[e] += Z.T @ A
                Zy[e] += Z.T @ own.y
                blocks.append((e, A, Z, own.y))
        return cls(base, data, tuple(blocks), tuple(ZA), tuple(Zy))

    def matrix(self, weights: Array) -> Array:
        return np.asarray(sum(w**2 * x for w, x in zip(weights, self.ZA, strict=True)))

    def solve(self, problem: LeastSquaresProblem, weights: Array) -> tuple[Array, Array, Array]:
        """Solve for β and for the weights from its residuals, with their standard deviation."""
        rows = np.maximum(problem.rows - self.base.rank / len(problem.rows), 1.0)
        for _ in range(100):
            right = np.asarray(sum(w**2 * x for w, x in zip(weights, self.Zy, strict=True)))
            beta = _solve(self.matrix(weights), right)
            sums = [float(np.sum((b[:, :-1] @ beta - b[:, -1]) ** 2)) for b in problem.blocks]
            residual_std = np.sqrt(np.array(sums) / rows)
            new = 1.0 / np.maximum(residual_std, problem.floor)
            if np.all(np.abs(new - weights) < 1e-8 * new):
                break
            weights = new
        return beta, weights, residual_std

    def covariance(self, beta: Array, weights: Array) -> Covariance:
        """Compute H⁻¹ (Σ w⁴ Zᵀ C Z) H⁻ᵀ with H = Σ w² ZᵀA and the noise spectrum C of the residuals y − A β."""
        rows = [Block(e, Z, y - A @ beta + Z @ beta) for e, A, Z, y in self.blocks]
        plain = covariance(self.data.with_blocks(rows, self.base.independent), self.base, beta, weights)
        square = sum((weights[e] ** 2 * (Z.T @ Z) for e, _, Z, _ in self.blocks), np.zeros_like(plain.matrix))
        T = _solve(self.matrix(weights), square)
        return replace(plain, matrix=T @ plain.matrix @ T.T, white=T @ plain.white @ T.T)


def _solve(H: Array, right: Array) -> Array:
    """H⁻¹ right with scaled rows and columns; raises an error if the instruments do not determine the parameters."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    scaled = H * scale * scale[:, None]
    if not np.all(np.isfinite(scaled)) or np.linalg.cond(scaled) > 1e14:
        raise EstimationError(
            "The instruments do not determine all base parameters; use a richer motion or better initial values."
        )
    left = scale[:, None] if right.ndim == 2 else scale
    return np.asarray(left * np.linalg.solve(scaled, left * right))
