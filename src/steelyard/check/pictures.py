"""Pictures of findings: short signals that show the fault, for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.check._description import nominal_torque
from steelyard.check._evidence import Evidence, Fit
from steelyard.check.free_fits import friction_columns
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log

LineRole = Literal["measured", "expected", "other", "points"]
# Kinds of findings by the signal that shows them; other kinds have no picture.
_RAW_TORQUE = ("dead_torque", "quantised", "saturated", "echo", "drop_out", "spike", "all_dead", "torque_limit")
_POSITION = ("degrees", "position_limit", "position_steps", "motionless", "nothing_moves", "hidden", "standing")
_VELOCITY = (
    "dead_velocity", "velocity_unlike", "velocity_delay", "velocity_degrees", "velocity_sign", "velocity_factor",
    "velocity_limit", "clock",
)  # fmt: skip
_PHYSICS = (
    "sign", "order", "gravity", "zero", "position_sign", "coupled", "torque_scale", "unexplained", "inconsistent",
    "delay", "warming",
)  # fmt: skip
_STAMPS = ("gap", "reset", "duplicate", "isolated", "jitter", "frozen", "repeated", "held", "nan_rows")
# Length [s] of the excerpt with the largest changes; a delay needs a shorter one.
_SECONDS, _SECONDS_OF_DELAY = 20.0, 3.0
_MOST = 600


@dataclass(frozen=True)
class PictureLine:
    """A line with its name, its role and its points."""

    name: str
    role: LineRole
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class FindingPicture:
    """A picture of a finding.

    Args:
        title: Title.
        across: Label of the horizontal axis with its unit.
        up: Label of the vertical axis with its unit.
        about: Explanation.
        lines: Lines, the last one on top.
        bounds: Limits on the vertical axis.
    """

    title: str
    across: str
    up: str
    about: str
    lines: tuple[PictureLine, ...]
    bounds: tuple[float, ...] = ()


def pictures_of(
    entries: Sequence[Finding], robot: Robot, log: Log, evidence: Evidence | None = None,
    fits: Mapping[int, Fit] | None = None,
) -> dict[str, FindingPicture]:  # fmt: skip
    """Draw the findings for which a picture is possible; return the pictures by the keys of the findings.

    Args:
        entries: Findings.
        robot: Robot of the log.
        log: Log, or its beginning if it is long.
        evidence: Its prepared rows; None if it is too broken.
        fits: Fit of every joint's torque alone, by joint number.
    """
    wanted = {e.key: e for e in entries if e.rank > 1}
    made = {key: _picture(e, robot, log, evidence, fits or {}) for key, e in wanted.items()}
    return {key: picture for key, picture in made.items() if picture is not None}


def _picture(
    entry: Finding, robot: Robot, log: Log, evidence: Evidence | None, fits: Mapping[int, Fit]
) -> FindingPicture | None:
    names = robot.joint_names
    joints = [names.index(name) for name in (entry.joint or "").split(", ") if name in names]
    whole = slice(None)
    if entry.kind in _PHYSICS and evidence is not None and evidence.rows > 1:
        used = [j for j in joints if j in evidence.joints] or ([] if joints else list(evidence.joints))
        return _against_model(entry, evidence, fits, used) if used else None
    if entry.kind in _STAMPS and len(log) > 2:
        steps = 1e3 * np.diff(log.t)
        lines = (_line("step", "measured", log.t[1:], steps, whole),)
        about = "Step from each sample to the next; a regular clock gives a level line."
        return FindingPicture("Time between samples", "time [s]", "step [ms]", about, lines)
    if entry.kind in _VELOCITY and log.dq is not None:
        k = joints[0] if joints else int(np.argmax(np.std(log.dq, axis=0)))
        return _velocity(robot, log, k)
    if entry.kind in _RAW_TORQUE and log.tau is not None and "position" not in entry.message:
        k = joints[0] if joints else int(np.argmax(np.std(log.tau, axis=0)))
        unit, limit = robot.joints[k].effort_unit, robot.joints[k].effort
        lines = (_line("logged", "measured", log.t, log.tau[:, k], whole),)
        about = "Every logged sample; a dashed line is the limit of the description."
        return FindingPicture(
            f"Torque of '{names[k]}'", "time [s]", f"torque [{unit}]", about, lines,
            _near(log.tau[:, k], (-limit, limit)),
        )  # fmt: skip
    if entry.kind in (*_POSITION, "drop_out", "spike"):
        k = joints[0] if joints else int(np.argmax(np.std(log.q, axis=0)))
        joint = robot.joints[k]
        about = "Every sample; a dashed line is a limit of the description."
        lines = (_line("logged", "measured", log.t, log.q[:, k], whole),)
        return FindingPicture(
            f"Position of '{joint.name}'", "time [s]", f"position [{joint.unit}]", about, lines,
            _near(log.q[:, k], (joint.lower, joint.upper)),
        )  # fmt: skip
    return None


def _against_model(
    entry: Finding, evidence: Evidence, fits: Mapping[int, Fit], joints: Sequence[int]
) -> FindingPicture:
    """Draw the measured torque and the torque that the motion needs."""
    robot, time = evidence.robot, np.concatenate([m.t[m.keep] for m in evidence.motions])
    described = nominal_torque(robot, evidence.q, evidence.dq, evidence.ddq) if robot.has_inertia else None
    joint = joints[0] if len(joints) == 1 or described is None else _farthest(evidence, described, joints)
    measured, named = evidence.tau[:, joint], robot.joints[joint]
    title, unit = f"Torque of '{named.name}'", named.effort_unit
    fitted = evidence.A[evidence.joints.index(joint)] @ fits[joint].values if joint in fits else None
    if entry.kind == "sign" and described is None and fitted is not None:
        return _friction(evidence, joint, fits[joint], title)
    own = described is None or entry.kind in ("unexplained", "delay", "warming", "inconsistent")
    expected = fitted if own and fitted is not None else None if described is None else described[:, joint]
    rows = _excerpt(time, measured, _SECONDS_OF_DELAY if entry.kind == "delay" else _SECONDS)
    lines = [_line("measured", "measured", time, measured, rows)]
    about = "Both with the same low-pass filter, where the torque changes most."
    if expected is not None:
        name = "best fit of inertia and friction" if expected is fitted else "needed by the description"
        lines = [_line(name, "expected", time, expected, rows), *lines]
        if expected is not fitted:
            about += " The description does not include friction, so the curves differ by it."
    partner = [j for j in joints if j != joint]
    if entry.kind in ("order", "coupled") and entry.joint and partner:
        other = robot.joints[partner[0]].name
        lines = [_line(f"measured at '{other}'", "other", time, evidence.tau[:, partner[0]], rows), *lines]
    return FindingPicture(title, "time [s]", f"torque [{unit}]", about, tuple(lines))


def _friction(evidence: Evidence, joint: int, fit: Fit, title: str) -> FindingPicture:
    """Draw the friction part of a torque over speed, without inertias of the description."""
    from steelyard.report.plots.series import decimate_over, in_steps  # keeps `report` out of calculations

    dq, e = evidence.dq[:, joint], evidence.joints.index(joint)
    others = np.delete(np.arange(evidence.A[e].shape[1]), friction_columns(evidence)[e])
    rest = evidence.y[e] - evidence.A[e][:, others] @ fit.values[others]
    keep = decimate_over(dq, rest, _MOST)
    named = evidence.robot.joints[joint]
    line = PictureLine("measured", "points", tuple(in_steps(dq[keep])), tuple(in_steps(rest[keep])))
    about = "Torque minus inertia and gravity of the best fit; friction makes it rise from left to right."
    return FindingPicture(
        title + " over its speed", f"speed [{named.unit}/s]", f"torque [{named.effort_unit}]", about, (line,)
    )


def _velocity(robot: Robot, log: Log, joint: int) -> FindingPicture:
    assert log.dq is not None
    named, dq = robot.joints[joint], log.dq[:, joint]
    made = np.gradient(log.q[:, joint], log.t) if len(log) > 1 else np.zeros(len(log))
    rows = _excerpt(log.t, made, _SECONDS)
    lines = (
        _line("from the positions", "expected", log.t, made, rows), _line("logged", "measured", log.t, dq, rows),
    )  # fmt: skip
    about = "Logged velocity and derivative of the positions; both lines should coincide."
    return FindingPicture(f"Velocity of '{named.name}'", "time [s]", f"velocity [{named.unit}/s]", about, lines)


def _farthest(evidence: Evidence, described: Array, joints: Sequence[int]) -> int:
    """Find the joint with the largest relative difference between measured and described torque."""
    apart = [np.std(evidence.tau[:, j] - described[:, j]) / max(float(np.std(described[:, j])), 1e-9) for j in joints]
    return joints[int(np.argmax(apart))]


def _excerpt(t: Array, y: Array, seconds: float) -> slice:
    """Select the part of a log of this length [s] in which `y` varies most."""
    if t[-1] - t[0] <= seconds:
        return slice(None)
    starts = np.searchsorted(t, np.arange(t[0], t[-1] - seconds, seconds / 2.0))
    ends = np.searchsorted(t, t[starts] + seconds)
    best = int(np.argmax([np.std(y[a:b]) for a, b in zip(starts, ends, strict=True)]))
    return slice(int(starts[best]), int(ends[best]))


def _line(name: str, role: LineRole, x: Array, y: Array, rows: slice) -> PictureLine:
    from steelyard.report.plots.series import decimate, in_steps

    keep = decimate(y[rows], _MOST)
    return PictureLine(name, role, tuple(in_steps(x[rows][keep])), tuple(in_steps(y[rows][keep])))


def _near(y: Array, limits: Sequence[float]) -> tuple[float, ...]:
    """Select the `limits` that are close enough to the signal to be drawn."""
    reach = max(4.0 * float(np.ptp(y)), 2.0 * float(np.max(np.abs(y), initial=0.0)))
    return tuple(float(x) for x in limits if np.isfinite(x) and abs(x) <= reach)
