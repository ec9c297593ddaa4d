"""Break-away torque: what it takes to set a joint in motion, from slow ramps of torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Presentation, Viewed
from steelyard.ground.reasons import explained
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.given import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

# A joint has set off once it has moved this far from where it stood, rad or m.
_MOVED = 2e-3
_RESTED = 0.2  # s it must have stood before


@dataclass(frozen=True, eq=False)
class BreakAway:
    """Torques (less gravity, if a model was given) at which a joint set off, in each direction."""

    joint: str
    forward: Array
    backward: Array

    @property
    def means(self) -> tuple[float, float]:
        """Forward and backward, as magnitudes; NaN where it never set off that way."""
        return tuple(float(np.mean(np.abs(x))) if len(x) else float("nan") for x in (self.forward, self.backward))  # type: ignore[return-value]


def break_away(log: Log, joint: int, model: Model | None = None, moved: float = _MOVED) -> BreakAway:
    """The torque just before every start from rest of joint number `joint` (from 0) in `log`.

    Gravity is taken off by `model` (None: there is none); `moved` (rad, m) from where it stood, a joint has started.
    """
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: there is no torque in the log.")
    held = np.zeros(len(log)) if model is None else model.gravity_torque(log.q)[:, joint]
    tau = log.tau[:, joint] - held
    starts: dict[int, list[float]] = {1: [], -1: []}
    for begin, end in segments_of(log):
        k = begin
        while k < end:
            away = np.flatnonzero(np.abs(log.q[k:end, joint] - log.q[k, joint]) > moved)
            if not away.size:
                break
            left = k + int(away[0])
            # Walk back to the last sample that was still within a tenth of the threshold: there it let go.
            rest = k + int(np.flatnonzero(np.abs(log.q[k:left, joint] - log.q[k, joint]) <= 0.1 * moved)[-1])
            if log.t[rest] - log.t[k] >= _RESTED:
                side = 1 if log.q[left, joint] > log.q[k, joint] else -1
                starts[side].append(float(tau[rest]))
                k = _next_rest(log, joint, left, end, moved)
            else:
                k = left
    return BreakAway(log.joints[joint], np.array(starts[1]), np.array(starts[-1]))


@dataclass(frozen=True, eq=False)
class BreakAwayRun(Viewed):
    """Break-away torques of some joints of a robot.

    Attributes:
        robot: The robot.
        joints: What was found, joint by joint.
        gravity_from: What gravity was taken off by: the name of a model, or "" where it was not.
    """

    robot: Robot
    joints: tuple[BreakAway, ...]
    gravity_from: str = ""

    def to_json(self) -> dict[str, Any]:
        joints = [
            {
                "joint": j.joint,
                "unit": self.robot.joints[self.robot.joint_index(j.joint)].effort_unit,
                "forward": _summary(j.forward),
                "backward": _summary(j.backward),
            }
            for j in self.joints
        ]
        document = {"joints": joints, "gravity_from": self.gravity_from, "on": "joint"}
        return explained(document, {
            "joints/*/*/mean": "The joint never set off that way.", "joints/*/*/std": "That takes two starts or more.",
        })  # fmt: skip

    def files(self) -> dict[str, Content]:
        rows = [
            (j.joint, way, x)
            for j in self.joints
            for way, some in (("forward", j.forward), ("backward", j.backward))
            for x in some.tolist()
        ]
        return {"starts.csv": csv_text([("joint", "direction", "torque"), *rows])}

    def view(self) -> Presentation:
        from steelyard.friction.breakaway_page import break_away_report, print_break_away

        return break_away_report, print_break_away


def _summary(starts: Array) -> dict[str, Any]:
    """Of the torques in one direction, as magnitudes."""
    size = np.abs(starts)
    mean, std = float(np.mean(size)) if len(size) else None, float(np.std(size, ddof=1)) if len(size) > 1 else None
    return {"starts": len(size), "mean": mean, "std": std}


def measure_break_away(
    robot: RobotLike, logs: LogsLike, joints: Sequence[str] = (), model: Model | None = None
) -> BreakAwayRun:
    """Find the torques at which joints set off from rest under slow ramps: what `steelyard friction --break-away` does.

    Args:
        robot: The robot, as `load_robot` takes it.
        logs: Logs of slow ramps of torque.
        joints: Joints to look at; none: all that set off.
        model: Model whose gravity is taken off the torque; None: the description's, where it states inertias.

    Raises:
        SteelyardError: If no joint sets off from rest.
    """
    arm = as_robot(robot)
    used = model if model is not None else Model.nominal(arm) if arm.has_inertia else None
    given = as_logs(logs, arm)
    found = []
    for name in joints or arm.joint_names:
        index = arm.joint_index(name)
        each = [break_away(log, index, used) for log in given]
        ways = (np.concatenate([getattr(one, way) for one in each]) for way in ("forward", "backward"))
        found.append(BreakAway(name, *ways))
    told = tuple(j for j in found if joints or len(j.forward) or len(j.backward))
    if not any(len(j.forward) or len(j.backward) for j in told):
        raise SteelyardError(
            f"No joint sets off from rest in the logs (still for {_RESTED:g} s, then moved by {_MOVED:g} rad or m); "
            "let each stand, and raise its torque slowly until it moves."
        )
    source = "" if used is None else "the model" if model is not None else "the description"
    return BreakAwayRun(arm, told, source)


def _next_rest(log: Log, joint: int, start: int, end: int, moved: float) -> int:
    """The next sample from which the joint stands for a while."""
    t, q = log.t, log.q[:, joint]
    for k in range(start, end):
        until = int(np.searchsorted(t, t[k] + _RESTED))
        if until >= end:
            return end
        if np.ptp(q[k : until + 1]) <= 0.1 * moved:
            return k
    return end
