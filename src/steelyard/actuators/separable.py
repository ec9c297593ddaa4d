"""What the runs of a drive cannot show: `separability` before a fit, `unpredictable_because` after it.

`separability` finds parameters that an experiment cannot separate. `unpredictable_because` gives the reason why the
other runs do not predict a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.actuators.actuator_identification import Inseparable
from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_structure import DriveStructure

# A run with an error this many times the typical one of the fit is not predicted: normal errors are as large once in
# 20,000 runs, and correlated ones almost as rarely.
_TIMES = 4.0
# A run beyond the range of the others by this factor is an extrapolation.
_BEYOND = 1.25
# A regime with less than this share of the others' time is not identified by the fit.
_SHARE = 0.02


def unpredictable_because(
    log: CommandLog, others: Sequence[CommandLog], error: float, usual: float, structure: DriveStructure,
    values: Mapping[str, float],
) -> str:  # fmt: skip
    """Return why the others do not predict a run; "" if they do.

    Args:
        log: Run.
        others: Runs of the fit.
        error: Mean absolute error [rad] of the run, predicted from the others.
        usual: Typical error of a fitted run [rad].
        structure: Structure of the drive.
        values: Its parameters, fitted to the others.
    """
    if error <= _TIMES * usual:
        return ""
    mine, theirs = _regime(log, structure, values), [_regime(other, structure, values) for other in others]
    times = f"its error is {error / usual:.0f} times that of a fitted run"
    reasons = []
    largest = max(other["speed"] for other in theirs)
    if mine["speed"] > _BEYOND * largest:
        reasons.append(f"it is faster ({mine['speed']:.1f} rad/s) than the others ({largest:.1f} rad/s)")
    for name, words in (("off", "the drive is off"), ("full", "the drive is at its limit")):
        share = float(np.mean([other[name] for other in theirs]))
        if mine[name] > 2.0 * _SHARE and share < _SHARE:
            reasons.append(f"{words} for {mine[name]:.0%} of it and for {share:.0%} of the others")
    largest = max(other["error"] for other in theirs)
    if mine["error"] > _BEYOND * largest:
        reasons.append(f"its goal is up to {mine['error']:.2f} rad away, in the others up to {largest:.2f} rad")
    largest = max(other["load"] for other in theirs)
    if mine["load"] > _BEYOND * largest:
        reasons.append(f"its load turns with up to {mine['load']:.2f} N m, that of the others with {largest:.2f} N m")
    if not reasons:
        return f"{times}, although its speeds, loads and goals are within those of the others: an effect is missing"
    return f"{times}; {', and '.join(reasons)}"


def _regime(log: CommandLog, structure: DriveStructure, values: Mapping[str, float]) -> dict[str, float]:
    error = np.where(log.enabled, np.nan_to_num(np.abs(log.goal - log.position)), 0.0)
    kp = 1.0 if math.isnan(log.kp) else log.kp
    if structure.kind == "voltage":
        full = values.get("duty_gain", 0.0) * kp * error >= 1.0
    else:
        stiffness = values["kp_gain"] * kp if structure.kind == "torque" else values["stiffness"]
        full = stiffness * error >= values.get("torque_limit", math.inf)
    # The 99 % quantile is robust against single jumps of the encoder.
    width = max(round(0.03 / log.period), 1)
    speed = np.abs(log.position[width:] - log.position[:-width]) / np.maximum(
        log.time[width:] - log.time[:-width], 1e-9
    )
    return {
        "speed": float(np.quantile(speed, 0.99)) if len(speed) else 0.0,
        "off": float(np.mean(~log.enabled)),
        "full": float(np.mean(full)),
        "error": float(np.quantile(error, 0.99)),
        "load": log.load.gravity,
    }


# A phase with the drive off identifies friction if the joint moves by at least this angle [rad], which exceeds any play
# or elasticity.
_MOTION = 0.1


def separability(
    logs: Sequence[CommandLog], kind: str, given: Mapping[str, float]
) -> tuple[list[Inseparable], dict[str, float]]:
    """Return the parameters that the runs cannot separate, and the values that the fit assumes for them.

    Args:
        logs: Runs.
        kind: Kind of the drive.
        given: Known parameters.
    """
    ambiguities: list[Inseparable] = []
    assumed: dict[str, float] = {}

    def say(names: tuple[str, ...], reason: str, experiment: str, convention: str, **values: float) -> None:
        ambiguities.append(Inseparable(names, reason, experiment, convention))
        assumed.update(values)

    off = any(_free_motion(log) for log in logs)
    drag = {"voltage": "back_emf", "torque": "kd_gain", "position-loop": "damping"}[kind]
    gains = {round(log.kd, 9) for log in logs if not math.isnan(log.kd)}
    if kind == "torque" and gains <= {0.0} and drag not in given:
        why = "kd is 0 in all runs" if gains else "no run states kd"
        say((drag,), f"kd_gain cannot be identified: {why}.", "One run with another kd.", "kd_gain = 1", kd_gain=1.0)
    elif (
        not off and drag not in given and "friction_viscous" not in given and not (kind == "torque" and len(gains) > 1)
    ):
        what = {"voltage": "back-EMF", "torque": "the loop's damping", "position-loop": "the loop's damping"}[kind]
        more = " and one more kd" if kind == "torque" else ""
        say(
            (drag, "friction_viscous"),
            f"Viscous friction and {what} have the same effect, and the drive is never off while the joint moves.",
            f"One run of a few seconds: lift the load, switch the torque off and let the load swing{more}.",
            f"friction_viscous = 0; {drag} contains both", friction_viscous=0.0,
        )  # fmt: skip
    loads = {(round(log.load.inertia, 9), round(log.load.gravity, 9)) for log in logs}
    scale = {"voltage": "torque_per_volt", "torque": "kp_gain", "position-loop": "stiffness"}[kind]
    if all(log.load.gravity == 0.0 for log in logs):
        say(
            (scale, "armature", "friction_base"),
            "Gravity does not act on the load, so only the load's inertia determines the scale of the torques.",
            "A run with a lever under gravity (horizontal axis, known mass and length).",
            "the stated inertia is assumed to be correct", offset=0.0,
        )  # fmt: skip
    elif len(loads) == 1:
        say(
            ("load_friction", scale),
            "All runs have one load: friction in proportion to torque and the torque constant have the same effect "
            "while lifting, and only slow lowering separates them.",
            "The same motions with a second mass, of half or double the torque.",
            "both are estimated from the difference of lifting and lowering",
        )  # fmt: skip
    if kind == "voltage" and "duty_gain" not in given and not any(log.duty is not None for log in logs):
        say(
            ("duty_gain", "torque_per_volt"),
            "Neither the gain from error to duty nor the duty is known: below full duty only the product of both "
            "parameters has an effect.",
            "Also log the duty (PWM), or take the gain from the manual; else a run with jumps up to full duty.",
            "both are estimated; their product is the reliable number",
        )  # fmt: skip
    if len({round(log.kp, 9) for log in logs if not math.isnan(log.kp)}) < 2 and kind != "position-loop":
        say(
            ("delay", drag),
            "All runs have one gain: delay, damping and filters of the firmware have the same effect on a slow motion.",
            "The same motion with half and with double the gain.",
            "all are estimated",
        )  # fmt: skip
    return ambiguities, assumed


def _free_motion(log: CommandLog) -> bool:
    off = ~log.enabled
    if not off.any():
        return False
    ends = np.flatnonzero(np.diff(np.concatenate([[0], off.astype(int), [0]])))
    return any(float(np.ptp(log.position[a:b])) > _MOTION for a, b in zip(ends[::2], ends[1::2], strict=True))
