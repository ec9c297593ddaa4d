"""The tasks of methods: logs of a robot, held poses, or runs of a drive to fit to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Array = np.ndarray


class MissingError(Exception):
    """The library of a method is not installed."""


@dataclass(frozen=True)
class Motion:
    """A log on one clock, filtered as the recipe of the set says.

    Attributes:
        t: Times [s].
        q, dq, ddq: Positions [rad, m] and their derivatives, shape (samples, joints).
        tau: Torques [N m, N].
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array


@dataclass(frozen=True)
class Problem:
    """The task.

    Attributes:
        urdf: Description of the robot.
        joints: Moving joints, in the order of the columns; the others are locked at zero.
        gravity: Gravity in the base frame [m/s²].
        rate: Rate of the filtered logs [Hz].
        cutoff_hz: Cut-off of the filter [Hz].
        rotor: Whether the recipe fits rotor inertias.
        ramp: Half the width of the ramp that replaces the jump of dry friction [rad/s, m/s].
        logs: Filtered logs, without their ends.
        raw: The same logs as measured: files of columns t, q1…, dq1…, tau1… or i1….
        mapping: Mapping of the raw columns for Steelyard; "" for none.
        split: Rows of a raw log that are held out, by their times; None: whole logs.
    """

    urdf: Path
    joints: tuple[str, ...]
    gravity: tuple[float, float, float]
    rate: float
    cutoff_hz: float
    rotor: bool
    ramp: float
    logs: tuple[Motion, ...]
    raw: tuple[Path, ...] = ()
    mapping: str = ""
    split: Any = None

    def pinocchio(self) -> Any:
        """Return Pinocchio's model with the moving joints only."""
        model = _pinocchio(self.urdf, self.joints)
        model.gravity.linear = np.asarray(self.gravity, float)
        return model


@dataclass(frozen=True)
class PoseProblem:
    """Held poses whose tool a sensor measured; the place of the sensor, and the points on the tool, are unknown.

    Attributes:
        urdf: Description of the robot.
        joints: Moving joints, in the order of the columns.
        q: Joint positions [rad, m], shape (poses, joints).
        before: Joint positions of the pose before each of them, by which it was approached.
        points: Points on the tool in the sensor's frame [m], shape (poses, points, 3); NaN: not measured.
    """

    urdf: Path
    joints: tuple[str, ...]
    q: Array
    before: Array
    points: Array

    def pinocchio(self) -> Any:
        """Return Pinocchio's model with the moving joints only."""
        return _pinocchio(self.urdf, self.joints)


@dataclass(frozen=True)
class Run:
    """A run of a position-controlled drive with a pendulum, whose gravity torque is -gravity · sin(position).

    Attributes:
        t: Times [s].
        goal: Goals [rad].
        position: Positions [rad]; for a prediction, NaN after the first.
        on: Whether the torque is switched on.
        gain: Gain of the controller in its own unit.
        volts: Supply [V].
        inertia: Moment of inertia of the load [kg m²].
        gravity: Largest gravity torque [N m].
        duty: Measured duty, -1 to 1, and supply [V], where the drive logs them; never for a prediction.
        labels: Properties of the run, such as its motion.
    """

    t: Array
    goal: Array
    position: Array
    on: Array
    gain: float
    volts: float
    inertia: float
    gravity: float
    duty: Array | None = None
    supply: Array | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DriveProblem:
    """Runs of one drive.

    Attributes:
        runs: Runs to fit to.
    """

    runs: tuple[Run, ...]


def _pinocchio(urdf: Path, joints: tuple[str, ...]) -> Any:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(urdf))
    others = [model.getJointId(name) for name in model.names[1:] if name not in joints]
    return pin.buildReducedModel(model, others, pin.neutral(model)) if others else model


class Method(Protocol):
    """A method of the scoreboard."""

    name: str

    def fit(self, problem: Problem) -> None:
        """Identify a model."""

    def predict(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Return torques, shape (samples, joints).

        Args:
            t: Times [s].
            q, dq, ddq: Positions and their derivatives.
        """
