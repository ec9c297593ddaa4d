"""Corrects motions for a mistake of known size, for Gauss-Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.assumptions.suspect import Suspect
from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.robot.robot import Robot
from steelyard.signals.prepare import Motion

# Limits of the linear approximation: at 0.5 rad the error is 4 % for a sine and 12 % for a cosine.
_FIRST_ORDER = {"rad": 0.5, "m": 0.5, "": 0.5}
# A torque that contains less than this share of the expected one does not measure it at all; it has no scale error.
_ALMOST_NOTHING = 0.05
# Kinds whose number is a factor minus 1.
_FACTORS = ("gear ratio", "clock scale", "torque scale")


def can_correct(suspect: Suspect) -> bool:
    """Return whether a motion can be corrected for any value of a suspect.

    Args:
        suspect: Suspect; torques are linear in drifts and payloads, which need no correction.
    """
    whole = ("delay", "clock scale")
    return suspect.kind in _CHANGES and (bool(suspect.joint) != (suspect.kind in whole))


def combined(suspect: Suspect, before: float, step: float) -> float:
    """Combine a correction with the estimate of the remaining error.

    Args:
        suspect: The suspect.
        before: Correction so far.
        step: Estimate after the correction.
    """
    return (1.0 + before) * (1.0 + step) - 1.0 if suspect.kind in _FACTORS else before + step


def error_after(suspect: Suspect, before: float, error: float) -> float:
    """Return the standard error of a value that is combined with a correction.

    Args:
        suspect: The suspect.
        before: Correction so far.
        error: Standard error of the remaining error.
    """
    return abs(1.0 + before) * error if suspect.kind in _FACTORS else error


def vanishes(suspect: Suspect, value: float, error: float) -> bool:
    """Return whether a torque may contain almost nothing of what the other joints imply.

    Args:
        suspect: The suspect.
        value: Its value, in its unit.
        error: Its standard error.
    """
    return suspect.kind == "torque scale" and abs(1.0 + value) < _ALMOST_NOTHING + HALF_WIDTH_95 * error


def without_scale(joint: str) -> str:
    """Return the remedy for a torque without a scale.

    Args:
        joint: Name of the joint; "" for all.
    """
    what = f"the torque of '{joint}'" if joint else "the torques"
    return (
        f"Almost nothing of {what} is what the other joints imply. Check channel and torque constant, or leave it out "
        "of torque_used."
    )


def distance(suspect: Suspect, value: float) -> float:
    """Return the distance of a value from zero in the unit of its last step's error; of a factor, the logarithm.

    Args:
        suspect: The suspect.
        value: Its value.
    """
    return abs(float(np.log(abs(1.0 + value)))) if suspect.kind in _FACTORS and value > -1.0 else abs(value)


def leaves_torques(suspect: Suspect) -> bool:
    """Return whether a correction leaves the torques unchanged, so that errors before and after are comparable.

    Args:
        suspect: The suspect.
    """
    return suspect.kind not in ("torque scale", "torque coupling")


def makes_sense(suspect: Suspect, value: float) -> bool:
    """Return whether a value is possible and small enough for the linear approximation.

    Args:
        suspect: The suspect.
        value: Its value, in its unit.
    """
    if suspect.positive and value < 0.0:
        return False
    if suspect.kind == "zero" and suspect.unit == "rad" and abs(value) > np.pi:
        return False  # a turn more or less is the same zero
    return suspect.owner == "log" or abs(value) <= _FIRST_ORDER.get(suspect.unit, np.inf)


def corrected(robot: Robot, motion: Motion, suspect: Suspect, value: float) -> Motion:
    """Correct a motion for a mistake of the log.

    Args:
        robot: Robot of the log.
        motion: Prepared motion.
        suspect: Mistake with a true `can_correct`.
        value: Its value, in its unit.
    """
    if suspect.kind == "delay":
        return motion.with_delay(value)
    joint = robot.joint_index(suspect.joint) if suspect.joint else -1
    other = robot.joint_index(suspect.other) if suspect.other else -1
    states: dict[str, Any] = {name: np.array(getattr(motion, name)) for name in ("q", "dq", "ddq", "tau")}
    _CHANGES[suspect.kind](states, joint, other, value)
    return replace(motion, **states, history=None, history_key=())


def _zero(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    x["q"][:, joint] -= value


def _gear(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    for name in ("q", "dq", "ddq"):
        x[name][:, joint] /= 1.0 + value


def _clock(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    x["dq"] *= 1.0 + value
    x["ddq"] *= (1.0 + value) ** 2


def _shaft(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    for name in ("q", "dq", "ddq"):
        x[name][:, joint] -= value * x[name][:, other]


def _scale(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    x["tau"][:, joint] /= 1.0 + value


def _leak(x: dict[str, Array], joint: int, other: int, value: float) -> None:
    x["tau"][:, joint] -= value * x["tau"][:, other]


_CHANGES: dict[str, Callable[[dict[str, Array], int, int, float], None]] = {
    "zero": _zero,
    "gear ratio": _gear,
    "clock scale": _clock,
    "position coupling": _shaft,
    "torque scale": _scale,
    "torque coupling": _leak,
    "delay": lambda *_: None,
}
