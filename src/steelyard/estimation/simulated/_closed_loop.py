"""`ClosedLoop`: an experiment's motions simulated again, with its controller, for any parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.simulated.experiment import Experiment, Run
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
# A position beyond this (rad, m) has run away.
_RUNAWAY = 1e3
# A push at the start is forgotten when this part of it is left.
_FORGOTTEN = 1e-3
# Fixed steps follow friction well up to this rate times the step; Runge–Kutta 4 is stable up to 2.785.
_EASY = 1.5


class ClosedLoopError(EstimationError):
    """The simulated closed loop ran away or has little to do with the log: says where, and what may be wrong."""


@dataclass(frozen=True, eq=False)
class LoopRun:
    """One run, ready to be simulated: when its torque changes, its reference, and the rows that count."""

    run: Run
    schedule: Schedule
    table: Array
    keep: slice


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """All runs, ready to be simulated; `mismatch` is how far they may be from the log.

    Both comparisons are relative: the controller's torque, computed from the measured motion, against the measured
    torque; and the simulated positions against the measured ones.
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
        """Checked against the log; `theta` tells how short steps must be for the friction."""
        if not isinstance(experiment, Experiment):
            raise EstimationError(
                "This estimator simulates the robot: give it an Experiment (motions, controller, reference), not rows."
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
            step = min(experiment.step or control, control, _EASY / fastest if fastest > 0.0 else np.inf)
            step = control / np.ceil(control / step - 1e-9)
            schedule = schedule_of(None, run.t[0] + run.period * np.arange(len(run.t)), step, control, 1)
            table = command_of(controller, run.reference, schedule, experiment.robot.dof).table
            keep = _remembered(plant, controller, schedule, table, run, theta)
            runs.append(LoopRun(run, schedule, table, keep))
        return cls(experiment, base, controller, plant, tuple(runs), _compiled_rows(plant, base.independent), mismatch)

    def motions(self, theta: Array, controller: Controller | None = None) -> list[Motion]:
        """The motions as simulated with these parameters; the torque beside them is the simulated one.

        Their rows begin where the loop has forgotten how it started, which is not known exactly.
        """
        out = []
        for r in self.runs:
            start = _start(self.plant, self.controller, r.run, theta)
            found = run_loop(self.plant, controller or self.controller, r.schedule, r.table, start)
            q, dq, ddq, tau = (found[x][0] for x in ("q", "dq", "ddq", "tau"))
            self._check(r.run, theta, q, dq)
            out.append(replace(r.run.motion, q=q, dq=dq, ddq=ddq, tau=tau, keep=r.keep))
        return out

    def sensitivities(self, theta: Array, signal: Signal) -> list[tuple[Array, Array]]:
        """Of every run the signal `(samples, joints)` and its derivatives `(base parameters, samples, joints)`."""
        n = self.experiment.robot.dof
        out = []
        for r in self.runs:
            directions = self.plant.lumped_units(self.base.independent)
            start = _start(self.plant, self.controller, r.run, theta, directions)
            wanted = ("q", "dq") if signal == "q" else ("q", "dq", "tau")
            found = run_loop(self.plant, self.controller, r.schedule, r.table, start, wanted)
            self._check(r.run, theta, found["q"][0, :, :n], found["dq"][0, :, :n])
            out.append((found[signal][0, :, :n], found[signal][:, :, n:]))
        return out

    def regression(self, motions: Sequence[Motion]) -> RegressionData:
        """The rows of simulated motions, filtered as the measured ones are."""
        return observe(self.plant.smooth, self.base, lambda: motions, self.experiment.mask, rows=self.rows)

    def _check(self, run: Run, theta: Array, q: Array, dq: Array) -> None:
        """Refuse what ran away or is far from the log."""
        good = np.all(np.abs(q) < _RUNAWAY, axis=1) & np.all(np.isfinite(dq), axis=1)
        if not good.all():
            row = int(np.argmin(good))
            masses = np.linalg.eigvalsh(self.plant.smooth.mass_matrix(run.motion.q[::50], theta))[..., 0]
            why = (
                "the mass matrix is not positive definite with these parameters; use --physical (in Python: "
                "physical=True) or a richer motion"
                if masses.min() <= 0.0
                else "the closed loop is unstable: check the controller's gains, signs and period, or shorten `step`"
            )
            raise ClosedLoopError(f"The simulated robot ran away by t = {run.t[row]:.3g} s: {why}.")
        error = np.sqrt(np.mean((q - run.motion.q) ** 2, axis=0))
        size = np.std(run.motion.q, axis=0)
        joint = int(np.argmax(error - self.mismatch * size))
        if error[joint] > self.mismatch * size[joint] and error[joint] > 1e-3 * size.max():
            raise ClosedLoopError(
                f"The simulated closed loop is far from the log: joint '{self.experiment.robot.joint_names[joint]}' "
                f"differs by {100.0 * error[joint] / max(size[joint], 1e-300):.0f} % of its motion (allowed: "
                f"{100.0 * self.mismatch:.0f} %). Check the controller's gains, the reference and its delay."
            )


def simulated_near(
    x: Array, safe: Array, motions: Callable[[Array], list[Motion]]
) -> tuple[Array, list[Motion]]:  # fmt: skip
    """Parameters and what `motions` makes of them; half way back to those that are safe until no loop runs away."""
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
    """The last few are kept, since every round and every fit needs the same."""
    rows = Rows(plant.smooth, independent)
    _ = rows.evaluator.kernel  # compiled at once: it will be used a dozen times
    return rows


def block_means(x: Array, keep: slice) -> Array:
    """Means over the rows' periods, along the first axis: both sides of an equation may be averaged alike."""
    start, stop, step = keep.indices(len(x))
    count = (stop - start) // step
    used = x[start : start + count * step]
    return np.asarray(used.reshape(count, step, *x.shape[1:]).mean(axis=1)) if step > 1 else used


def _start(
    plant: Plant, controller: Controller, run: Run, theta: Array, directions: Array | None = None, push: float = 0.0
) -> Start:
    """Where the run began, as far as the filtered motion tells; `push` adds to the speeds, relative to the fastest."""
    q, dq = run.motion.q[0], run.motion.dq[0] + push * np.max(np.abs(run.motion.dq), axis=0)
    states = _states(controller, run)[0]
    lumped = plant.lumped(theta[None])[0]
    if directions is None:
        return Start(q[None], dq[None], states[None], lumped[None])
    return Start.along(q, dq, states, lumped, directions)


def _remembered(
    plant: Plant, controller: Controller, schedule: Schedule, table: Array, run: Run, theta: Array
) -> slice:
    """The rows of a run from when on a push at the start is forgotten; at most a quarter of them is given up."""
    q, pushed = (
        run_loop(plant, controller, schedule, table, _start(plant, controller, run, theta, push=p))["q"][0]
        for p in (0.0, 0.05)
    )
    keep, gap = run.motion.keep, np.abs(pushed - q)
    if not np.all(np.isfinite(gap)):
        return keep
    still = np.any(gap > _FORGOTTEN * np.maximum(np.max(gap, axis=0), 1e-300), axis=1)
    settled = len(still) - int(np.argmax(still[::-1])) if still.any() else 0
    start, stop, step = keep.indices(len(run.t))
    first = max(start, min(settled, start + (stop - start) // 4))
    return slice(start + -(-(first - start) // step) * step, stop, step)


def _told(run: Run) -> list[Array]:
    """The reference at the samples' times."""
    assert run.reference is not None
    ratio = max(1, round((len(run.reference[0]) - 1) / max(len(run.t) - 1, 1)))
    return [part[::ratio][: len(run.t)] for part in run.reference]


def _states(controller: Controller, run: Run) -> Array:
    """What the controller must have remembered, `(samples, states)`."""
    m, (ref_q, ref_dq, _) = run.motion, _told(run)
    return controller.states_along(run.period, m.q, m.dq, ref_q, ref_dq, m.tau)


def _check_controller(experiment: Experiment, run: Run, controller: Controller, mismatch: float) -> None:
    """Whether the controller, fed with the measured motion, gives the measured torque."""
    motion = run.motion
    ref_q, ref_dq, ref_ddq = (list(part.T) for part in _told(run))
    memory = {"states": list(_states(controller, run).T)} if controller.states else {}
    torque = controller.law(list(motion.q.T), list(motion.dq.T), ref_q, ref_dq, ref_ddq, **memory)
    wanted = np.column_stack(torque)
    error = motion.filter(wanted - motion.tau)[motion.keep]
    size = np.sqrt(np.mean(motion.filter(motion.tau)[motion.keep] ** 2, axis=0))
    share = np.sqrt(np.mean(error**2, axis=0)) / np.maximum(size, 1e-3 * max(float(size.max()), 1e-300))
    share = np.where(experiment.robot.torque_used, share, 0.0)
    joint = int(np.argmax(share))
    if share[joint] > mismatch:
        raise ClosedLoopError(
            f"The controller does not explain the log: on joint '{experiment.robot.joint_names[joint]}' its torque "
            f"differs from the measured one by {100.0 * share[joint]:.0f} % (allowed: {100.0 * mismatch:.0f} %). "
            "Check gains, units, signs, the reference and what else the robot adds (feed-forward, gravity)."
        )
