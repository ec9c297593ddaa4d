"""Channels that say nothing or not all: constant, coarse, or cut off at a limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.entry import Entry, Severity
from steelyard.robot.robot import Joint, Robot
from steelyard.robot.spatial import Array
from steelyard.signals.log import Log

# A step of a rounded torque against its standard deviation: at 1/5 rounding alone is 6 % of the signal, and the drives
# seen with such steps showed little but rounding; at 1 nothing is left.
COARSE, HOPELESS = 5.0, 1.0
# A quantised signal comes back to the same few values; where nearly every sample is new there are no levels.
MOST_LEVELS = 256
# A cut-off torque stays on its extreme value for this many samples in a row, and this many times longer than on any
# ordinary value; and does so for this share of the log.
PLATEAU, LONGER, SHARE = 5, 5.0, 0.002
# A joint that turns by less than this (rad, m) is not moved but held.
STILL = {"revolute": 0.02, "prismatic": 0.002}


def check_channels(robot: Robot, log: Log) -> Iterator[Entry]:
    """Dead, coarse and cut-off channels, joint by joint; torques that are not used do not matter."""
    for k, joint in enumerate(robot.joints):
        yield from _velocity(joint, log.q[:, k], None if log.dq is None else log.dq[:, k])
        if log.tau is None or not robot.torque_used[k]:
            continue
        dead = list(_dead(joint, log.tau[:, k]))
        yield from dead
        if not dead:
            coarse = list(_coarse(joint, log.tau[:, k]))
            yield from coarse
            moving = _moving(log)
            yield from _cut_off(joint, log.tau[:, k], moving)


def _velocity(joint: Joint, q: Array, dq: Array | None) -> Iterator[Entry]:
    if dq is not None and np.ptp(dq) == 0.0 and np.ptp(q) > STILL[joint.kind]:
        message = f"The velocity of '{joint.name}' is {dq[0]:g} in every sample, while its position changes."
        advice = "Leave the velocity out of the mapping (velocity = []); it is then made from the positions."
        yield Entry("dead_velocity", "warning", message, advice, joint.name)


def _dead(joint: Joint, tau: Array) -> Iterator[Entry]:
    if np.ptp(tau) > 1e-12 * max(float(np.abs(tau).max()), 1e-300):
        return
    what = "zero" if not tau.any() else f"{tau[0]:g} {joint.effort_unit}"
    message = f"The torque of '{joint.name}' is {what} in every sample."
    advice = f"Log the torque of '{joint.name}', or leave it out with torque_used in the mapping."
    yield Entry("dead_torque", "problem", message, advice, joint.name)


def _coarse(joint: Joint, tau: Array) -> Iterator[Entry]:
    levels = np.unique(tau)
    if len(levels) > min(MOST_LEVELS, len(tau) // 4):
        return
    step, spread = float(np.median(np.diff(levels))), float(np.std(tau))
    if spread >= COARSE * step:
        return
    severity: Severity = "problem" if spread < HOPELESS * step else "warning"
    message = (
        f"The torque of '{joint.name}' has {len(levels)} distinct values; a step of {step:.3g} {joint.effort_unit} "
        f"against a standard deviation of {spread:.3g}."
    )
    advice = f"Useless for its own equation: leave '{joint.name}' out of torque_used (its motion still counts)."
    yield Entry("quantised", severity, message, advice, joint.name)


def _cut_off(joint: Joint, tau: Array, moving: Array) -> Iterator[Entry]:
    """Runs of one and the same extreme value while the robot moves."""
    starts = np.flatnonzero(np.append(True, np.diff(tau) != 0.0))
    lengths = np.diff(np.append(starts, len(tau)))
    values = tau[starts]
    for extreme, word in ((float(tau.max()), "above"), (float(tau.min()), "below")):
        at = values == extreme
        ordinary = float(np.quantile(lengths[~at], 0.95)) if np.any(~at) else np.inf
        long = at & (lengths >= max(PLATEAU, LONGER * ordinary))
        count = sum(
            int(np.sum(moving[s : s + n])) for s, n in zip(starts[long], lengths[long], strict=True)
        )  # at rest a torque may well stay what it is
        if count < max(PLATEAU, SHARE * len(tau)):
            continue
        limit = f" (its limit is {joint.effort:g})" if np.isfinite(joint.effort) else ""
        message = (
            f"The torque of '{joint.name}' is cut off {word} {extreme:.4g} {joint.effort_unit}{limit}: it stays "
            f"there for {count} samples, {100.0 * count / len(tau):.1f} % of the log."
        )
        advice = f"Move '{joint.name}' more gently so that its drive does not saturate, or cut these parts out."
        severity: Severity = "problem" if count > 0.2 * len(tau) else "warning"
        yield Entry("saturated", severity, message, advice, joint.name)


def _moving(log: Log) -> Array:
    """1.0 where any joint moves, else 0."""
    speed = np.abs(np.gradient(log.q, log.t, axis=0)) if len(log) > 1 else np.zeros_like(log.q)
    top = np.quantile(speed, 0.99, axis=0)
    active = np.any(speed > np.where(top > 0.0, 0.05 * top, np.inf), axis=1)
    return np.asarray(active, dtype=float)
