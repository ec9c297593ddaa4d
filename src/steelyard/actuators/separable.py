"""`separability`: finds parameters that an experiment with a drive cannot separate, from the runs, before any fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.actuators.actuator_identification import Inseparable
from steelyard.actuators.command_log import CommandLog

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
