"""What every filter needs before its first step: least squares, tuning, and a step that can follow the friction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.stats import chi2

from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.kalman._noise import likeliest_noise, log_likelihood
from steelyard.estimation.kalman._transition import Method, Transition
from steelyard.estimation.kalman.consistency import FALSE_ALARM, Consistency
from steelyard.estimation.kalman.tuning import Tuned, Tuning, refined, tuned
from steelyard.estimation.linear._free import nearest_theta
from steelyard.estimation.simulated._start import Start, starting_point
from steelyard.estimation.simulated.experiment import Experiment, Run
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.simulation.plant import Plant, plant_of

# A position beyond this (rad, m) has run away.
_RUNAWAY = 1e3
# Samples between two looks at the health of a filter, and points of the path that are kept.
LOOK = 64
_KEPT = 200
# Noise levels need parameters and parameters noise levels: the second round halves what is left of short logs' errors.
_TUNINGS = 2


@dataclass(eq=False)
class FilterPath:
    """Samples since the last check, and what is kept of the others: time, parameters, innovations."""

    base: BaseParameters
    plant: Plant
    check_mass: bool
    times: list[float] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    consistency: Consistency = field(default_factory=Consistency)
    trouble: str = ""
    checked: int = 0

    def add(self, t: float, beta: Array, x: Array, miss: Array) -> None:
        self.times.append(t)
        self.betas.append(beta.copy())
        self.states.append(x.copy())
        self.consistency.innovations.append(miss)

    def healthy(self) -> bool:
        """Checks all samples since the last call; the first bad one is named in `trouble`."""
        betas, states = np.array(self.betas[self.checked :]), np.array(self.states[self.checked :])
        times = self.times[self.checked :]
        if not len(betas):
            return True
        n = states.shape[1] // 2
        wild = ~(np.all(np.isfinite(betas), axis=1) & np.all(np.abs(states[:, :n]) < _RUNAWAY, axis=1))
        wild |= ~np.all(np.isfinite(states), axis=1)
        reason = "the state ran away"
        if not wild.any() and self.check_mass:
            wild = smallest_masses(self.base, self.plant, betas, states[:, :n]) <= 0.0
            reason = "the mass matrix lost its positive definiteness"
        if wild.any():
            first = int(np.argmax(wild))
            self.trouble = f"{reason} at t = {times[first]:.4g} s"
            del self.times[self.checked + first :], self.betas[self.checked + first :]
            del self.states[self.checked + first :]
            return False
        self.checked = len(self.betas)
        return True

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """Points of the path, some hundred at most: time, s, and parameters; at some the eigenvalues of P, too."""
        every = max(1, len(self.times) // _KEPT)
        points: dict[int, dict[str, Any]] = {
            k: {"t": self.times[k], "beta": tuple(self.betas[k].tolist())} for k in range(0, len(self.times), every)
        }
        kept, last = self.consistency.moments.all, len(self.times) - 1
        whole = kept[-1][0] if kept else 0.0
        for elapsed, beta, covariance in kept:
            # Moments count the time of all runs together; samples of one rate lie at equal parts of it.
            k = round(elapsed / whole * len(self.times)) - 1 if whole > 0.0 else -1
            if 0 <= k <= last:
                values = np.linalg.eigvalsh(0.5 * (covariance + covariance.T))[::-1]
                told = tuple(np.maximum(values, 0.0).tolist())
                points[k] = {"t": self.times[k], "beta": tuple(beta.tolist()), "eigenvalues": told}
        return tuple(points[k] for k in sorted(points))

    @property
    def cost(self) -> float:
        """The sum of squared normalised innovations."""
        return float(sum(miss @ miss for miss in self.consistency.innovations))


def smallest_masses(base: BaseParameters, plant: Plant, betas: Array, q: Array) -> Array:
    """The smallest eigenvalue of the mass matrix for each pair of parameters and positions."""
    theta = np.zeros((len(betas), len(base.parameters)))
    theta[:, list(base.independent)] = betas
    return np.asarray(np.linalg.eigvalsh(plant.smooth.mass_matrix(q, theta))[:, 0])


# Steps follow friction well up to this rate times their length, and never more of them than this per sample.
_EASY = 1.5
_MOST_SUBSTEPS = 50


@dataclass(frozen=True, eq=False)
class Ready:
    """An experiment with everything tuned.

    Attributes:
        experiment: the motions.
        base: the parameters that are looked for.
        plant: the robot, its dry friction smooth.
        start: least squares on the same motions; noise levels come from it, parameters if `Tuning.start` says so.
        from_log: the covariance that a start from least squares has.
        tuned: noise, first parameters and their covariance.
        method: of integration.
        substeps: steps per sample; None: as many as the friction needs.
        between: how the torque runs over a sample: "held" or "averaged" (constant), or "sampled" (linear).
    """

    experiment: Experiment
    base: BaseParameters
    plant: Plant
    start: Start
    from_log: Array
    tuned: Tuned
    method: Method
    substeps: int | None
    between: str

    def transition(self, run: Run) -> Transition:
        substeps = self.substeps
        if substeps is None:
            theta = np.zeros(len(self.base.parameters))
            theta[list(self.base.independent)] = self.start.beta
            fastest = self.plant.friction_rate(run.q[0], theta)
            substeps = int(np.clip(np.ceil(fastest * run.period / _EASY), 1, _MOST_SUBSTEPS))
        return Transition(self.plant, self.plant.lumped_units(self.base.independent), run.period, substeps, self.method)

    def torques(self, run: Run) -> tuple[Array, Array]:
        """The torque at the start and at the end of every step."""
        tau = np.ascontiguousarray(run.tau)
        if self.between == "averaged":
            return tau[1:], tau[1:]
        return tau[:-1], tau[:-1] if self.between == "held" else tau[1:]

    def estimate(self, found: tuple[Array, Array], prior: Prior | None, path: FilterPath, **details: Any) -> Estimate:
        """What a filter `found`, with how far it is to be believed.

        It diverged where it stopped on its way, or where the log is less likely under what it found than under what
        it began with: then that is given back. It is overconfident where its innovations or the steps of its
        parameters are larger than it expected; the covariance is widened by as much.

        Args:
            found: base parameters and covariance.
            prior: decides the full parameters that have them.
            path: the way there.
            details: what else there is to say.
        """
        base, free, dof = self.base, self.start.free, self.experiment.robot.dof
        samples = sum(len(run.t) - 1 for run in self.experiment.runs)
        gain = log_likelihood(self, found[0]) - (began := log_likelihood(self, self.tuned.beta))
        worse = not gain >= 0.0 and np.isfinite(began)
        # Where both explain the log alike, as near the truth, the likelihoods differ by no more than chance.
        lost = worse and not -2.0 * gain <= float(chi2.ppf(1.0 - FALSE_ALARM, base.rank))
        widened, why, ratios = path.consistency.verdict()
        result, notes = Result.CONVERGED, list(self.tuned.notes)
        if path.trouble or lost:
            result = Result.DIVERGED
            reason = path.trouble or "the log is less likely under what it found than under its start"
            numbers = "those of its start" if worse or len(path.consistency.moments) < 2 else "its last healthy ones"
            notes.append(
                f"The filter diverged: {reason}. The numbers are {numbers}; use a shorter step or rk4, more "
                "torque_noise, or a better start."
            )
        elif why:
            result = Result.OVERCONFIDENT
            notes.append(
                f"The filter is more certain than it should be: squares are larger than it expected: {why}. The model "
                f"misses something, noise is set too small, or the start was further off than its errors say; error "
                f"bars were widened by {widened**0.5:.2g}."
            )
        if worse and result is not Result.DIVERGED:
            notes.append("The start explains the log as well as what the filter found; it is given back.")
        notes.append(self.tuned.started)
        if worse:
            found, widened = (self.tuned.beta, self.tuned.covariance), 1.0
        beta, covariance = found[0], 0.5 * widened * (found[1] + found[1].T)
        common = {
            "inflation": np.full(base.rank, widened), "rows": (samples,) * dof, "start": self.tuned.beta,
            "started_from": self.tuned.source, "start_std": np.sqrt(np.diag(self.tuned.covariance)),
            "degrees_of_freedom": np.full(base.rank, max(samples * dof - base.rank, 1)),
            "position_noise": self.tuned.positions, "torque_noise": self.tuned.step.torque,
            "consistency": ratios["innovations"]["ratio"] if ratios else np.nan, "consistency_tests": ratios,
            "log_likelihood_gain": gain,
        }  # fmt: skip
        return Estimate(
            base, beta, covariance, nearest_theta(base, beta, prior),
            free.problem.residual_std(beta, free.joined, free.weights), path.cost, result,
            history=path.history, notes=tuple(notes), details={**common, **details},
        )  # fmt: skip


def ready(
    experiment: Experiment, base: BaseParameters, prior: Prior | None, settings: Tuning, method: Method,
    substeps: int | None, torque: Literal["auto", "held", "linear"],
) -> Ready:  # fmt: skip
    """Checked and tuned; refuses what no filter can start from."""
    _check(experiment, base, method, substeps, torque)
    experiment.terms.refuse_history("A filter over state and parameters")
    plant = plant_of(experiment.robot, experiment.terms, experiment.smoothing)
    # Least squares sees the same smooth friction as the filter.
    start = starting_point(replace(experiment, dynamics=plant.smooth), base, prior)
    numbers, from_log = tuned(settings, experiment, base, prior, start, plant)
    between = {"held": "held", "linear": "sampled", "auto": experiment.torque_between}[torque]
    if between == "auto":
        between = "sampled" if experiment.controller is None else "held"
    about = Ready(experiment, base, plant, start, from_log, numbers, method, substeps, between)
    if settings.likeliest and not settings.says_all_noise:
        for _ in range(_TUNINGS):
            about = replace(about, tuned=refined(settings, experiment, about.tuned, likeliest_noise(about)))
            if about.tuned.notes:
                break
    return about


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
            f"A filter needs the torque of every joint; that of '{names[0]}' is not used. Lock the joint, or use an "
            "estimator that works on rows, such as wls."
        )
    samples, need = sum(len(run.t) - 1 for run in experiment.runs), -(-base.rank // experiment.robot.dof) + 1
    if samples < need or any(len(run.t) < 2 for run in experiment.runs):
        raise EstimationError(
            f"There are too few samples to start a filter: {samples} steps for {base.rank} parameters; at least {need} "
            "are needed, and two samples in every run."
        )
