"""The task of a method: a robot, and logs to fit to."""

from __future__ import annotations

from dataclasses import dataclass
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
        import pinocchio as pin

        model = pin.buildModelFromUrdf(str(self.urdf))
        others = [model.getJointId(name) for name in model.names[1:] if name not in self.joints]
        model = pin.buildReducedModel(model, others, pin.neutral(model)) if others else model
        model.gravity.linear = np.asarray(self.gravity, float)
        return model


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
