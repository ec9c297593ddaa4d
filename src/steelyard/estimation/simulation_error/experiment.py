"""Experiments: motions of a robot with controller and noise, for estimators that simulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ShapeError
from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import observe
from steelyard.robot.robot import Robot
from steelyard.signals.between import TorqueBetween, lag_s
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation
from steelyard.simulation.controllers import Controller
from steelyard.study import Study

_Level = float | Sequence[float] | None


@short_repr
@dataclass(frozen=True, eq=False)
class Run:
    """One gap-free piece with a uniform clock.

    Attributes:
        motion: Times, smooth q, dq, ddq, and the measured torque.
        q: Measured positions on the same clock [rad, m].
        reference: Reference of the controller: (q, dq, ddq) with a row per control instant, the first at the first
            sample.
    """

    motion: Motion
    q: Array
    reference: tuple[Array, Array, Array] | None = None

    @property
    def t(self) -> Array:
        return self.motion.t

    @property
    def tau(self) -> Array:
        """Measured torques, shape (samples, joints)."""
        return self.motion.tau

    @property
    def period(self) -> float:
        return self.motion.filter.period


@short_repr
@dataclass(frozen=True, eq=False)
class Experiment:
    """Dynamics of a robot, its motions, and for closed-loop methods its controller and reference.

    Attributes:
        dynamics: Dynamics of the robot.
        runs: Gap-free pieces of motion.
        controller: A controller of `steelyard.simulation` or a subclass of its `Controller`.
        control_period: Period of the controller [s]; None: that of the samples.
        position_noise: Standard deviation of white noise per joint, if known [rad, m].
        torque_noise: Standard deviation of white noise per joint, if known [N m, N].
        step: Longest step of simulations [s]; None: the control period.
        smoothing: Width of the smoothed dry friction at zero speed [rad/s, m/s]; a term's own smoothing has priority.
        mask: Mask of the preparation.
        torque_between: Torque between samples ("auto": unknown). The runs have the clock of the samples.
    """

    dynamics: Dynamics
    runs: tuple[Run, ...]
    controller: Controller | None = None
    control_period: float | None = None
    position_noise: Array | None = None
    torque_noise: Array | None = None
    step: float | None = None
    smoothing: float = field(default=1e-2, kw_only=True)
    mask: float = field(default=0.0, kw_only=True)
    torque_between: TorqueBetween = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(self.runs))
        for name in ("position_noise", "torque_noise"):
            object.__setattr__(self, name, _levels(getattr(self, name), self.robot, name))
        for name in ("control_period", "step", "smoothing"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise EstimationError(f"{name} must be a positive number, not {value}.")
        if self.controller is not None and len(self.controller.kp) != self.robot.dof:
            raise EstimationError(
                f"The controller has gains for {len(self.controller.kp)} joints; robot '{self.robot.name}' has "
                f"{self.robot.dof}."
            )

    @classmethod
    def from_logs(
        cls,
        robot: Robot,
        terms: Terms,
        logs: Log | Sequence[Log],
        *,
        preparation: Preparation | None = None,
        references: Any = None,
        **known: Any,
    ) -> Experiment:
        """Create an experiment from logs with positions and torques, prepared as for least squares.

        Args:
            robot: The robot; the mounting in the logs has priority.
            terms: Joint terms of the robot.
            logs: One log or several.
            preparation: Filter, derivatives, mask.
            references: As in `of`; a single one for a single log.
            known: `controller`, `control_period`, `position_noise`, `torque_noise`, `step` and `smoothing`, as in `of`.
        """
        each_reference = [references] if isinstance(logs, Log) else references
        return cls.of(Study.of(robot, logs, terms, preparation), references=each_reference, **known)

    @classmethod
    def of(
        cls,
        study: Study,
        *,
        controller: Controller | None = None,
        references: Sequence[Any] | None = None,
        control_period: float | None = None,
        position_noise: _Level = None,
        torque_noise: _Level = None,
        step: float | None = None,
        smoothing: float = 1e-2,
    ) -> Experiment:
        """Create an experiment from the motions of a study.

        Args:
            study: Study of logs in memory.
            controller: Controller of the robot, for estimators that simulate the closed loop.
            references: One per log: an object with `sample(t)` that gives (q, dq, ddq), or a tuple of these arrays
                with a row per sample of the log.
            control_period: Period of the controller [s]; None: that of the samples.
            position_noise: Standard deviation [rad, m], one number or one per joint.
            torque_noise: Standard deviation [N m, N], one number or one per joint.
            step: Longest step of simulations [s]; None: the control period.
            smoothing: Width of the smoothed dry friction at zero speed [rad/s, m/s].
        """
        logs = tuple(
            one if isinstance(one, Log) else first for one, first in zip(study.logs, study.beginnings, strict=True)
        )
        each_reference = list(references or [None] * len(logs))
        if len(each_reference) != len(logs):
            raise EstimationError(
                f"There are {len(logs)} logs but {len(each_reference)} references; give one for each log."
            )
        between = study.preparation.torque_between
        if lag_s(between, 1.0):
            study = replace(study, preparation=replace(study.preparation, torque_between="sampled"))
        runs = [
            _run(log, motion, reference, control_period, bool(study.preparation.delay))
            for log, reference in zip(logs, each_reference, strict=True)
            for motion in study.motions(log)
        ]
        return cls(
            study.dynamics, tuple(runs), controller, control_period, _optional_array(position_noise),
            _optional_array(torque_noise), step, smoothing=smoothing, mask=study.preparation.mask,
            torque_between=between,
        )  # fmt: skip

    @property
    def robot(self) -> Robot:
        return self.dynamics.robot

    @property
    def terms(self) -> Terms:
        return self.dynamics.terms

    def regression(self, base: BaseParameters) -> RegressionData:
        """Create the rows of the dynamic scheme, τ = Y θ, over `base`, from the measured and filtered motions."""
        self.check()
        return observe(self.dynamics, base, lambda: [self.motion_at_torques(run) for run in self.runs], self.mask)

    def motion_at_torques(self, run: Run) -> Motion:
        """Shift the motion of a `run` to the instants of its torques, half a sample away if they are held."""
        return run.motion.with_torque(self.torque_between)

    def check(self) -> None:
        """Raise an error if the experiment is empty or not finite."""
        if not self.runs:
            raise EstimationError("There is no row to estimate from: the experiment contains no motion.")
        names = self.robot.joint_names
        for run in self.runs:
            for name, x in (("q", run.motion.q), ("q", run.q), ("tau", run.tau)):
                bad = np.argwhere(~np.isfinite(x))
                if len(bad):
                    row, joint = (int(k) for k in bad[0])
                    raise EstimationError(
                        f"Row {row + 1} of equation '{names[joint]}' is not finite ({name}, t = {run.t[row]:g} s); "
                        "mask or correct the samples around it."
                    )

    def closed_loop(self) -> Controller:
        """Return the controller; raises an error if controller or reference is missing."""
        if self.controller is None or any(run.reference is None for run in self.runs):
            missing = "controller" if self.controller is None else "reference"
            raise EstimationError(
                f"This estimator simulates the closed loop and needs the robot's {missing}: give the experiment both "
                "`controller` and `references`, or use an estimator that works on rows, such as wls."
            )
        return self.controller


def _levels(value: Any, robot: Robot, name: str) -> Array | None:
    if value is None:
        return None
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (robot.dof,)):
        raise ShapeError(f"{name} has shape {array.shape}; give one number, or one per joint ({robot.dof}).")
    if not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise EstimationError(f"{name} is {value}; a standard deviation must be finite and not negative.")
    return frozen(np.broadcast_to(array, (robot.dof,)).copy())


def _optional_array(value: _Level) -> Array | None:
    return None if value is None else np.asarray(value, dtype=float)


def _run(log: Log, motion: Motion, reference: Any, control_period: float | None, shifted: bool) -> Run:
    q = _smooth_at(motion.t, log.t, log.q) if shifted else _at(motion.t, log.t, log.q)
    if reference is None:
        return Run(motion, q)
    period = motion.filter.period
    ratio = 1.0 if control_period is None else period / control_period
    instants = round((len(motion.t) - 1) * ratio) + 1
    clock = motion.t[0] + (period / ratio) * np.arange(instants)
    if hasattr(reference, "sample"):
        parts = tuple(np.asarray(part, dtype=float) for part in reference.sample(clock))
    else:
        parts = tuple(np.asarray(part, dtype=float) for part in reference)
        for part in parts:
            if part.shape != log.q.shape:
                raise ShapeError(f"A reference has shape {part.shape}; the log's positions have {log.q.shape}.")
        parts = tuple(_at(clock, log.t, part) for part in parts)
    if len(parts) != 3:
        raise EstimationError(f"A reference has three parts (q, dq, ddq), not {len(parts)}.")
    return Run(motion, q, (parts[0], parts[1], parts[2]))


def _smooth_at(clock: Array, t: Array, x: Array) -> Array:
    """Interpolate positions by a cubic spline; exact if the clocks agree."""
    from scipy.interpolate import CubicSpline

    near = 2.0 * (clock[1] - clock[0])
    inner = slice(int(np.searchsorted(t, clock[0] - near)), int(np.searchsorted(t, clock[-1] + near)))
    return np.asarray(CubicSpline(t[inner], x[inner])(clock))


def _at(clock: Array, t: Array, x: Array) -> Array:
    """Interpolate a signal on another clock; exact if the clocks agree."""
    return np.column_stack([np.interp(clock, t, column) for column in x.T])
