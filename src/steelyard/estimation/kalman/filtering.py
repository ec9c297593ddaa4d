"""Gaussian filters: their base class with the pass over all runs, the extended and the sigma-point filters."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.kalman._belief import Belief, CovarianceBelief, NotPositiveDefiniteError, SquareRootBelief
from steelyard.estimation.kalman._prepare_filter import CHECK_INTERVAL, FilterHistory, FilterSetup, prepare_filter
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
from steelyard.estimation.simulation_error.experiment import Experiment, Run
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters

# Limit of the memory for smoothing, which stores two covariances per sample.
_MAX_BYTES = 2_000_000_000


@dataclass(eq=False)
class _Trail:
    """Data of one run for the backward pass of Rauch, Tung and Striebel (1965): before and after every step."""

    samples: int
    filtered: list[tuple[Array, Array]] = field(default_factory=list)
    predicted: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def check(self, width: int) -> None:
        need = 16 * width**2 * self.samples
        if need > _MAX_BYTES:
            raise EstimationError(
                f"Smoothing {self.samples} samples of {width} unknowns needs {need / 1e9:.1f} GB; cut the log into "
                f"shorter runs or omit `smooth` (parameters without drift do not need it)."
            )

    def smooth(self) -> tuple[Array, Array]:
        """Smoothed parameters and states (samples, …) with their standard deviations."""
        z, P = self.filtered[-1]
        means, stds = [z], [np.sqrt(np.maximum(np.diag(P), 0.0))]
        p = len(z) - len(self.predicted[0][2]) if self.predicted else 0
        for (before, Pf), (after, Pp, slope) in zip(self.filtered[-2::-1], self.predicted[::-1], strict=True):
            scale = np.sqrt(np.diag(Pp))  # scaling makes the factorisation well conditioned
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

    All runs share the parameters; every run has its own initial state. The estimate is the filter's at the end of the
    last run.

    CONVERGED: normalised innovations, their sums and the steps of the parameters are as large as expected
    (`kalman.consistency`). OVERCONFIDENT: they are larger; the note says which, and the covariance was widened.
    DIVERGED: the filter stopped (diverging state, mass matrix or covariance not positive definite), or the log is less
    likely at its end than at its start; the result is then the last valid one, or the initial values if these are more
    likely.

    Attributes:
        tuning: Initial values and noise.
        method: "rk4" or "euler".
        substeps: Steps per sample; None: enough for the slope of the friction.
        torque: "held" over a sample, "linear" to the next, "auto": as in the experiment's `torque_between`, else held
            if it has a controller.
        smooth: Whether smoothed states of all runs are added to the details.
        on_loss: "continue" ignores the mass matrix and runs as long as numbers are finite.
        square_root: Whether the covariance is stored as a triangular root.
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
        """Return the prediction of a step."""

    def fit(self, experiment: Experiment, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        with one_blas_thread():
            setup = prepare_filter(experiment, base, prior, self.tuning, self.method, self.substeps, self.torque)
            return self.run(setup).estimate(prior)

    def run(self, setup: FilterSetup) -> _FilterPass:
        """Run the filter over the experiment of a `setup`."""
        return _FilterPass(self, setup, self.predictor())


class _FilterPass:
    """One pass over an experiment."""

    def __init__(self, settings: KalmanFilter, setup: FilterSetup, predict: Predictor) -> None:
        self.settings, self.setup, self.predict = settings, setup, predict
        self.path = FilterHistory(setup.base, setup.plant, settings.on_loss == "stop")
        self.trails: list[_Trail] = []
        kind: type[Belief] = SquareRootBelief if settings.square_root else CovarianceBelief
        state = np.zeros(2 * setup.experiment.robot.dof)
        first = setup.tuning
        self.belief = kind(first.beta, first.covariance, state, first.first_state_std())
        self.last: tuple[Array, Array] = (first.beta, first.covariance)
        self.path.consistency.drift = first.drift**2
        self.path.consistency.add_snapshot(0.0, *self.last)
        self.elapsed = 0.0

        self._run_all()

    def _run_all(self) -> None:
        try:
            with np.errstate(all="ignore"):  # divergence is detected by the checks
                all(self._run(run) for run in self.setup.experiment.runs)  # up to the first that fails
        except NotPositiveDefiniteError as error:
            if self.path.check():
                when = f"after t = {self.path.times[-1]:.4g} s" if self.path.times else "at the first sample"
                self.path.failure = f"{str(error)[0].lower()}{str(error)[1:-1]} {when}"

    def _run(self, run: Run) -> bool:
        """Filter a run; returns whether it succeeded."""
        setup, belief = self.setup, self.belief
        transition = setup.transition(run)
        starts, ends = setup.torques(run)
        belief.restart(np.concatenate([run.q[0], run.motion.dq[0]]), setup.tuning.first_state_std())
        trail = self._trail(run)
        drift = setup.tuning.drift**2 * run.period
        for k in range(1, len(run.t)):
            slope = self.predict(belief, transition, starts[k - 1], ends[k - 1], setup.tuning.step, trail is not None)
            if drift.any():
                belief.drift(drift)
            if trail is not None:
                assert slope is not None
                trail.predicted.append((belief.z.copy(), belief.covariance.copy(), slope))
            innovation = belief.measure(run.q[k], setup.tuning.positions)
            self.path.add(float(run.t[k]), belief.beta, belief.x, innovation)
            if trail is not None:
                trail.filtered.append((belief.z.copy(), belief.covariance.copy()))
            if k % CHECK_INTERVAL == 0 or k == len(run.t) - 1:
                if not self.path.check():
                    return False
                self.elapsed += run.period * (k % CHECK_INTERVAL or CHECK_INTERVAL)
                self._take_snapshot()
        return True

    def _take_snapshot(self) -> None:
        p = self.belief.p
        self.last = self.belief.beta.copy(), self.belief.covariance[:p, :p].copy()
        self.path.consistency.add_snapshot(self.elapsed, *self.last)

    def _trail(self, run: Run) -> _Trail | None:
        if not self.settings.smooth:
            return None
        trail = _Trail(len(run.t))
        trail.check(len(self.belief.z))
        trail.filtered.append((self.belief.z.copy(), self.belief.covariance.copy()))
        self.trails.append(trail)
        return trail

    def estimate(self, prior: Prior | None) -> Estimate:
        smoothed = tuple(trail.smooth() for trail in self.trails) if not self.path.failure else ()
        details = {"smoothed": smoothed} if smoothed else {}
        return self.setup.estimate(self.last, prior, self.path, **details)


@estimator("ekf", "extended Kalman filter over motion and parameters", square_root=False)
@estimator("srekf", "the extended filter in square-root form", square_root=True)
@dataclass(frozen=True)
class ExtendedKalman(KalmanFilter):
    """The joint extended Kalman filter, with exact derivatives of the Runge–Kutta (or Euler) step.

    Properties: parameters of a well-excited, well-tuned run are accurate to a few standard errors. The variance is not
    minimal (it is linearised at its own estimate), and bad initial values may cause divergence, which is reported.

    Attributes:
        passes: Number of passes over the log from the same initial values. Later ones use derivatives at the
            parameters of the one before, so that the curvature at bad initial values does not affect the error bars.
    """

    passes: int = 2

    def predictor(self) -> Predictor:
        return ByDerivatives()

    def run(self, setup: FilterSetup) -> _FilterPass:
        """Run all passes and return the last successful one."""
        best = super().run(setup)
        for _ in range(1, self.passes):
            if best.path.failure:
                break
            next_pass = _FilterPass(self, setup, ByDerivatives(best.last[0]))
            if next_pass.path.failure:
                break
            best = next_pass
        return best


@estimator("ukf", "unscented Kalman filter", square_root=False, rule=Unscented())
@estimator("srukf", "the unscented filter in square-root form", square_root=True, rule=Unscented())
@estimator("ckf", "cubature Kalman filter", square_root=False, rule=Cubature())
@estimator("srckf", "the cubature filter in square-root form", square_root=True, rule=Cubature())
@estimator("cdkf", "central-difference Kalman filter", square_root=False, rule=CentralDifference())
@estimator("srcdkf", "the central-difference filter in square-root form", square_root=True, rule=CentralDifference())
@dataclass(frozen=True)
class SigmaPointKalman(KalmanFilter):
    """Sigma points by a rule of `kalman.rules`; two for every parameter, coordinate of the state and torque.

    With `square_root` the points come from a root that is never squared. Properties as for the extended filter;
    curvature (a Coulomb jump within the uncertainty of a velocity) is included to second order. Extreme parameters may
    make the mass matrix of a point indefinite; the filter then stops and reports it.

    Attributes:
        rule: Rule of the sigma points.
    """

    rule: Rule = field(default_factory=Unscented)

    def predictor(self) -> Predictor:
        return BySigmaPoints(self.rule)
