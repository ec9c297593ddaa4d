"""`KalmanFilter`: what all Gaussian filters share: tuning, the way through the runs, and the estimate at its end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.kalman._belief import Belief, LostPositiveError, RootBelief, WholeBelief
from steelyard.estimation.kalman._prepare_filter import LOOK, FilterPath, Ready, ready
from steelyard.estimation.kalman._transition import Method
from steelyard.estimation.kalman.rules import (
    ByDerivatives,
    BySigmaPoints,
    CentralDifference,
    Cubature,
    Predictor,
    Rule,
    Unscented,
)
from steelyard.estimation.kalman.tuning import LOG_SETTINGS, Tuning
from steelyard.estimation.registry import estimator
from steelyard.estimation.simulated.experiment import Experiment, Run
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# A pass keeps two covariances per sample; more than this is refused.
_MOST_BYTES = 2_000_000_000


@dataclass(eq=False)
class _Trail:
    """What the backward pass of Rauch, Tung and Striebel (1965) needs of one run: before and after every step."""

    samples: int
    filtered: list[tuple[Array, Array]] = field(default_factory=list)
    predicted: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def check(self, width: int) -> None:
        need = 16 * width**2 * self.samples
        if need > _MOST_BYTES:
            raise EstimationError(
                f"Smoothing {self.samples} samples of {width} unknowns needs {need / 1e9:.1f} GB; cut the log into "
                "shorter runs or leave `smooth` off (parameters that do not drift gain nothing by it)."
            )

    def smoothed(self) -> tuple[Array, Array]:
        """(parameters and state) `(samples, …)` with their standard deviations."""
        z, P = self.filtered[-1]
        means, stds = [z], [np.sqrt(np.maximum(np.diag(P), 0.0))]
        p = len(z) - len(self.predicted[0][2]) if self.predicted else 0
        for (before, Pf), (after, Pp, slope) in zip(self.filtered[-2::-1], self.predicted[::-1], strict=True):
            scale = np.sqrt(np.diag(Pp))  # unknowns of very different size would spoil the factorisation
            C = np.hstack([Pf[:, :p], Pf @ slope.T]) / scale
            G = cho_solve(cho_factor(Pp / np.outer(scale, scale), lower=True), C.T).T / scale
            z = before + G @ (z - after)
            P = Pf + G @ (P - Pp) @ G.T
            means.append(z)
            stds.append(np.sqrt(np.maximum(np.diag(P), 0.0)))
        return np.array(means[::-1]), np.array(stds[::-1])


@dataclass(frozen=True)
class KalmanFilter(Estimator[Experiment]):
    """Filters over (q, q̇, β): torques drive the model, measured positions correct it.

    All runs share the parameters; every run starts with a state of its own. The estimate is the filter's at the end of
    the last run. CONVERGED means that the filter knows how good it is: its normalised innovations, their sums and the
    steps of its parameters are as large as it expected (`kalman.consistency`). OVERCONFIDENT means that they are
    larger; the note says which, and the covariance was widened. A filter that loses its way (a state that runs away,
    a mass matrix or a covariance that is no longer positive definite) stops there, and one that ends where the log is
    less likely than at its start has lost it unseen: DIVERGED, with the last healthy numbers, or the start where that
    is likelier. `on_loss="continue"` lets the mass matrix be, and goes on as long as numbers are finite.

    `method` "rk4" or "euler" with `substeps` per sample (None: as many as the friction's slope needs); `torque` "held"
    over a sample, "linear" to the next, "auto": as the experiment's `torque_between` says, else held where it has a
    controller. `smooth` adds the states in
    the light of the whole run to the details.
    """

    needs = "experiment"
    family = "filter"
    order_matters = True
    log_settings = LOG_SETTINGS

    tuning: Tuning = field(default_factory=Tuning)
    method: Method = "rk4"
    substeps: int | None = None
    torque: Literal["auto", "held", "linear"] = "auto"
    smooth: bool = False
    on_loss: Literal["stop", "continue"] = "stop"
    square_root: bool = False

    @abstractmethod
    def predictor(self) -> Predictor:
        """How a step is predicted."""

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        with one_blas_thread():
            about = ready(experiment, base, prior, self.tuning, self.method, self.substeps, self.torque)
            return self.passed(about).estimate(prior)

    def passed(self, about: Ready) -> _Way:
        """The way over the experiment that `about` has ready."""
        return _Way(self, about, self.predictor())


class _Way:
    """One pass over an experiment."""

    def __init__(self, settings: KalmanFilter, about: Ready, predict: Predictor) -> None:
        self.settings, self.about, self.predict = settings, about, predict
        self.path = FilterPath(about.base, about.plant, settings.on_loss == "stop")
        self.trails: list[_Trail] = []
        kind: type[Belief] = RootBelief if settings.square_root else WholeBelief
        state = np.zeros(2 * about.experiment.robot.dof)
        first = about.tuned
        self.belief = kind(first.beta, first.covariance, state, first.first_state_std())
        self.last: tuple[Array, Array] = (first.beta, first.covariance)
        self.path.consistency.drift = first.drift**2
        self.path.consistency.keep(0.0, *self.last)
        self.elapsed = 0.0

        self._go()

    def _go(self) -> None:
        try:
            with np.errstate(all="ignore"):  # a runaway is found by looking at the numbers
                all(self._run(run) for run in self.about.experiment.runs)  # up to the first that fails
        except LostPositiveError as lost:
            if self.path.healthy():
                when = f"after t = {self.path.times[-1]:.4g} s" if self.path.times else "at the first sample"
                self.path.trouble = f"{str(lost)[0].lower()}{str(lost)[1:-1]} {when}"

    def _run(self, run: Run) -> bool:
        """Whether the filter came through."""
        about, belief = self.about, self.belief
        transition = about.transition(run)
        starts, ends = about.torques(run)
        belief.restart(np.concatenate([run.q[0], run.motion.dq[0]]), about.tuned.first_state_std())
        trail = self._trail(run)
        drift = about.tuned.drift**2 * run.period
        for k in range(1, len(run.t)):
            slope = self.predict(belief, transition, starts[k - 1], ends[k - 1], about.tuned.step, trail is not None)
            if drift.any():
                belief.drift(drift)
            if trail is not None:
                assert slope is not None
                trail.predicted.append((belief.z.copy(), belief.covariance.copy(), slope))
            miss = belief.measure(run.q[k], about.tuned.positions)
            self.path.add(float(run.t[k]), belief.beta, belief.x, miss)
            if trail is not None:
                trail.filtered.append((belief.z.copy(), belief.covariance.copy()))
            if k % LOOK == 0 or k == len(run.t) - 1:
                if not self.path.healthy():
                    return False
                self.elapsed += run.period * (k % LOOK or LOOK)
                self._keep()
        return True

    def _keep(self) -> None:
        p = self.belief.p
        self.last = self.belief.beta.copy(), self.belief.covariance[:p, :p].copy()
        self.path.consistency.keep(self.elapsed, *self.last)

    def _trail(self, run: Run) -> _Trail | None:
        if not self.settings.smooth:
            return None
        trail = _Trail(len(run.t))
        trail.check(len(self.belief.z))
        trail.filtered.append((self.belief.z.copy(), self.belief.covariance.copy()))
        self.trails.append(trail)
        return trail

    def estimate(self, prior: Prior | None) -> Estimate:
        smoothed = tuple(trail.smoothed() for trail in self.trails) if not self.path.trouble else ()
        details = {"smoothed": smoothed} if smoothed else {}
        return self.about.estimate(self.last, prior, self.path, **details)


@estimator("ekf", "extended Kalman filter over motion and parameters", square_root=False)
@estimator("srekf", "the extended filter in square-root form", square_root=True)
@dataclass(frozen=True)
class ExtendedKalman(KalmanFilter):
    """The joint extended Kalman filter, with exact derivatives of the Runge–Kutta (or Euler) step.

    With `square_root` the covariance is kept as a triangular root (same estimate, half the digits needed). `passes`
    over the log, all from the same start: the later ones take their derivatives at the parameters that the one before
    found, so that a start that is far off does not leave its curvature in the error bars. Claims:
    the parameters of a well-excited, well-tuned run to a few of its standard errors. Does not claim: minimum variance
    (it is linearised about its own estimate), nor robustness against a wrong start: a bad one may diverge, and says so.
    """

    passes: int = 2

    def predictor(self) -> Predictor:
        return ByDerivatives()

    def passed(self, about: Ready) -> _Way:
        """The last of the passes over the experiment that `about` has ready."""
        way = super().passed(about)
        for _ in range(1, self.passes):
            if way.path.trouble:
                break
            again = _Way(self, about, ByDerivatives(way.last[0]))
            if again.path.trouble:
                break
            way = again
        return way


@estimator("ukf", "unscented Kalman filter", square_root=False, rule=Unscented())
@estimator("srukf", "the unscented filter in square-root form", square_root=True, rule=Unscented())
@estimator("ckf", "cubature Kalman filter", square_root=False, rule=Cubature())
@estimator("srckf", "the cubature filter in square-root form", square_root=True, rule=Cubature())
@estimator("cdkf", "central-difference Kalman filter", square_root=False, rule=CentralDifference())
@estimator("srcdkf", "the central-difference filter in square-root form", square_root=True, rule=CentralDifference())
@dataclass(frozen=True)
class SigmaPointKalman(KalmanFilter):
    """Sigma points by a rule of `kalman.rules`; two for every parameter, coordinate of the state and torque.

    With `square_root` the points come from a root that is never squared. Claims and does not claim what the extended
    filter does; curvature (a Coulomb jump within the uncertainty of a velocity) is seen to second order. Parameters far
    out may make a point's mass matrix indefinite; the filter then stops, and says so.
    """

    rule: Rule = field(default_factory=Unscented)

    def predictor(self) -> Predictor:
        return BySigmaPoints(self.rule)
