"""Check channels: constant, coarse or cut-off signals, limits, rounding of positions, and the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from steelyard.check._evidence import Evidence
from steelyard.estimation.linear.rounding_bias import rounding_noise
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Finding, Log, Severity

# Standard deviation of a rounded torque over its step: at 5, rounding alone is 6 % of the signal; at 1 the torque is
# useless.
COARSE, HOPELESS = 5.0, 1.0
# A quantised signal repeats a few values: with more levels than this it is not quantised.
MOST_LEVELS = 256
# A cut-off torque stays on its extreme value for this many consecutive samples, this many times longer than on any
# ordinary value, and for this share of the log.
PLATEAU, LONGER, SHARE = 5, 5.0, 0.002
# A joint that moves by less than this [rad, m] is at rest.
STILL = {"revolute": 0.02, "prismatic": 0.002}


# Steps by which a parabola falls; half a step more, since levels are rounded.
_CREST = 4.5


def check_channels(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report dead, coarse and cut-off channels, joint by joint, without unused torques.

    Args:
        robot: Robot of the log.
        log: Log to check.
    """
    for k, joint in enumerate(robot.joints):
        yield from _velocity(joint, log.q[:, k], None if log.dq is None else log.dq[:, k])
        if log.tau is None or not robot.torque_used[k]:
            continue
        dead = list(_dead(joint, log.tau[:, k]))
        yield from dead
        if not dead:
            yield from _coarse(joint, log.tau[:, k])
            yield from _cut_off(joint, np.ascontiguousarray(log.tau[:, k]), lambda: _moving(log))


def _velocity(joint: Joint, q: Array, dq: Array | None) -> Iterator[Finding]:
    if dq is not None and np.ptp(dq) == 0.0 and np.ptp(q) > STILL[joint.kind]:
        message = f"The velocity of '{joint.name}' is {dq[0]:g} in every sample, while its position changes."
        advice = "Leave the velocity out of the mapping (velocity = []); it is then computed from the positions."
        yield Finding("dead_velocity", "warning", message, advice, joint.name, fix={"velocity": False})


def _dead(joint: Joint, tau: Array) -> Iterator[Finding]:
    if np.ptp(tau) > 1e-12 * max(float(np.abs(tau).max()), 1e-300):
        return
    what = "zero" if not tau.any() else f"{tau[0]:g} {joint.effort_unit}"
    message = f"The torque of '{joint.name}' is {what} in every sample."
    advice = f"Log the torque of '{joint.name}', or leave it out with torque_used in the mapping."
    yield Finding("dead_torque", "problem", message, advice, joint.name, fix={"torque_used": [joint.name]})


def _coarse(joint: Joint, tau: Array) -> Iterator[Finding]:
    most = min(MOST_LEVELS, len(tau) // 4)
    if len(np.unique(tau[: 4 * MOST_LEVELS])) > most:
        return  # the beginning already has too many levels
    levels = np.unique(tau)
    if len(levels) > most:
        return
    step, std = float(np.median(np.diff(levels))), float(np.std(tau))
    if std >= COARSE * step:
        return
    severity: Severity = "problem" if std < HOPELESS * step else "warning"
    message = (
        f"The torque of '{joint.name}' has {len(levels)} distinct values; a step of {step:.3g} {joint.effort_unit} "
        f"against a standard deviation of {std:.3g}."
    )
    advice = f"Leave '{joint.name}' out of torque_used: its torque is too coarse to fit, but its motion is still used."
    yield Finding("quantised", severity, message, advice, joint.name, fix={"torque_used": [joint.name]})


def _cut_off(joint: Joint, tau: Array, when_moving: Callable[[], Array]) -> Iterator[Finding]:
    """Report runs of the same extreme value while the robot moves."""
    starts = np.flatnonzero(np.append(True, tau[1:] != tau[:-1]))
    lengths = np.diff(np.append(starts, len(tau)))
    if lengths.max() < PLATEAU:
        return  # noise prevents runs
    values, moving = tau[starts], when_moving()
    for extreme, word in ((float(tau.max()), "above"), (float(tau.min()), "below")):
        at = values == extreme
        ordinary = float(np.quantile(lengths[~at], 0.95)) if np.any(~at) else np.inf
        long = at & (lengths >= max(PLATEAU, LONGER * ordinary))
        long[long] = [not _is_crest(tau, s, n) for s, n in zip(starts[long], lengths[long], strict=True)]
        count = sum(
            int(np.sum(moving[s : s + n])) for s, n in zip(starts[long], lengths[long], strict=True)
        )  # at rest a torque may be constant
        if count < max(PLATEAU, SHARE * len(tau)):
            continue
        limit = f" (its limit is {joint.effort:g})" if np.isfinite(joint.effort) else ""
        message = (
            f"The torque of '{joint.name}' is cut off {word} {extreme:.4g} {joint.effort_unit}{limit}: it stays "
            f"there for {count} samples, {100.0 * count / len(tau):.1f} % of the log."
        )
        advice = f"Move '{joint.name}' more gently so that its drive does not saturate, or cut these parts out."
        severity: Severity = "problem" if count > 0.2 * len(tau) else "warning"
        yield Finding("saturated", severity, message, advice, joint.name)


def _is_crest(x: Array, start: int, length: int) -> bool:
    """Whether a run of an extreme value is the crest of a smooth signal of few levels, or of friction.

    A parabola that stays within one step for `length` samples has fallen by four steps half of that beyond either end,
    counted from its crest; a signal that is cut off has fallen by more.
    """
    ends = np.array([start - length // 2, start + length - 1 + length // 2]).clip(0, len(x) - 1)
    step = float(np.min(np.diff(np.unique(x))))
    return bool(np.min(np.abs(x[ends] - x[start])) < _CREST * step)


def _moving(log: Log) -> Array:
    """1.0 where any joint moves, else 0."""
    speed = np.abs(np.gradient(log.q, log.t, axis=0)) if len(log) > 1 else np.zeros_like(log.q)
    top = np.quantile(speed, 0.99, axis=0)
    active = np.any(speed > np.where(top > 0.0, 0.05 * top, np.inf), axis=1)
    return np.asarray(active, dtype=float)


# A joint may be driven a little beyond the limits that its description states.
ALLOWANCE = 0.02
# For joints without limits: a motion for identification rarely exceeds three turns either way.
TURNS = 6.0 * np.pi


def check_limits(robot: Robot, log: Log) -> Iterator[Finding]:
    """Report positions in degrees, and signals that exceed the limits of the description.

    Args:
        robot: Robot of the log.
        log: Log to check.
    """
    turning = [k for k, j in enumerate(robot.joints) if j.kind == "revolute"]
    suspect = [k for k in turning if _like_degrees(robot.joints[k], log.q[:, k])]
    for k, joint in enumerate(robot.joints):
        if k in suspect:
            yield _degrees(joint, float(np.abs(log.q[:, k]).max()))
            continue
        yield from _position(joint, float(log.q[:, k].min()), float(log.q[:, k].max()))
        if log.dq is not None and not suspect:
            yield from _magnitude(joint, "velocity", log.dq[:, k], joint.velocity)
        if log.tau is not None and robot.torque_used[k] and log.meta.get("torque_kind") != "current":
            yield from _magnitude(joint, "torque", log.tau[:, k], joint.effort)


def _like_degrees(joint: Joint, q: np.ndarray) -> bool:
    top = float(np.abs(q).max())
    room = max(abs(joint.lower), abs(joint.upper))
    if not np.isfinite(room) or room > TURNS:
        return top > TURNS
    # Far beyond the limits in radians, within them in degrees.
    return top > max(1.5 * room, 2.0 * np.pi) and bool(
        np.all(np.deg2rad(q) >= joint.lower - 0.1) and np.all(np.deg2rad(q) <= joint.upper + 0.1)
    )


def _degrees(joint: Joint, top: float) -> Finding:
    room = f"its limits are {joint.lower:.3g} to {joint.upper:.3g}" if np.isfinite(joint.upper) else "it has no limits"
    message = f"The position of '{joint.name}' reaches {top:.4g} rad, and {room}: these look like degrees."
    advice = 'State the unit in the mapping: units.position = "deg" (and units.velocity = "deg/s" if so).'
    return Finding("degrees", "problem", message, advice, joint.name, fix={"units.position": "deg"})


def _position(joint: Joint, lowest: float, highest: float) -> Iterator[Finding]:
    margin = ALLOWANCE * (joint.upper - joint.lower) if np.isfinite(joint.upper - joint.lower) else 0.0
    if lowest >= joint.lower - margin and highest <= joint.upper + margin:
        return
    message = (
        f"'{joint.name}' moves from {lowest:.4g} to {highest:.4g} {joint.unit}, beyond its limits "
        f"{joint.lower:.4g} to {joint.upper:.4g}."
    )
    advice = f"Check the zero, the sign and the unit of the position of '{joint.name}'; else the limits are wrong."
    yield Finding("position_limit", "warning", message, advice, joint.name)


def _magnitude(joint: Joint, what: str, x: Array, limit: float) -> Iterator[Finding]:
    most = (1.0 + ALLOWANCE) * limit
    if not 0.0 < limit < np.inf or (x.max() <= most and x.min() >= -most):
        return
    top = float(np.quantile(np.abs(x), 0.999))
    if top <= most:
        return
    unit = f"{joint.unit}/s" if what == "velocity" else joint.effort_unit
    message = f"The {what} of '{joint.name}' reaches {top:.4g} {unit}; its limit is {limit:.4g}."
    advice = f"Check the unit of the {what} of '{joint.name}'; limits of a description are often only rated values."
    # Drives may exceed their rated values for a short time, but hardly twice.
    yield Finding(f"{what}_limit", "warning" if top > 2.0 * limit else "note", message, advice, joint.name)


# Rounding noise of the prepared accelerations over their standard deviation. 2 % shifted a base parameter by about
# one standard error (rotradi), 5 % by 1.6 to 3.6 (all built-in robots; docs/theory/error-bars.md).
NOTED, COARSE_NOISE = 0.01, 0.02


def check_rounding(log: Log, evidence: Evidence) -> Iterator[Finding]:
    """Report the joints whose encoder steps disturb the accelerations, in one entry.

    Args:
        log: Log to check.
        evidence: Its prepared rows.
    """
    if all(m.velocity == "measured" for m in evidence.motions):
        return  # accelerations come from velocities, whose steps are unknown
    steps, noise = rounding_noise([log], min(m.filter.cutoff_hz for m in evidence.motions))
    rough = np.flatnonzero(noise > NOTED)
    if not len(rough):
        return
    worst = int(np.argmax(noise))
    joint = evidence.robot.joints[worst]
    severity: Severity = "warning" if noise[worst] > COARSE_NOISE else "note"
    names = ", ".join(evidence.robot.joints[k].name for k in rough)
    message = (
        f"The steps of the positions ({steps[worst]:.2g} {joint.unit} on '{joint.name}') cause "
        f"{100 * noise[worst]:.1f} % of its acceleration; joints concerned: {names}. This biases inertias towards zero."
    )
    advice = "Log finer positions or the drive's own velocity, lower --cutoff, or play a faster motion."
    yield Finding("position_steps", severity, message, advice, joint.name if len(rough) == 1 else None)


# Advice for the findings of the reader, by their kind.
_ADVICE = {
    "gap": "Gaps are not interpolated. If samples are lost often, log at a lower rate or on a faster disk.",
    "jitter": "The time stamps are used. If they are times of arrival, log the controller's time stamps.",
    "duplicate": "Log every sample once; check that two loggers do not write into one file.",
    "reset": "Split the file where the clock starts again.",
    "nan_rows": "These rows are left out (nan_rows). If there are many, repair the recorder.",
    "motors_disagree": "Check the coupling and the zeros of the motors (coupling, offset of their columns).",
    "out_of_order": "Sort the log by time, or log the controller's time stamps.",
    "isolated": "Cut the log there (window = [first, last] in the mapping).",
    "repeated": "Repeated rows are left out. Log every sample once, at the rate of the drives.",
    "remark": "",
    "parts": "",
}
# Relative difference between the measured and the nominal sampling rate that is mentioned: the third digit.
_RATE_DIFFERS = 0.005
# `check_channels` reports zero torques joint by joint.
_SAID_ELSEWHERE = ("zero_torque",)


def check_times(log: Log) -> Iterator[Finding]:
    """Report the findings of the reader, each with an advice, and the length and rate of the log."""
    for finding in log.findings:
        if finding.kind not in _SAID_ELSEWHERE:
            advice = _ADVICE.get(
                finding.kind, "Check the file at this place, and the meaning of its columns in the mapping."
            )
            yield replace(finding, advice=advice)
    if len(log) < 2:
        yield Finding("short", "problem", f"The log has {len(log)} sample.", "Log a motion of at least ten seconds.")
        return
    period = float(np.median(np.diff(log.t)))
    length = sum(float(log.t[stop - 1] - log.t[start]) for start, stop in log.segments)
    pieces = f", {len(log.segments)} pieces" if len(log.segments) > 1 else ""
    rate = (len(log) - len(log.segments)) / length if length > 0.0 else 1.0 / period
    # Lost samples lower the measured rate, but not the median step.
    nominal = f" on average (median step {1e3 * period:.4g} ms)" if abs(rate * period - 1.0) > _RATE_DIFFERS else ""
    yield Finding("length", "ok", f"{len(log)} samples, {length:.4g} s at {rate:.4g} Hz{nominal}{pieces}.")
