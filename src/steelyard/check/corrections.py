"""Findings about mistakes of a log that a mapping can correct: message, advice, and the fix."""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.signals.log import Finding

_MAPPING = "in the mapping"


def wrong_sign(name: str, reason: str) -> Finding:
    """Report that the torque of a joint has the wrong sign.

    Args:
        name: Joint.
        reason: Evidence, as a clause.
    """
    advice = f"Turn the sign of the torque of '{name}' (sign.torque, or torque_constants, {_MAPPING})."
    message = f"The torque of '{name}' has the wrong sign: {reason}."
    return Finding("sign", "problem", message, advice, name, fix={"sign.torque": {name: -1.0}})


def wrong_direction(name: str) -> Finding:
    """Report that the position of a joint has the wrong sign.

    Args:
        name: Joint.
    """
    message = f"The position of '{name}' has the wrong sign: turned, it agrees with the torques."
    advice = f"Turn the sign of position and velocity of '{name}' (sign.position, sign.velocity {_MAPPING})."
    return Finding("position_sign", "problem", message, advice, name, fix={"sign.position": {name: -1.0}})


def reversed_axis(name: str) -> Finding:
    """Report that position and torque of a joint have the wrong sign: its axis points the other way.

    Args:
        name: Joint.
    """
    message = f"Position and torque of '{name}' both have the wrong sign: its axis points the other way."
    advice = f"Turn all signs of '{name}' (sign.position, sign.velocity, sign.torque {_MAPPING})."
    fix = {"sign.position": {name: -1.0}, "sign.torque": {name: -1.0}}
    return Finding("position_sign", "problem", message, advice, name, fix=fix)


def wrong_zero(name: str, shift: float) -> Finding:
    """Report that the zero of a joint is off.

    Args:
        name: Joint.
        shift: Correction of its position [rad].
    """
    message = f"The zero of '{name}' looks off by {-shift:.2f} rad ({-np.degrees(shift):.0f}°)."
    advice = f"Compare a posture of the robot with the description's; offset of '{name}' {_MAPPING}: {shift:.2f}."
    return Finding("zero", "problem", message, advice, name, fix={"offset": {name: shift}})


def wrong_scale(name: str, factor: float) -> Finding:
    """Report that the torque of a joint does not have the scale of the other joints' torques.

    Args:
        name: Joint.
        factor: Correction of its torque.
    """
    message = f"The torque of '{name}' agrees with the other joints' if it is taken {factor:.3g} times."
    advice = f"Check torque constant, gear ratio and side (motor or joint) of '{name}' and of its neighbours."
    return Finding("torque_scale", "problem", message, advice, name, fix={"torque_scale": {name: factor}})


def exchanged_joints(first: str, second: str, torque_only: bool) -> Finding:
    """Report that the channels of two joints are exchanged.

    Args:
        first: Joint.
        second: Other joint.
        torque_only: Whether only their torques are exchanged.
    """
    channels = "torques" if torque_only else "channels"
    message = f"The {channels} of '{first}' and '{second}' look exchanged: exchanged back, they agree with the others'."
    advice = f"Check the order of the joints ('{first}', '{second}') {_MAPPING}: joints = […], or the columns' names."
    fix = {"exchange torques" if torque_only else "exchange": [first, second]}
    return Finding("order", "problem", message, advice, f"{first}, {second}", fix=fix)


def wrong_clock(factor: float) -> Finding:
    """Report that the time has the wrong scale.

    Args:
        factor: True speeds over those by the time stamps.
    """
    times = f"{factor:.3g} times as long as it was" if factor > 1.0 else f"{1.0 / factor:.3g} times too short"
    message = f"The clock looks wrong: weight and inertia agree if the motion is logged {times}."
    advice = "Check the unit of the time and the sampling rate (units.time, or time = {rate = …} in the mapping)."
    # A logged velocity agrees with the wrong clock: otherwise the check of velocities would have reported it.
    return Finding("clock", "problem", message, advice, fix={"time.factor": 1.0 / factor, "velocity": False})


def tilted_gravity(gravity: Array, stated: Array) -> Finding:
    """Report that gravity points in another direction than stated.

    Args:
        gravity: Estimate in the base frame [m/s²].
        stated: Stated vector [m/s²].
    """
    vector = ", ".join(f"{x:.2f}" for x in gravity)
    sizes = float(np.linalg.norm(gravity)) * float(np.linalg.norm(stated))
    angle = float(np.degrees(np.arccos(np.clip(gravity @ stated / sizes, -1.0, 1.0)))) if sizes else 180.0
    message = (
        f"The torques agree best with gravity along ({vector}) m/s², {angle:.0f}° from the stated "
        f"({', '.join(f'{x:.4g}' for x in stated)})."
    )
    advice = f"State how the robot is mounted: gravity = [{vector}] {_MAPPING}, rounded to the true direction."
    return Finding("gravity", "problem", message, advice, fix={"gravity": [round(float(x), 2) for x in gravity]})


def coupled_motors(name: str, other: str, factor: float) -> Finding:
    """Report that the torque of a joint contains the torque of another one.

    Args:
        name: Joint.
        other: Joint whose motor also moves the first one.
        factor: By how much it moves it (1, −1).
    """
    message = f"The torque of '{name}' contains that of '{other}': they look like the two motors of a wrist."
    advice = f"State the coupling of '{name}' and '{other}' {_MAPPING} (coupling, side)."
    fix = {"coupling": {"joint": name, "motor": other, "factor": factor, "torque": "motor"}}
    return Finding("coupled", "problem", message, advice, f"{name}, {other}", fix=fix)


def turning_motor(name: str, other: str, factor: float) -> Finding:
    """Report that the friction of a motor acts on two joints.

    Args:
        name: Other joint that also turns the motor.
        other: Joint of the motor.
        factor: By how much it turns with it (1, −1).
    """
    message = f"Friction of '{other}' acts on '{name}' as well: its motor looks as if it turned with both joints."
    advice = f"State the coupling of '{name}' and '{other}' {_MAPPING} (coupling, side)."
    fix = {"coupling": {"joint": name, "motor": other, "factor": factor, "torque": "joint"}}
    return Finding("coupled", "warning", message, advice, f"{name}, {other}", fix=fix)
