"""`unpredictable_because`: the reason why the other runs do not predict a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

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
