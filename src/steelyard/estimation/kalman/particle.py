"""`ParticleFilter`: many simulated robots at once, those that move like the real one survive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.kalman._noise import extended_pass
from steelyard.estimation.kalman._prepare_filter import LOOK, FilterPath, Ready, ready
from steelyard.estimation.kalman.consistency import SquaresRatio
from steelyard.estimation.kalman.tuning import Tuning
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulated.experiment import Experiment, Run
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# A part of the likelihood is taken in at once that leaves this share of the particles alive.
_ALIVE = 0.2
_MOST_STAGES = 100
# Fewer than this share of the particles tell nothing about a covariance.
_COLLAPSED = 0.01
# Under the likeliest noise few particles survive a sample; the residuals' is several times as large.
WIDE_NOISE = Tuning(likeliest=False)
# A particle beyond this (rad, m, or a second of it) has run away.
_RUNAWAY = 1e4


@estimator("pf")
@dataclass(frozen=True)
class ParticleFilter(Estimator[Experiment]):
    """Bootstrap filter (Gordon, Salmond & Smith 1993) with the kernel of Liu & West (2001) against impoverishment.

    `particles` robots, each with a state and base parameters of its own, are stepped with torque noise drawn for each;
    weights are the likelihood of the measured positions, taken in by stages where it would leave few particles. When
    fewer than `resample_below` of them count, they are drawn anew, shrunk towards the mean by `shrinkage` and spread
    by a Gaussian that restores the covariance. `widening` multiplies the measurement noise in the weights.

    Claims: parameters of small robots to one or two percent, the same for the same `seed`; and that it says how it
    ended: DIVERGED where fewer than a hundredth of the particles counted or where the log is less likely under what
    it found than under its start, which is then given back; OVERCONFIDENT where its innovations, the steps of its
    parameters, or variances shorter than those of an extended filter over the same log (a swarm that has collapsed)
    say so. Does not claim honest error bars: they are a sample's, and too short. The number of particles that is
    needed grows exponentially with the number of parameters; beyond `most` it is refused (docs/theory/kalman.md has
    the figures).
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
            raise EstimationError("A particle filter needs 10 particles or more, shrinkage in (0, 1), widening ≥ 1.")

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        if base.rank > self.most:
            raise EstimationError(
                f"A particle filter on {base.rank} parameters would need more particles than any machine has; it is "
                f"allowed up to {self.most}. Use ekf or ukf, or raise `most` to see it fail."
            )
        with one_blas_thread():
            about = ready(experiment, base, prior, self.tuning, "rk4", self.substeps, self.torque)
            return _Swarm(self, about).estimate(prior)


class _Swarm:
    """All particles, and the way they take."""

    def __init__(self, settings: ParticleFilter, about: Ready) -> None:
        self.settings, self.about = settings, about
        self.rng = np.random.default_rng(settings.seed)
        self.path = FilterPath(about.base, about.plant, True)
        N, first = settings.particles, about.tuned
        root = np.linalg.cholesky(first.covariance)
        self.beta = first.beta + self.rng.normal(size=(N, about.base.rank)) @ root.T
        self.x = np.zeros((N, 2 * about.experiment.robot.dof))
        self.weights = np.full(N, 1.0 / N)
        self.resampled, self.fewest, self.stages, self.miss = 0, float(N), 1, np.zeros(about.experiment.robot.dof)
        self.elapsed = 0.0
        self.last = first.beta, first.covariance
        self.path.consistency.keep(0.0, *self.last)

    def estimate(self, prior: Prior | None) -> Estimate:
        with np.errstate(all="ignore"):
            all(self._run(run) for run in self.about.experiment.runs)  # up to the first that fails
        return self._made(prior)

    def _run(self, run: Run) -> bool:
        about, N, n = self.about, len(self.weights), self.about.experiment.robot.dof
        transition, (starts, ends) = about.transition(run), about.torques(run)
        first = np.concatenate([run.q[0], run.motion.dq[0]])
        self.x = first + about.tuned.first_state_std() * self.rng.normal(size=(N, 2 * n))
        noise = self.settings.widening * about.tuned.positions
        for k in range(1, len(run.t)):
            off = about.tuned.step.torque * self.rng.normal(size=(N, n))
            self.x = transition.moved(self.x, self.beta, starts[k - 1] + off, ends[k - 1] + off)
            self.x += about.tuned.step.state * self.rng.normal(size=(N, 2 * n))
            if not self._take_in(run.q[k], noise, float(run.t[k])):
                return False
            if k % LOOK == 0 or k == len(run.t) - 1:
                if not self.path.healthy():
                    return False
                self.last = self._moments(self.beta)
                self.elapsed += run.period * (k % LOOK or LOOK)
                self.path.consistency.keep(self.elapsed, *self.last)
        return True

    def _take_in(self, q: Array, noise: Array, t: float) -> bool:
        """The likelihood of a sample, in stages that each leave enough particles alive; then a point of the path."""
        N, left = len(self.weights), 1.0
        for stage in range(_MOST_STAGES):
            if not self._bury():
                self.path.trouble = f"no particle was left by t = {t:.4g} s"
                return False
            miss = np.sum(((self.x[:, : len(q)] - q) / noise) ** 2, axis=1)
            if stage == 0:
                self.miss = self._innovation(q, noise)
            part = self._bearable(miss, left)
            self.weights = self._weighed(miss, part)
            left -= part
            alive = 1.0 / float(np.sum(self.weights**2))
            self.fewest = min(self.fewest, alive)
            if left <= 0.0:
                break
            self._resample()
        else:
            self.path.trouble = f"the particles were too far from the measurement at t = {t:.4g} s"
            return False
        self.stages = max(self.stages, stage + 1)
        self.path.add(t, self.weights @ self.beta, self.weights @ self.x, self.miss)
        if alive < self.settings.resample_below * N:
            self._resample()
        return True

    def _innovation(self, q: Array, noise: Array) -> Array:
        """Normalised, by what the particles predict before they are weighed."""
        mean, P = self._moments(self.x[:, : len(q)])
        return np.asarray(solve_triangular(np.linalg.cholesky(P + np.diag(noise**2)), q - mean, lower=True))

    def _bury(self) -> bool:
        """Particles that ran away get no weight, and the place of one that did not: not a number would spoil all."""
        dead = ~np.all(np.abs(self.x) < _RUNAWAY, axis=1)
        if dead.all() or not self.weights[~dead].sum() > 0.0:
            return False
        if dead.any():
            alive = int(np.argmin(dead))
            self.x[dead], self.beta[dead] = self.x[alive], self.beta[alive]
            self.weights[dead] = 0.0
            self.weights /= self.weights.sum()
        return True

    def _weighed(self, miss: Array, part: float) -> Array:
        """Weights after a part of the likelihood (its power) was taken in."""
        log = np.log(np.maximum(self.weights, 1e-300)) - 0.5 * part * miss
        w = np.exp(log - log.max())
        return np.asarray(w / w.sum())

    def _bearable(self, miss: Array, left: float) -> float:
        """The largest part of what is left of the likelihood that leaves `_ALIVE` of the particles alive."""
        least = _ALIVE * len(miss)

        def alive(part: float) -> float:
            return 1.0 / float(np.sum(self._weighed(miss, part) ** 2))

        if alive(left) >= least:
            return left
        low, high = 0.0, left
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if alive(middle) >= least else (low, middle)
        return max(low, 1e-6 * left)

    def _resample(self) -> None:
        """Systematic draws, then the kernel. The covariance becomes what the weighted particles say, and a bit more:

        weights that follow chance correlations of n measurements among few particles shorten it by about n/alive.
        """
        N, a, n = len(self.weights), self.settings.shrinkage, self.about.experiment.robot.dof
        z = np.hstack([self.beta, self.x])
        mean, P = self._moments(z)
        grown = np.sqrt(1.0 + (n + 1.0) * float(np.sum(self.weights**2)))
        places = (self.rng.random() + np.arange(N)) / N
        chosen = z[np.minimum(np.searchsorted(np.cumsum(self.weights), places), N - 1)]
        scale = np.sqrt(np.maximum(np.diag(P), 1e-300))
        values, vectors = np.linalg.eigh(P / np.outer(scale, scale))
        root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
        off = a * (chosen - mean) + np.sqrt(1.0 - a**2) * self.rng.normal(size=z.shape) @ root.T
        z = mean + grown * off
        p = self.beta.shape[1]
        self.beta, self.x = np.ascontiguousarray(z[:, :p]), np.ascontiguousarray(z[:, p:])
        self.weights = np.full(N, 1.0 / N)
        self.resampled += 1

    def _moments(self, z: Array) -> tuple[Array, Array]:
        mean = self.weights @ z
        off = z - mean
        alive = 1.0 - float(np.sum(self.weights**2))
        return mean, (off * self.weights[:, None]).T @ off / max(alive, 1e-3)

    def _made(self, prior: Prior | None) -> Estimate:
        N = len(self.weights)
        if self.fewest < _COLLAPSED * N and not self.path.trouble:
            self.path.trouble = f"the swarm collapsed, at worst {self.fewest:.0f} of {N} particles counted"
        bound = extended_pass(self.about, self.about.tuned.beta, self.about.tuned.covariance)
        if bound is not None:
            shares = np.diag(bound[1]) / np.maximum(np.diag(self.last[1]), 1e-300)
            found = SquaresRatio(float(np.mean(shares)), int(self.fewest))
            self.path.consistency.more["variances of an extended filter over the swarm's"] = found
        counted = {"resampled": self.resampled, "fewest_particles": self.fewest, "stages": self.stages}
        return self.about.estimate(self.last, prior, self.path, **counted)
