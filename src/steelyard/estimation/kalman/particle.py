"""Particle filter: simulates many robots with different parameters and keeps those that move like the real one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.kalman._noise import extended_pass
from steelyard.estimation.kalman._prepare_filter import CHECK_INTERVAL, FilterHistory, FilterSetup, prepare_filter
from steelyard.estimation.kalman.consistency_tests import SquaresRatio
from steelyard.estimation.kalman.tuning import Tuning
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulation_error.experiment import Experiment, Run
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# The likelihood is applied in stages; each leaves at least this share of effective particles.
_MIN_EFFECTIVE = 0.2
_MAX_STAGES = 100
# Smallest share of effective particles for a meaningful covariance.
_COLLAPSE_SHARE = 0.01
# With the most likely noise few particles survive a sample; that of the residuals is several times larger.
WIDE_NOISE = Tuning(likeliest=False)
# Particles beyond this limit count as diverged [rad, m, rad/s, m/s].
_STATE_LIMIT = 1e4


@estimator("pf")
@dataclass(frozen=True)
class ParticleFilter(Estimator[Experiment]):
    """Bootstrap filter (Gordon, Salmond & Smith 1993) with the kernel of Liu & West (2001) against impoverishment.

    Each particle is a robot with its own state and base parameters, stepped with random torque noise. Its weight is the
    likelihood of the measured positions, applied in stages if few particles would remain.

    Properties: parameters of small robots are accurate to one or two percent, and reproducible for the same `seed`. The
    result is DIVERGED if fewer than a hundredth of the particles were effective, or if the log is less likely with the
    result than with the initial values, which are then returned. It is OVERCONFIDENT if innovations, steps of the
    parameters, or variances smaller than those of an extended filter (a collapsed swarm) show it. Error bars are
    those of a sample and too small. The number of particles needed grows exponentially with the number of
    parameters (docs/theory/kalman.md has numbers).

    Attributes:
        particles: Number of particles.
        seed: Seed of all random numbers.
        resample_below: Resample below this share of effective particles.
        shrinkage: Resampled particles move towards the mean by this factor; Gaussian noise restores the covariance.
        widening: Factor on the measurement noise in the weights.
        most: Largest number of base parameters.
        substeps: Steps per sample; None: enough for the friction.
        torque: Torque between samples, as for `KalmanFilter`.
        tuning: Initial values and noise.
    """

    needs = "experiment"
    family = "filter"
    physical_form = "none"
    order_matters = True
    log_settings = MappingProxyType({"tuning": replace(WIDE_NOISE, start="least-squares")})
    honest_errors = False
    about = "particle filter, for robots of few parameters"

    particles: int = 2000
    seed: int = 0
    resample_below: float = 0.5
    shrinkage: float = 0.5
    widening: float = 1.0
    most: int = 10
    substeps: int | None = None
    torque: Literal["auto", "held", "linear"] = "auto"
    tuning: Tuning = field(default_factory=lambda: WIDE_NOISE)

    def __post_init__(self) -> None:
        if self.particles < 10 or not 0.0 < self.shrinkage < 1.0 or not self.widening >= 1.0:
            raise EstimationError("particles must be at least 10, shrinkage between 0 and 1, widening at least 1.")

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        if base.rank > self.most:
            raise EstimationError(
                f"A particle filter for {base.rank} parameters would need too many particles; the limit is {self.most} "
                "parameters. Use ekf or ukf, or increase `most`."
            )
        with one_blas_thread():
            setup = prepare_filter(experiment, base, prior, self.tuning, "rk4", self.substeps, self.torque)
            return _Swarm(self, setup).estimate(prior)


class _Swarm:
    """All particles and their history."""

    def __init__(self, settings: ParticleFilter, setup: FilterSetup) -> None:
        self.settings, self.setup = settings, setup
        self.rng = np.random.default_rng(settings.seed)
        self.path = FilterHistory(setup.base, setup.plant, True)
        N, first = settings.particles, setup.tuning
        root = np.linalg.cholesky(first.covariance)
        self.beta = first.beta + self.rng.normal(size=(N, setup.base.rank)) @ root.T
        self.x = np.zeros((N, 2 * setup.experiment.robot.dof))
        self.weights = np.full(N, 1.0 / N)
        self.resampled, self.fewest, self.stages, self.innovation = 0, float(N), 1, np.zeros(setup.experiment.robot.dof)
        self.elapsed = 0.0
        self.last = first.beta, first.covariance
        self.path.consistency.add_snapshot(0.0, *self.last)

    def estimate(self, prior: Prior | None) -> Estimate:
        with np.errstate(all="ignore"):
            all(self._run(run) for run in self.setup.experiment.runs)  # up to the first that fails
        return self._result(prior)

    def _run(self, run: Run) -> bool:
        setup, N, n = self.setup, len(self.weights), self.setup.experiment.robot.dof
        transition, (starts, ends) = setup.transition(run), setup.torques(run)
        first = np.concatenate([run.q[0], run.motion.dq[0]])
        self.x = first + setup.tuning.first_state_std() * self.rng.normal(size=(N, 2 * n))
        noise = self.settings.widening * setup.tuning.positions
        for k in range(1, len(run.t)):
            errors = setup.tuning.step.torque * self.rng.normal(size=(N, n))
            self.x = transition.step(self.x, self.beta, starts[k - 1] + errors, ends[k - 1] + errors)
            self.x += setup.tuning.step.state * self.rng.normal(size=(N, 2 * n))
            if not self._update(run.q[k], noise, float(run.t[k])):
                return False
            if k % CHECK_INTERVAL == 0 or k == len(run.t) - 1:
                if not self.path.check():
                    return False
                self.last = self._moments(self.beta)
                self.elapsed += run.period * (k % CHECK_INTERVAL or CHECK_INTERVAL)
                self.path.consistency.add_snapshot(self.elapsed, *self.last)
        return True

    def _update(self, q: Array, noise: Array, t: float) -> bool:
        """Apply the likelihood of a sample in stages that each leave enough effective particles, and store a point."""
        N, remaining = len(self.weights), 1.0
        for stage in range(_MAX_STAGES):
            if not self._replace_diverged():
                self.path.failure = f"no particle was left by t = {t:.4g} s"
                return False
            squares = np.sum(((self.x[:, : len(q)] - q) / noise) ** 2, axis=1)
            if stage == 0:
                self.innovation = self._innovation(q, noise)
            part = self._largest_part(squares, remaining)
            self.weights = self._reweight(squares, part)
            remaining -= part
            effective = 1.0 / float(np.sum(self.weights**2))
            self.fewest = min(self.fewest, effective)
            if remaining <= 0.0:
                break
            self._resample()
        else:
            self.path.failure = f"the particles were too far from the measurement at t = {t:.4g} s"
            return False
        self.stages = max(self.stages, stage + 1)
        self.path.add(t, self.weights @ self.beta, self.weights @ self.x, self.innovation)
        if effective < self.settings.resample_below * N:
            self._resample()
        return True

    def _innovation(self, q: Array, noise: Array) -> Array:
        """Innovation, normalised by the prediction of the particles before weighting."""
        mean, P = self._moments(self.x[:, : len(q)])
        return np.asarray(solve_triangular(np.linalg.cholesky(P + np.diag(noise**2)), q - mean, lower=True))

    def _replace_diverged(self) -> bool:
        """Give diverged particles weight zero and the values of a valid one, since NaN would spread."""
        diverged = ~np.all(np.abs(self.x) < _STATE_LIMIT, axis=1)
        if diverged.all() or not self.weights[~diverged].sum() > 0.0:
            return False
        if diverged.any():
            effective = int(np.argmin(diverged))
            self.x[diverged], self.beta[diverged] = self.x[effective], self.beta[effective]
            self.weights[diverged] = 0.0
            self.weights /= self.weights.sum()
        return True

    def _reweight(self, squares: Array, part: float) -> Array:
        """Weights after a power `part` of the likelihood."""
        log = np.log(np.maximum(self.weights, 1e-300)) - 0.5 * part * squares
        w = np.exp(log - log.max())
        return np.asarray(w / w.sum())

    def _largest_part(self, squares: Array, remaining: float) -> float:
        """Largest part of the remaining likelihood that leaves `_MIN_EFFECTIVE` of the particles effective."""
        minimum = _MIN_EFFECTIVE * len(squares)

        def effective(part: float) -> float:
            return 1.0 / float(np.sum(self._reweight(squares, part) ** 2))

        if effective(remaining) >= minimum:
            return remaining
        low, high = 0.0, remaining
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if effective(middle) >= minimum else (low, middle)
        return max(low, 1e-6 * remaining)

    def _resample(self) -> None:
        """Draw particles systematically and apply the kernel. The covariance of the weighted particles is slightly
        enlarged:

        weights that follow chance correlations of n measurements among few particles reduce it by about n/effective.
        """
        N, a, n = len(self.weights), self.settings.shrinkage, self.setup.experiment.robot.dof
        z = np.hstack([self.beta, self.x])
        mean, P = self._moments(z)
        enlargement = np.sqrt(1.0 + (n + 1.0) * float(np.sum(self.weights**2)))
        positions = (self.rng.random() + np.arange(N)) / N
        selection = z[np.minimum(np.searchsorted(np.cumsum(self.weights), positions), N - 1)]
        scale = np.sqrt(np.maximum(np.diag(P), 1e-300))
        values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
        root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
        errors = a * (selection - mean) + np.sqrt(1.0 - a**2) * self.rng.normal(size=z.shape) @ root.T
        z = mean + enlargement * errors
        p = self.beta.shape[1]
        self.beta, self.x = np.ascontiguousarray(z[:, :p]), np.ascontiguousarray(z[:, p:])
        self.weights = np.full(N, 1.0 / N)
        self.resampled += 1

    def _moments(self, z: Array) -> tuple[Array, Array]:
        mean = self.weights @ z
        errors = z - mean
        effective = 1.0 - float(np.sum(self.weights**2))
        return mean, (errors * self.weights[:, None]).T @ errors / max(effective, 1e-3)

    def _result(self, prior: Prior | None) -> Estimate:
        N = len(self.weights)
        if self.fewest < _COLLAPSE_SHARE * N and not self.path.failure:
            self.path.failure = f"the swarm collapsed to {self.fewest:.0f} effective of {N} particles"
        bound = extended_pass(self.setup, self.setup.tuning.beta, self.setup.tuning.covariance)
        if bound is not None:
            shares = np.diag(bound[1]) / np.maximum(np.diag(self.last[1]), 1e-300)
            ratio = SquaresRatio(float(np.mean(shares)), int(self.fewest))
            self.path.consistency.more["variances of an extended filter over the swarm's"] = ratio
        counts = {"resampled": self.resampled, "fewest_particles": self.fewest, "stages": self.stages}
        return self.setup.estimate(self.last, prior, self.path, **counts)
