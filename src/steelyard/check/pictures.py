"""`FindingPicture`: the few numbers that a finding can be seen in, for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.check._description import nominal_torque
from steelyard.check._evidence import Evidence, Fit
from steelyard.check.explained import friction_columns
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log

LineRole = Literal["measured", "expected", "other", "points"]
# What a finding is seen in, by its kind; a kind that is not named is told by words alone.
_RAW_TORQUE = ("dead_torque", "quantised", "saturated", "echo", "drop_out", "all_dead", "torque_limit")
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
# A torque is compared over so many seconds, in which it changes most; a delay is seen in a few.
_SECONDS, _SECONDS_OF_DELAY = 20.0, 3.0
_MOST = 600


@dataclass(frozen=True)
class PictureLine:
    """A line: its `name`, what it is (`role`), and its points."""

    name: str
    role: LineRole
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class FindingPicture:
    """A picture of a finding.

    Args:
        title: what is drawn.
        across: what the horizontal axis is, with its unit.
        up: likewise the vertical one.
        about: what to look for.
        lines: that are drawn, the last on top.
        bounds: limits, as heights.
    """

    title: str
    across: str
    up: str
    about: str
    lines: tuple[PictureLine, ...]
    bounds: tuple[float, ...] = ()


def pictures_of(
    entries: Sequence[Finding], robot: Robot, log: Log, seen: Evidence | None = None,
    fits: Mapping[int, Fit] | None = None,
) -> dict[str, FindingPicture]:  # fmt: skip
    """A picture of every complaint among `entries` that one can be made of, by the finding's key.

    Args:
        entries: what was found.
        robot: whose log it is.
        log: as it was read, its beginning if it is long.
        seen: its prepared rows; None where it is too broken for them.
        fits: of every joint's torque by itself, by the joint's number.
    """
    wanted = {e.key: e for e in entries if e.rank > 1}
    made = {key: _picture(e, robot, log, seen, fits or {}) for key, e in wanted.items()}
    return {key: picture for key, picture in made.items() if picture is not None}


def _picture(
    entry: Finding, robot: Robot, log: Log, seen: Evidence | None, fits: Mapping[int, Fit]
) -> FindingPicture | None:
    names = robot.joint_names
    joints = [names.index(name) for name in (entry.joint or "").split(", ") if name in names]
    whole = slice(None)
    if entry.kind in _PHYSICS and seen is not None and seen.rows > 1:
        used = [j for j in joints if j in seen.joints] or ([] if joints else list(seen.joints))
        return _against_model(entry, seen, fits, used) if used else None
    if entry.kind in _STAMPS and len(log) > 2:
        steps = 1e3 * np.diff(log.t)
        lines = (_line("step", "measured", log.t[1:], steps, whole),)
        about = "From each sample to the next; an even line is an even clock."
        return FindingPicture("Time between samples", "time [s]", "step [ms]", about, lines)
    if entry.kind in _VELOCITY and log.dq is not None:
        k = joints[0] if joints else int(np.argmax(np.std(log.dq, axis=0)))
        return _velocity(robot, log, k)
    if entry.kind in _RAW_TORQUE and log.tau is not None and "position" not in entry.message:
        k = joints[0] if joints else int(np.argmax(np.std(log.tau, axis=0)))
        unit, limit = robot.joints[k].effort_unit, robot.joints[k].effort
        lines = (_line("logged", "measured", log.t, log.tau[:, k], whole),)
        about = "Every sample as it was logged; a dashed line is the limit that the description states."
        return FindingPicture(
            f"Torque of '{names[k]}'", "time [s]", f"torque [{unit}]", about, lines,
            _near(log.tau[:, k], (-limit, limit)),
        )  # fmt: skip
    if entry.kind in (*_POSITION, "drop_out"):
        k = joints[0] if joints else int(np.argmax(np.std(log.q, axis=0)))
        joint = robot.joints[k]
        about = "Every sample as it was read; a dashed line is a limit that the description states."
        lines = (_line("logged", "measured", log.t, log.q[:, k], whole),)
        return FindingPicture(
            f"Position of '{joint.name}'", "time [s]", f"position [{joint.unit}]", about, lines,
            _near(log.q[:, k], (joint.lower, joint.upper)),
        )  # fmt: skip
    return None


def _against_model(entry: Finding, seen: Evidence, fits: Mapping[int, Fit], joints: Sequence[int]) -> FindingPicture:
    """The torque that was measured, beside the one that the motion asks for."""
    robot, time = seen.robot, np.concatenate([m.t[m.keep] for m in seen.motions])
    described = nominal_torque(robot, seen.q, seen.dq, seen.ddq) if robot.has_inertia else None
    joint = joints[0] if len(joints) == 1 or described is None else _farthest(seen, described, joints)
    measured, named = seen.tau[:, joint], robot.joints[joint]
    title, unit = f"Torque of '{named.name}'", named.effort_unit
    fitted = seen.A[seen.joints.index(joint)] @ fits[joint].values if joint in fits else None
    if entry.kind == "sign" and described is None and fitted is not None:
        return _friction(seen, joint, fits[joint], title)
    own = described is None or entry.kind in ("unexplained", "delay", "warming", "inconsistent")
    expected = fitted if own and fitted is not None else None if described is None else described[:, joint]
    rows = _excerpt(time, measured, _SECONDS_OF_DELAY if entry.kind == "delay" else _SECONDS)
    lines = [_line("measured", "measured", time, measured, rows)]
    about = "Both low-passed alike, where the torque changes most."
    if expected is not None:
        name = "best that any inertia and friction give" if expected is fitted else "asked for by the description"
        lines = [_line(name, "expected", time, expected, rows), *lines]
        if expected is not fitted:
            about += " The description knows nothing of friction, which stands beside it."
    partner = [j for j in joints if j != joint]
    if entry.kind in ("order", "coupled") and entry.joint and partner:
        other = robot.joints[partner[0]].name
        lines = [_line(f"measured at '{other}'", "other", time, seen.tau[:, partner[0]], rows), *lines]
    return FindingPicture(title, "time [s]", f"torque [{unit}]", about, tuple(lines))


def _friction(seen: Evidence, joint: int, found: Fit, title: str) -> FindingPicture:
    """Where nothing is known of inertias: what goes with the speed, which friction lets rise and never fall."""
    from steelyard.report.plots.series import decimate_over, in_steps  # who calculates loads no report

    dq, e = seen.dq[:, joint], seen.joints.index(joint)
    others = np.delete(np.arange(seen.A[e].shape[1]), friction_columns(seen)[e])
    rest = seen.y[e] - seen.A[e][:, others] @ found.values[others]
    keep = decimate_over(dq, rest, _MOST)
    named = seen.robot.joints[joint]
    line = PictureLine("measured", "points", tuple(in_steps(dq[keep])), tuple(in_steps(rest[keep])))
    about = "What the best fit leaves for friction, which makes it rise from left to right."
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
    about = "The velocity as it was logged, beside the change of the positions; the two should be one line."
    return FindingPicture(f"Velocity of '{named.name}'", "time [s]", f"velocity [{named.unit}/s]", about, lines)


def _farthest(seen: Evidence, described: Array, joints: Sequence[int]) -> int:
    """The joint whose torque is farthest from the description's, against its own size."""
    apart = [np.std(seen.tau[:, j] - described[:, j]) / max(float(np.std(described[:, j])), 1e-9) for j in joints]
    return joints[int(np.argmax(apart))]


def _excerpt(t: Array, y: Array, seconds: float) -> slice:
    """So many `seconds` of a log, where `y` varies most."""
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
    """Those `limits` that do not press the line flat."""
    reach = max(4.0 * float(np.ptp(y)), 2.0 * float(np.max(np.abs(y), initial=0.0)))
    return tuple(float(x) for x in limits if np.isfinite(x) and abs(x) <= reach)
