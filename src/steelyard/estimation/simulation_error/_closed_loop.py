"""Simulates the motions of an experiment with its controller, for any parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.simulation_error.experiment import Experiment, Run
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.simulation.command import Schedule, command_of, schedule_of
from steelyard.simulation.controllers import Controller
from steelyard.simulation.plant import Plant, plant_of
from steelyard.simulation.sensitivities import Start, run_loop

Signal = Literal["q", "tau"]
# Positions beyond this limit count as diverged [rad, m].
_POSITION_LIMIT = 1e3
# Remaining part of an initial disturbance that counts as decayed.
_DECAYED = 1e-3
# Largest product of friction rate and step for accurate steps; Runge–Kutta 4 is stable up to 2.785.
_MAX_RATE_TIMES_STEP = 1.5


class ClosedLoopError(EstimationError):
    """The simulated closed loop diverged or does not match the log; the message says where, and names possible
    causes."""


@dataclass(frozen=True, eq=False)
class LoopRun:
    """One run with all data for its simulation: schedule of the torque, reference, and rows that count."""

    run: Run
    schedule: Schedule
    table: Array
    keep: slice


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """All runs with all data for their simulation.

    `mismatch` limits two relative differences: of the controller's torque, computed from the measured motion, and the
    measured torque; and of the simulated positions and the measured ones.
    """

    experiment: Experiment
    base: BaseParameters
    controller: Controller
    plant: Plant
    runs: tuple[LoopRun, ...]
    rows: Rows
    mismatch: float

    @classmethod
    def of(cls, experiment: Experiment, base: BaseParameters, theta: Array, mismatch: float) -> ClosedLoop:
        """Create the loop and check it against the log.

        Args:
            experiment: Motions, controller and references.
            base: Base parameters.
            theta: Full parameters, which define the steps that resolve the friction.
            mismatch: Largest relative difference between simulation and log.
        """
        if not isinstance(experiment, Experiment):
            raise EstimationError(
                "This estimator needs an Experiment (motions, controller and reference) instead of rows."
            )
        experiment.check()
        controller = experiment.closed_loop()
        experiment.terms.refuse_history("An estimator that simulates the closed loop")
        plant = plant_of(experiment.robot, experiment.terms, experiment.smoothing)
        runs = []
        for run in experiment.runs:
            _check_controller(experiment, run, controller, mismatch)
            control = experiment.control_period or run.period
            fastest = plant.friction_rate(run.motion.q[0], theta)
            step = min(experiment.step or control, control, _MAX_RATE_TIMES_STEP / fastest if fastest > 0.0 else np.inf)
            step = control / np.ceil(control / step - 1e-9)
            schedule = schedule_of(None, run.t[0] + run.period * np.arange(len(run.t)), step, control, 1)
            table = command_of(controller, run.reference, schedule, experiment.robot.dof).table
            keep = _rows_after_transient(plant, controller, schedule, table, run, theta)
            runs.append(LoopRun(run, schedule, table, keep))
        return cls(experiment, base, controller, plant, tuple(runs), _compiled_rows(plant, base.independent), mismatch)

    def motions(self, theta: Array, controller: Controller | None = None) -> list[Motion]:
        """Simulate the motions; their torque is the simulated one.

        The rows begin after the transient of the initial state, which is not known exactly.

        Args:
            theta: Full parameters.
            controller: Replaces the experiment's controller.
        """
        out = []
        for r in self.runs:
            start = _start(self.plant, self.controller, r.run, theta)
            simulated = run_loop(self.plant, controller or self.controller, r.schedule, r.table, start)
            q, dq, ddq, tau = (simulated[x][0] for x in ("q", "dq", "ddq", "tau"))
            self._check(r.run, theta, q, dq)
            out.append(replace(r.run.motion, q=q, dq=dq, ddq=ddq, tau=tau, keep=r.keep))
        return out

    def sensitivities(self, theta: Array, signal: Signal) -> list[tuple[Array, Array]]:
        """Compute a signal (samples, joints) of every run and its derivatives (base parameters, samples, joints).

        Args:
            theta: Full parameters.
            signal: "q" or "tau".
        """
        n = self.experiment.robot.dof
        out = []
        for r in self.runs:
            directions = self.plant.lumped_units(self.base.independent)
            start = _start(self.plant, self.controller, r.run, theta, directions)
            outputs = ("q", "dq") if signal == "q" else ("q", "dq", "tau")
            simulated = run_loop(self.plant, self.controller, r.schedule, r.table, start, outputs)
            self._check(r.run, theta, simulated["q"][0, :, :n], simulated["dq"][0, :, :n])
            out.append((simulated[signal][0, :, :n], simulated[signal][:, :, n:]))
        return out

    def regression(self, motions: Sequence[Motion]) -> RegressionData:
        """Create the rows of simulated `motions`, filtered like the measured ones."""
        return observe(self.plant.smooth, self.base, lambda: motions, self.experiment.mask, rows=self.rows)

    def _check(self, run: Run, theta: Array, q: Array, dq: Array) -> None:
        """Raise an error for simulations that diverged or differ too much from the log."""
        good = np.all(np.abs(q) < _POSITION_LIMIT, axis=1) & np.all(np.isfinite(dq), axis=1)
        if not good.all():
            row = int(np.argmin(good))
            masses = np.linalg.eigvalsh(self.plant.smooth.mass_matrix(run.motion.q[::50], theta))[..., 0]
            reason = (
                "the mass matrix is not positive definite with these parameters; use --physical (in Python: "
                "physical=True) or a richer motion"
                if masses.min() <= 0.0
                else "the closed loop is unstable: check the controller's gains, signs and period, or shorten `step`"
            )
            raise ClosedLoopError(f"The simulated robot diverged at t = {run.t[row]:.3g} s: {reason}.")
        error = np.sqrt(np.mean((q - run.motion.q) ** 2, axis=0))
        size = np.std(run.motion.q, axis=0)
        joint = int(np.argmax(error - self.mismatch * size))
        if error[joint] > self.mismatch * size[joint] and error[joint] > 1e-3 * size.max():
            raise ClosedLoopError(
                f"The simulated closed loop is far from the log: joint '{self.experiment.robot.joint_names[joint]}' "
                f"differs by {100.0 * error[joint] / max(size[joint], 1e-300):.0f} % of its motion (allowed: "
                f"{100.0 * self.mismatch:.0f} %). Check the controller's gains, the reference and its delay."
            )


def simulate_or_retreat(
    x: Array, safe: Array, motions: Callable[[Array], list[Motion]]
) -> tuple[Array, list[Motion]]:  # fmt: skip
    """Simulate motions; after a divergence, move the parameters half way back to the safe ones, repeatedly.

    Args:
        x: Parameters.
        safe: Safe parameters.
        motions: Simulates the motions.

    Returns:
        The parameters and their motions.
    """
    for _ in range(5):
        try:
            return x, motions(x)
        except ClosedLoopError:
            if np.array_equal(x, safe):
                raise
            x = 0.5 * (x + safe)
    return x, motions(x)


@lru_cache(16)
def _compiled_rows(plant: Plant, independent: tuple[int, ...]) -> Rows:
    """Cached, because every round and every fit needs the same rows."""
    rows = Rows(plant.smooth, independent)
    _ = rows.evaluator.kernel  # compiled now, since it is used a dozen times
    return rows


def block_means(x: Array, keep: slice) -> Array:
    """Average over the rows' periods along the first axis.

    Args:
        x: Samples.
        keep: Rows, with their period as step.
    """
    start, stop, step = keep.indices(len(x))
    count = (stop - start) // step
    used = x[start : start + count * step]
    return np.asarray(used.reshape(count, step, *x.shape[1:]).mean(axis=1)) if step > 1 else used


def _start(
    plant: Plant, controller: Controller, run: Run, theta: Array, directions: Array | None = None, push: float = 0.0
) -> Start:
    """Initial state of a run from the filtered motion; `push` adds to the speeds, relative to the fastest."""
    q, dq = run.motion.q[0], run.motion.dq[0] + push * np.max(np.abs(run.motion.dq), axis=0)
    states = _states(controller, run)[0]
    lumped = plant.lumped(theta[None])[0]
    if directions is None:
        return Start(q[None], dq[None], states[None], lumped[None])
    return Start.along(q, dq, states, lumped, directions)


def _rows_after_transient(
    plant: Plant, controller: Controller, schedule: Schedule, table: Array, run: Run, theta: Array
) -> slice:
    """Rows of a run after an initial disturbance has decayed; at most a quarter of the rows is removed."""
    q, pushed = (
        run_loop(plant, controller, schedule, table, _start(plant, controller, run, theta, push=p))["q"][0]
        for p in (0.0, 0.05)
    )
    keep, gap = run.motion.keep, np.abs(pushed - q)
    if not np.all(np.isfinite(gap)):
        return keep
    affected = np.any(gap > _DECAYED * np.maximum(np.max(gap, axis=0), 1e-300), axis=1)
    end_of_transient = len(affected) - int(np.argmax(affected[::-1])) if affected.any() else 0
    start, stop, step = keep.indices(len(run.t))
    first = max(start, min(end_of_transient, start + (stop - start) // 4))
    return slice(start + -(-(first - start) // step) * step, stop, step)


def _sampled_reference(run: Run) -> list[Array]:
    """Reference at the times of the samples."""
    assert run.reference is not None
    ratio = max(1, round((len(run.reference[0]) - 1) / max(len(run.t) - 1, 1)))
    return [part[::ratio][: len(run.t)] for part in run.reference]


def _states(controller: Controller, run: Run) -> Array:
    """States of the controller, shape (samples, states)."""
    m, (ref_q, ref_dq, _) = run.motion, _sampled_reference(run)
    return controller.states_along(run.period, m.q, m.dq, ref_q, ref_dq, m.tau)


def _check_controller(experiment: Experiment, run: Run, controller: Controller, mismatch: float) -> None:
    """Check that the controller gives the measured torque for the measured motion."""
    motion = run.motion
    ref_q, ref_dq, ref_ddq = (list(part.T) for part in _sampled_reference(run))
    memory = {"states": list(_states(controller, run).T)} if controller.states else {}
    torque = controller.law(list(motion.q.T), list(motion.dq.T), ref_q, ref_dq, ref_ddq, **memory)
    computed = np.column_stack(torque)
    error = motion.filter(computed - motion.tau)[motion.keep]
    size = np.sqrt(np.mean(motion.filter(motion.tau)[motion.keep] ** 2, axis=0))
    share = np.sqrt(np.mean(error**2, axis=0)) / np.maximum(size, 1e-3 * max(float(size.max()), 1e-300))
    share = np.where(experiment.robot.torque_used, share, 0.0)
    joint = int(np.argmax(share))
    if share[joint] > mismatch:
        raise ClosedLoopError(
            f"The controller does not explain the log: on joint '{experiment.robot.joint_names[joint]}' its torque "
            f"differs from the measured one by {100.0 * share[joint]:.0f} % (allowed: {100.0 * mismatch:.0f} %). "
            "Check gains, units, signs, the reference and additional torques of the robot (feed-forward, gravity)."
        )
