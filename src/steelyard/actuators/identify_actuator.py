"""`identify_actuator`: identifies a drive from its command logs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.actuators.actuator_identification import ActuatorIdentification, RunError
from steelyard.actuators.choose_structure import ChosenDrive, choose_structure, run_errors
from steelyard.actuators.command_columns import held
from steelyard.actuators.command_log import CommandLog, checked_logs
from steelyard.actuators.drive_model import DRIVE_EFFECTS, DRIVE_FRICTION, DRIVE_KINDS, DRIVE_PARAMETERS, DriveModel
from steelyard.actuators.rollout import Rollouts
from steelyard.actuators.separable import separability, unpredictable_because
from steelyard.actuators.uncertainty import covariance_of
from steelyard.errors import LogError, SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array, one_blas_thread

# Number of compared samples in the fit: enough to determine each excited parameter to 1 %, and a fit takes seconds.
_SAMPLES = 3000
# Averaging time of the measured supply [s]: longer than the ripple of the PWM, shorter than a motion.
_RIPPLE = 0.2
# Delays of the goal [s] to which a measured duty may belong; servos act within a few cycles of their bus.
_LATE = tuple(0.001 * k for k in range(51))
_NO_SUPPLY = "The supply voltage is unknown: torque_per_volt is the torque at full duty."
# Largest number of folds; more groups are merged.
_GROUPS = 5


def identify_actuator(
    logs: Sequence[CommandLog], kind: str = "", friction: str = "", *, holdout: Sequence[CommandLog] = (),
    leave_out: str = "", effects: Sequence[str] | None = None, given: Mapping[str, float] | None = None,
    name: str = "drive", seed: int = 0,
) -> ActuatorIdentification:  # fmt: skip
    """Identify a drive from its command logs.

    Args:
        logs: Runs of one drive.
        kind: "voltage", "torque" or "position-loop"; default: from the signals in the logs.
        friction: "M1" to "M6"; default: chosen by left-out runs.
        holdout: Runs that only validate the result.
        leave_out: Property of the runs that defines the left-out groups, such as kp, mass or trajectory; default: the
            one with most values.
        effects: Additional effects (`DRIVE_EFFECTS`): delay, feedback_delay, goal_time, torque_limit, no_load_speed,
            load_friction_quad, backlash; default: chosen.
        given: Known values, by parameter.
        name: Name of the drive.
        seed: The same seed gives the same starts.
    """
    begin = time.process_time()
    runs, judges = checked_logs(logs), tuple(log.checked() for log in holdout)
    known = _known(given, kind, friction, effects)
    clash = {log.name for log in runs} & {log.name for log in judges}
    if clash:
        raise LogError(f"Run '{min(clash)}' is in the fit and in the hold-out; leave it out of one.")
    _check_excitation(runs)
    kinds = [kind] if kind else _kinds(runs)
    if "torque" in kinds and (missing := [log.name for log in runs if math.isnan(log.kp)]):
        raise LogError(f"The gain kp of run '{missing[0]}' is missing; state kp, or choose the kind position-loop.")
    notes = [note for log in runs for note in log.notes]
    known |= _duty_gain(runs, kinds, known, notes)
    _check_saturation(runs, known)
    inseparable, assumed = separability(runs, kinds[0], known)
    known = {**assumed, **known}
    groups, grouped_by = _groups(runs, leave_out)
    supply = [_supply(log, kinds, notes) for log in runs]
    stride = max(1, sum(len(log) for log in runs) // _SAMPLES)
    with one_blas_thread():  # the matrices are small; a second thread only adds load
        choice = choose_structure(runs, supply, groups, known, kinds, friction, effects, stride, seed)
    if choice.structure.kind != kinds[0]:
        inseparable, _ = separability(runs, choice.structure.kind, known)
    inseparable += choice.equal
    if choice.structure.kind != "voltage":
        notes = [note for note in notes if note != _NO_SUPPLY]
    model, memory = _model(choice, name)
    if memory > 20.0:
        notes.append(
            f"Errors of the rollouts are correlated over {memory:.0f} samples: they are errors of the model, not of "
            "the encoder, and the intervals are wider accordingly."
        )
    errors, rollouts = _judged(choice, runs, judges, groups, notes)
    return ActuatorIdentification(
        runs, model, tuple(errors), tuple(choice.tried), tuple(inseparable), rollouts, judges, grouped_by,
        tuple(dict.fromkeys(notes)), time.process_time() - begin,
    )  # fmt: skip


def _known(
    given: Mapping[str, float] | None, kind: str, friction: str, effects: Sequence[str] | None
) -> dict[str, float]:
    if kind and kind not in DRIVE_KINDS:
        raise UnknownNameError("kind of drive", kind, DRIVE_KINDS)
    if friction and friction not in DRIVE_FRICTION:
        raise UnknownNameError("friction model", friction, DRIVE_FRICTION)
    for effect in effects or ():
        if effect not in DRIVE_EFFECTS:
            raise UnknownNameError("effect", effect, DRIVE_EFFECTS)
    for name, value in (given or {}).items():
        if name not in DRIVE_PARAMETERS:
            raise UnknownNameError("parameter", name, DRIVE_PARAMETERS)
        if not math.isfinite(value) or (DRIVE_PARAMETERS[name].positive and value < 0.0):
            raise SteelyardError(f"The given {name} is {value}; give a finite number{' of 0 or more' * (value < 0)}.")
    return {name: float(value) for name, value in (given or {}).items()}


def _check_excitation(logs: Sequence[CommandLog]) -> None:
    """Refuse runs that cannot identify any drive: a constant goal or position, or a duty always at its limit."""
    if not any(log.enabled.any() for log in logs):
        raise LogError("The drive is off in all runs; give at least one run with the drive following its goal.")
    if max(float(np.ptp(log.goal[log.enabled])) for log in logs if log.enabled.any()) < 1e-3:
        raise LogError("The goal never moves in any run; command a motion of at least 0.1 rad.")
    if max(float(np.ptp(log.position)) for log in logs) < 1e-2:
        raise LogError("The position moves less than 0.01 rad in all runs; command a larger motion or a higher gain.")


def _check_saturation(logs: Sequence[CommandLog], known: Mapping[str, float]) -> None:
    """Refuse runs with a duty that is always at its limit, by its measurement or by the stated gains."""
    shares = []
    for log in logs:
        on = log.enabled
        if log.duty is not None and on.any():
            shares.append(float(np.mean(np.abs(log.duty[on]) > 0.98)))
        elif known.get("duty_gain", 0.0) > 0.0 and not math.isnan(log.kp) and on.any():
            shares.append(float(np.mean(known["duty_gain"] * log.kp * np.abs((log.goal - log.position)[on]) > 0.98)))
    if shares and min(shares) > 0.95:
        raise LogError(
            "The duty is at its limit in more than 95 % of every run, so the gain cannot be identified; command slower "
            "or smaller motions."
        )


def _kinds(logs: Sequence[CommandLog]) -> list[str]:
    volts = any(not math.isnan(log.volts) or log.supply is not None or log.duty is not None for log in logs)
    if volts:
        return ["voltage"]
    if all(not math.isnan(log.kp) and not math.isnan(log.kd) for log in logs):
        return ["torque"]
    return ["position-loop", "voltage"]


def _duty_gain(
    logs: Sequence[CommandLog], kinds: Sequence[str], known: Mapping[str, float], notes: list[str]
) -> dict[str, float]:
    """The gain from error to duty, from the settings in the logs or from the measured duty."""
    if "voltage" not in kinds or "duty_gain" in known:
        return {}
    missing = [log.name for log in logs if math.isnan(log.kp)]
    if missing and len(missing) < len(logs):
        raise LogError(f"The gain kp of run '{missing[0]}' is missing; state kp for all runs or for none of them.")
    stated = {log.duty_gain for log in logs if not math.isnan(log.duty_gain)}
    if len(stated) == 1:
        return {"duty_gain": stated.pop()}
    slope, _ = min((_duty_slope(logs, late) for late in _LATE), key=lambda pair: pair[1])
    if slope <= 0.0:
        return {}
    notes.append(f"The measured duty is {slope:.4g} per unit of kp and radian of error.")
    return {"duty_gain": slope}


def _duty_slope(logs: Sequence[CommandLog], late: float) -> tuple[float, float]:
    """Duty per unit of kp and radian of error, with goals that are late [s], and the squares of its residuals."""
    above = below = squares = 0.0
    for log in logs:
        if log.duty is None:
            continue
        kp = 1.0 if math.isnan(log.kp) else log.kp
        error = kp * np.nan_to_num(held(log.time + late, log.goal, log.time) - log.position)
        # The duty does not depend on the error at its limit and while the drive is off.
        use = log.enabled & (np.abs(log.duty) < 0.95) & (np.abs(log.duty) > 0.02)
        above, below = above + float(error[use] @ log.duty[use]), below + float(error[use] @ error[use])
        squares += float(log.duty[use] @ log.duty[use])
    slope = above / below if below > 0.0 else 0.0
    return slope, squares - slope * above


def _supply(log: CommandLog, kinds: Sequence[str], notes: list[str]) -> Array:
    """The supply voltage, averaged over the ripple of the PWM; without a measurement, the nominal one."""
    if "voltage" not in kinds:
        return np.ones(len(log))
    if log.supply is not None and np.isfinite(log.supply).any():
        from scipy.ndimage import uniform_filter1d

        usual = float(np.nanmedian(log.supply))
        _check_supply(log, usual)
        volts = np.where(np.isfinite(log.supply), log.supply, usual)
        return np.asarray(uniform_filter1d(volts, max(1, round(_RIPPLE / log.period)), mode="nearest"))
    if math.isnan(log.volts):
        notes.append(_NO_SUPPLY)
        return np.ones(len(log))
    return np.full(len(log), log.volts)


def _check_supply(log: CommandLog, usual: float) -> None:
    """Refuse a supply in another unit than the nominal one: servos log tenths of a volt, or millivolts."""
    for factor, unit in ((10.0, "0.1 V"), (1000.0, "mV")):
        if 0.6 < usual / (factor * log.volts) < 1.6:
            raise LogError(
                f"Run '{log.name}': the measured supply is {usual:.4g} V, the nominal one {log.volts:.4g} V; state the "
                f"unit of the column: --units 'voltage={unit}'."
            )


def _groups(logs: Sequence[CommandLog], leave_out: str) -> tuple[list[str], str]:
    """The group of each run, and the property that defines the groups."""

    def values(key: str) -> list[str]:
        if key == "mass" or key == "load":
            return [f"{log.load.inertia:.6g} {log.load.gravity:.6g}" for log in logs]
        return [str(log.label(key)) for log in logs]

    if leave_out:
        groups = values(leave_out)
        if len(set(groups)) < 2:
            raise LogError(f"All runs have the same {leave_out} ({groups[0]}); choose another property for leave_out.")
        return _joined(groups), leave_out
    counts = {key: len(set(values(key))) for key in ("kp", "load", "trajectory")}
    # The application changes gains and loads more often than motions; but with only two values each fold extrapolates.
    best = next((key for key, count in counts.items() if count > 2), max(counts, key=lambda key: counts[key]))
    if counts[best] < 2:
        best = "name"
    return (_joined(values(best)), best) if len(logs) > 1 else ([""], "")


def _joined(groups: list[str]) -> list[str]:
    names = list(dict.fromkeys(groups))
    if len(names) <= _GROUPS:
        return groups
    return [f"group {names.index(g) % _GROUPS + 1}" for g in groups]


def _model(choice: ChosenDrive, name: str) -> tuple[DriveModel, float]:
    with one_blas_thread():
        covariance, memory = covariance_of(choice.fit, choice.rollouts)
    s = choice.structure
    model = DriveModel(
        s.kind, s.friction, choice.fit.values, choice.fit.free, covariance,
        stribeck_exponent=float(s.stribeck_exponent), name=name,
    )  # fmt: skip
    return model, memory


def _judged(
    choice: ChosenDrive,
    runs: Sequence[CommandLog],
    judges: Sequence[CommandLog],
    groups: Sequence[str],
    notes: list[str],
) -> tuple[list[RunError], dict[str, Array]]:
    """Simulate all runs, and mark those that the others do not predict."""
    s, values = choice.structure, choice.fit.values
    errors: dict[str, float] = {}
    rollouts: dict[str, Any] = {}
    for logs in (runs, judges):
        if logs:
            every = Rollouts(logs, [_supply(log, [s.kind], notes) for log in logs])
            errors |= run_errors(every, s, values)
            q, _ = every.simulate(s, values)
            rollouts |= {log.name: q[every.run == k] for k, log in enumerate(logs)}
    usual = max(float(np.median([errors[log.name] for log in runs])), choice.rollouts.resolution)
    out = []
    for log, group in zip(runs, groups, strict=True):
        row = RunError(log.name, "fit", errors[log.name], choice.left_out.get(log.name, math.nan), _goal_error(log))
        others = [other for other, g in zip(runs, groups, strict=True) if g != group]
        if group in choice.folds and others:
            fitted = choice.folds[group].values
            own = max(usual, errors[log.name])
            why = unpredictable_because(log, others, row.left_out_error, own, s, fitted)
            row = replace(row, predictable=not why, reason=why)
        out.append(row)
    for log in judges:
        why = unpredictable_because(log, runs, errors[log.name], usual, s, values)
        out.append(RunError(log.name, "hold-out", errors[log.name], math.nan, _goal_error(log), not why, why))
    return out, rollouts


def _goal_error(log: CommandLog) -> float:
    on = log.enabled & np.isfinite(log.goal)
    return float(np.mean(np.abs(log.goal - log.position)[on])) if on.any() else math.nan
