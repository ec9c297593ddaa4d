"""Preparation of a filter: least squares, tuning, substeps that resolve the friction; and its estimate at the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.stats import chi2

from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.kalman._noise import likeliest_noise, log_likelihood
from steelyard.estimation.kalman._transition import Method, Transition
from steelyard.estimation.kalman.consistency_tests import FALSE_ALARM, Consistency
from steelyard.estimation.kalman.tuning import FilterTuning, Tuning, compute_tuning, refine_noise
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.simulation_error._start import Start, starting_point
from steelyard.estimation.simulation_error.experiment import Experiment, Run
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.simulation.plant import Plant, plant_of

# Positions beyond this limit count as diverged [rad, m].
_POSITION_LIMIT = 1e3
# Samples between two health checks of a filter, and number of stored points of its history.
CHECK_INTERVAL = 64
_HISTORY_POINTS = 200
# Noise levels and parameters depend on each other: a second round halves the remaining error of short logs.
_NOISE_ROUNDS = 2


@dataclass(eq=False)
class FilterHistory:
    """The course of a filter: times, parameters, states and innovations, with health checks."""

    base: BaseParameters
    plant: Plant
    check_mass: bool
    times: list[float] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    consistency: Consistency = field(default_factory=Consistency)
    failure: str = ""
    checked: int = 0

    def add(self, t: float, beta: Array, x: Array, innovation: Array) -> None:
        self.times.append(t)
        self.betas.append(beta.copy())
        self.states.append(x.copy())
        self.consistency.innovations.append(innovation)

    def check(self) -> bool:
        """Check all samples since the last call; `failure` describes the first bad one."""
        betas, states = np.array(self.betas[self.checked :]), np.array(self.states[self.checked :])
        times = self.times[self.checked :]
        if not len(betas):
            return True
        n = states.shape[1] // 2
        bad = ~(np.all(np.isfinite(betas), axis=1) & np.all(np.abs(states[:, :n]) < _POSITION_LIMIT, axis=1))
        bad |= ~np.all(np.isfinite(states), axis=1)
        reason = "the state diverged"
        if not bad.any() and self.check_mass:
            bad = smallest_masses(self.base, self.plant, betas, states[:, :n]) <= 0.0
            reason = "the mass matrix lost its positive definiteness"
        if bad.any():
            first = int(np.argmax(bad))
            self.failure = f"{reason} at t = {times[first]:.4g} s"
            del self.times[self.checked + first :], self.betas[self.checked + first :]
            del self.states[self.checked + first :]
            return False
        self.checked = len(self.betas)
        return True

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """Some hundred points of the history: time [s] and parameters, at some also the eigenvalues of P."""
        every = max(1, len(self.times) // _HISTORY_POINTS)
        points: dict[int, dict[str, Any]] = {
            k: {"t": self.times[k], "beta": tuple(self.betas[k].tolist())} for k in range(0, len(self.times), every)
        }
        snapshots, last = self.consistency.snapshots.all, len(self.times) - 1
        duration = snapshots[-1][0] if snapshots else 0.0
        for elapsed, beta, covariance in snapshots:
            # The time of a snapshot counts through all runs; at a constant rate it is proportional to the sample
            # number.
            k = round(elapsed / duration * len(self.times)) - 1 if duration > 0.0 else -1
            if 0 <= k <= last:
                values = np.linalg.eigvalsh(0.5 * (covariance + covariance.T))[::-1]
                eigenvalues = tuple(np.maximum(values, 0.0).tolist())
                points[k] = {"t": self.times[k], "beta": tuple(beta.tolist()), "eigenvalues": eigenvalues}
        return tuple(points[k] for k in sorted(points))

    @property
    def cost(self) -> float:
        """Sum of squared normalised innovations."""
        return float(sum(innovation @ innovation for innovation in self.consistency.innovations))


def smallest_masses(base: BaseParameters, plant: Plant, betas: Array, q: Array) -> Array:
    """Compute the smallest eigenvalue of the mass matrix for each pair of parameters and positions.

    Args:
        base: Base parameters.
        plant: The robot.
        betas: Values of the base parameters, shape (samples, base parameters).
        q: Positions [rad, m], shape (samples, joints).
    """
    theta = np.zeros((len(betas), len(base.parameters)))
    theta[:, list(base.independent)] = betas
    return np.asarray(np.linalg.eigvalsh(plant.smooth.mass_matrix(q, theta))[:, 0])


# Steps resolve friction up to this product of its rate and their length; the second is the limit per sample.
_MAX_RATE_TIMES_STEP = 1.5
_MAX_SUBSTEPS = 50


@dataclass(frozen=True, eq=False)
class FilterSetup:
    """An experiment with all settings of a filter.

    Attributes:
        experiment: The motions.
        base: Base parameters to estimate.
        plant: The robot with smooth dry friction.
        start: Least squares on the same motions, for noise levels, and for the initial parameters if requested.
        from_log: Covariance of initial parameters from least squares.
        tuning: Noise, initial parameters and their covariance.
        method: Integration method.
        substeps: Steps per sample; None: enough for the friction.
        between: Torque between samples: "held" or "averaged" (constant), or "sampled" (linear).
    """

    experiment: Experiment
    base: BaseParameters
    plant: Plant
    start: Start
    from_log: Array
    tuning: FilterTuning
    method: Method
    substeps: int | None
    between: str

    def transition(self, run: Run) -> Transition:
        substeps = self.substeps
        if substeps is None:
            theta = np.zeros(len(self.base.parameters))
            theta[list(self.base.independent)] = self.start.beta
            fastest = self.plant.friction_rate(run.q[0], theta)
            substeps = int(np.clip(np.ceil(fastest * run.period / _MAX_RATE_TIMES_STEP), 1, _MAX_SUBSTEPS))
        return Transition(self.plant, self.plant.lumped_units(self.base.independent), run.period, substeps, self.method)

    def torques(self, run: Run) -> tuple[Array, Array]:
        """Return the torques at the start and at the end of every step of a `run`."""
        tau = np.ascontiguousarray(run.tau)
        if self.between == "averaged":
            return tau[1:], tau[1:]
        return tau[:-1], tau[:-1] if self.between == "held" else tau[1:]

    def estimate(self, fit: tuple[Array, Array], prior: Prior | None, path: FilterHistory, **details: Any) -> Estimate:
        """Create the estimate of a filter, with its result.

        DIVERGED: the filter stopped early, or the log is less likely with its result than with the initial values,
        which are then returned. OVERCONFIDENT: innovations or steps of the parameters are larger than expected; the
        covariance is widened by the ratio.

        Args:
            fit: Base parameters and covariance.
            prior: Prior for the full parameters.
            path: Course of the filter.
            details: More details.
        """
        base, free, dof = self.base, self.start.free, self.experiment.robot.dof
        samples = sum(len(run.t) - 1 for run in self.experiment.runs)
        gain = log_likelihood(self, fit[0]) - (initial := log_likelihood(self, self.tuning.beta))
        worse = not gain >= 0.0 and np.isfinite(initial)
        # If both explain the log equally, as near the truth, the likelihoods differ by chance only.
        unlikely = worse and not -2.0 * gain <= float(chi2.ppf(1.0 - FALSE_ALARM, base.rank))
        widened, why, ratios = path.consistency.verdict()
        result, notes = Result.CONVERGED, list(self.tuning.notes)
        if path.failure or unlikely:
            result = Result.DIVERGED
            reason = path.failure or "the log is less likely with its result than with the initial values"
            numbers = "the initial values" if worse or len(path.consistency.snapshots) < 2 else "the last valid ones"
            notes.append(
                f"The filter diverged: {reason}. The numbers are {numbers}; use a shorter step or rk4, more "
                "torque_noise, or better initial values."
            )
        elif why:
            result = Result.OVERCONFIDENT
            notes.append(
                f"The filter is overconfident: squares are larger than expected: {why}. Causes are model errors, too "
                "small noise levels, or initial values with larger errors than stated; the error bars were widened by "
                f"a factor of {widened**0.5:.2g}."
            )
        if worse and result is not Result.DIVERGED:
            notes.append("The initial values explain the log as well as the result of the filter; they are returned.")
        notes.append(self.tuning.start_note)
        if worse:
            fit, widened = (self.tuning.beta, self.tuning.covariance), 1.0
        beta, covariance = fit[0], 0.5 * widened * (fit[1] + fit[1].T)
        common = {
            "inflation": np.full(base.rank, widened), "rows": (samples,) * dof, "start": self.tuning.beta,
            "started_from": self.tuning.source, "start_std": np.sqrt(np.diag(self.tuning.covariance)),
            "degrees_of_freedom": np.full(base.rank, max(samples * dof - base.rank, 1)),
            "position_noise": self.tuning.positions, "torque_noise": self.tuning.step.torque,
            "consistency": ratios["innovations"]["ratio"] if ratios else np.nan, "consistency_tests": ratios,
            "log_likelihood_gain": gain,
        }  # fmt: skip
        return Estimate(
            base, beta, covariance, nearest_theta(base, beta, prior),
            free.problem.residual_std(beta, free.triangle, free.weights), path.cost, result,
            history=path.history, notes=tuple(notes), details={**common, **details},
        )  # fmt: skip


def prepare_filter(
    experiment: Experiment, base: BaseParameters, prior: Prior | None, settings: Tuning, method: Method,
    substeps: int | None, torque: Literal["auto", "held", "linear"],
) -> FilterSetup:  # fmt: skip
    """Check the data, compute the tuning and return the setup of a filter.

    Args:
        experiment: The motions.
        base: Base parameters to estimate.
        prior: Prior knowledge.
        settings: Settings of the tuning.
        method: Integration method.
        substeps: Steps per sample; None: enough for the friction.
        torque: Torque between samples.

    Raises:
        EstimationError: If the data are not sufficient for a filter.
    """
    _check(experiment, base, method, substeps, torque)
    experiment.terms.refuse_history("A filter over state and parameters")
    plant = plant_of(experiment.robot, experiment.terms, experiment.smoothing)
    # Least squares uses the same smooth friction as the filter.
    start = starting_point(replace(experiment, dynamics=plant.smooth), base, prior)
    numbers, from_log = compute_tuning(settings, experiment, base, prior, start, plant)
    between = {"held": "held", "linear": "sampled", "auto": experiment.torque_between}[torque]
    if between == "auto":
        between = "sampled" if experiment.controller is None else "held"
    setup = FilterSetup(experiment, base, plant, start, from_log, numbers, method, substeps, between)
    if settings.likeliest and not settings.has_all_noise:
        for _ in range(_NOISE_ROUNDS):
            setup = replace(setup, tuning=refine_noise(settings, experiment, setup.tuning, likeliest_noise(setup)))
            if setup.tuning.notes:
                break
    return setup


def _check(experiment: Experiment, base: BaseParameters, method: str, substeps: int | None, torque: str) -> None:
    if not isinstance(experiment, Experiment):
        raise EstimationError("A filter simulates the robot: give it an Experiment (dynamics and motions), not rows.")
    if method not in ("rk4", "euler"):
        raise EstimationError(f'method is "rk4" or "euler", not "{method}".')
    if torque not in ("auto", "held", "linear"):
        raise EstimationError(f'torque is "auto", "held" or "linear", not "{torque}".')
    if substeps is not None and substeps < 1:
        raise EstimationError(f"substeps is {substeps}; at least one step per sample is needed.")
    experiment.check()
    names = [name for name, used in zip(experiment.robot.joint_names, experiment.robot.torque_used, strict=True)
             if not used]  # fmt: skip
    if names:
        raise EstimationError(
            f"A filter needs the torque of every joint; the one of '{names[0]}' is not used. Lock the joint, or use an "
            "estimator that works on rows, such as wls."
        )
    samples, need = sum(len(run.t) - 1 for run in experiment.runs), -(-base.rank // experiment.robot.dof) + 1
    if samples < need or any(len(run.t) < 2 for run in experiment.runs):
        raise EstimationError(
            f"There are too few samples to start a filter: {samples} steps for {base.rank} parameters; at least {need} "
            "are needed, and two samples in every run."
        )
