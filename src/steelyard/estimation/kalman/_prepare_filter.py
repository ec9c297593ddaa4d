"""What every filter needs before its first step: least squares, tuning, and a step that can follow the friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.kalman._transition import Method, Transition
from steelyard.estimation.kalman.tuning import Tuned, Tuning, tuned
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


@dataclass(eq=False)
class FilterPath:
    """Samples since the last check, and what is kept of the others: time, parameters, squared innovations."""

    base: BaseParameters
    plant: Plant
    check_mass: bool
    times: list[float] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)
    states: list[Array] = field(default_factory=list)
    misses: float = 0.0
    measured: int = 0
    trouble: str = ""
    checked: int = 0

    def add(self, t: float, beta: Array, x: Array, miss: float) -> None:
        self.times.append(t)
        self.betas.append(beta.copy())
        self.states.append(x.copy())
        self.misses += miss
        self.measured += len(x) // 2

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
        """Points of the path, some hundred at most: time, s, and parameters."""
        every = max(1, len(self.times) // _KEPT)
        pairs = zip(self.times[::every], self.betas[::every], strict=True)
        return tuple({"t": t, "beta": tuple(beta.tolist())} for t, beta in pairs)

    @property
    def consistency(self) -> float:
        """The mean squared innovation over what the filter expected: 1 where it knows how good it is.

        (A filter's consistency, as the field calls it; whether a robot is possible is another question.)
        """
        return self.misses / max(self.measured, 1)


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
        start: least squares on the same motions.
        tuned: noise and first covariance.
        method: of integration.
        substeps: steps per sample; None: as many as the friction needs.
        held: whether the torque is held over a sample.
    """

    experiment: Experiment
    base: BaseParameters
    plant: Plant
    start: Start
    tuned: Tuned
    method: Method
    substeps: int | None
    held: bool

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
        return tau[:-1], tau[:-1] if self.held else tau[1:]

    def estimate(
        self, found: tuple[Array, Array], prior: Prior | None, path: FilterPath, notes: Sequence[str], inflation: float,
        **details: Any,
    ) -> Estimate:  # fmt: skip
        """What a filter `found` (β and its covariance) on its `path`; `inflation` of the covariance is told, not done.

        Args:
            found: base parameters and covariance.
            prior: decides the full parameters that have them.
            path: the way there.
            notes, details: what else there is to say.
            inflation: by how much the covariance was widened.
        """
        base, free, dof = self.base, self.start.free, self.experiment.robot.dof
        samples = sum(len(run.t) - 1 for run in self.experiment.runs)
        common = {
            "inflation": np.full(base.rank, inflation), "rows": (samples,) * dof, "start": self.tuned.beta,
            "degrees_of_freedom": np.full(base.rank, max(samples * dof - base.rank, 1)),
            "position_noise": self.tuned.positions, "torque_noise": self.tuned.step.torque,
        }  # fmt: skip
        return Estimate(
            base, *found, nearest_theta(base, found[0], prior),
            free.problem.residual_std(found[0], free.joined, free.weights), path.misses,
            Result.NOT_CONVERGED if path.trouble else Result.CONVERGED,
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
    numbers = tuned(settings, experiment, base, prior, start, plant)
    held = torque == "held" or (torque == "auto" and experiment.controller is not None)
    return Ready(experiment, base, plant, start, numbers, method, substeps, held)


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
