"""Positions, velocities and torques against the limits of the description; degrees that pass for radians."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.entry import Entry
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Log

# A joint may be driven a little beyond the limits that its description states.
ALLOWANCE = 0.02
# Without limits: three turns either way are rare in a motion for identification, a hundred degrees are not.
TURNS = 6.0 * np.pi


def check_limits(robot: Robot, log: Log) -> Iterator[Entry]:
    """Degrees where most joints look so, else what exceeds its limit."""
    turning = [k for k, j in enumerate(robot.joints) if j.kind == "revolute"]
    suspect = [k for k in turning if _like_degrees(robot.joints[k], log.q[:, k])]
    for k, joint in enumerate(robot.joints):
        if k in suspect:
            yield _degrees(joint, float(np.abs(log.q[:, k]).max()))
            continue
        yield from _position(joint, float(log.q[:, k].min()), float(log.q[:, k].max()))
        if log.dq is not None and not suspect:
            yield from _magnitude(joint, "velocity", float(np.quantile(np.abs(log.dq[:, k]), 0.999)), joint.velocity)
        if log.tau is not None and robot.torque_used[k] and log.meta.get("torque_kind") != "current":
            yield from _magnitude(joint, "torque", float(np.quantile(np.abs(log.tau[:, k]), 0.999)), joint.effort)


def _like_degrees(joint: Joint, q: np.ndarray) -> bool:
    top = float(np.abs(q).max())
    room = max(abs(joint.lower), abs(joint.upper))
    if not np.isfinite(room) or room > TURNS:
        return top > TURNS
    # Beyond its limits by far, but within them if they are read as degrees.
    return top > 1.5 * room and bool(
        np.all(np.deg2rad(q) >= joint.lower - 0.1) and np.all(np.deg2rad(q) <= joint.upper + 0.1)
    )


def _degrees(joint: Joint, top: float) -> Entry:
    room = f"its limits are {joint.lower:.3g} to {joint.upper:.3g}" if np.isfinite(joint.upper) else "it has no limits"
    message = f"The position of '{joint.name}' reaches {top:.4g} rad, and {room}: these look like degrees."
    advice = 'State the unit in the mapping: units.position = "deg" (and units.velocity = "deg/s" if so).'
    return Entry("degrees", "problem", message, advice, joint.name)


def _position(joint: Joint, lowest: float, highest: float) -> Iterator[Entry]:
    margin = ALLOWANCE * (joint.upper - joint.lower) if np.isfinite(joint.upper - joint.lower) else 0.0
    if lowest >= joint.lower - margin and highest <= joint.upper + margin:
        return
    message = (
        f"'{joint.name}' moves from {lowest:.4g} to {highest:.4g} {joint.unit}, beyond its limits "
        f"{joint.lower:.4g} to {joint.upper:.4g}."
    )
    advice = f"Check the zero, the sign and the unit of the position of '{joint.name}'; else the limits are wrong."
    yield Entry("position_limit", "warning", message, advice, joint.name)


def _magnitude(joint: Joint, what: str, top: float, limit: float) -> Iterator[Entry]:
    if not 0.0 < limit < np.inf or top <= (1.0 + ALLOWANCE) * limit:
        return
    unit = f"{joint.unit}/s" if what == "velocity" else joint.effort_unit
    message = f"The {what} of '{joint.name}' reaches {top:.4g} {unit}; its limit is {limit:.4g}."
    advice = f"Check the unit of the {what} of '{joint.name}'; limits of a description are often merely rated values."
    # Drives exceed their rated values for a while; twice the limit is hardly a robot that works.
    yield Entry(f"{what}_limit", "warning" if top > 2.0 * limit else "note", message, advice, joint.name)
