"""Break-away torque of a joint, from slow ramps of torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals.as_logs import LogsLike, as_logs
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

_MOVED = 2e-3  # a joint has started beyond this distance from rest [rad or m]
_REST = 0.2  # time that it must rest before [s]


@short_repr
@dataclass(frozen=True, eq=False)
class BreakAway:
    """Break-away torques of a joint, without gravity if a model was given.

    Attributes:
        joint: Name of the joint.
        forward: Torques of all starts in positive direction [N m or N].
        backward: Torques of all starts in negative direction [N m or N].
    """

    joint: str
    forward: Array
    backward: Array

    @property
    def means(self) -> tuple[float, float]:
        """Mean magnitudes forward and backward; NaN without a start in that direction."""
        return tuple(float(np.mean(np.abs(x))) if len(x) else float("nan") for x in (self.forward, self.backward))  # type: ignore[return-value]


def break_away(log: Log, joint: int, model: Model | None = None, moved: float = _MOVED) -> BreakAway:
    """Find the torque just before every start of a joint from rest.

    Args:
        log: Log with torques.
        joint: Index of the joint.
        model: Model whose gravity torque is subtracted; None: do not subtract gravity.
        moved: The joint has started beyond this distance from rest [rad or m].
    """
    if log.tau is None:
        raise LogError(f"{log.meta.get('source', 'The log')}: there is no torque in the log.")
    gravity = np.zeros(len(log)) if model is None else model.gravity_torque(log.q)[:, joint]
    tau = log.tau[:, joint] - gravity
    starts: dict[int, list[float]] = {1: [], -1: []}
    for begin, end in segments_of(log):
        k = begin
        while k < end:
            beyond = np.flatnonzero(np.abs(log.q[k:end, joint] - log.q[k, joint]) > moved)
            if not beyond.size:
                break
            start = k + int(beyond[0])
            # The break-away is at the last sample within a tenth of the threshold.
            rest = k + int(np.flatnonzero(np.abs(log.q[k:start, joint] - log.q[k, joint]) <= 0.1 * moved)[-1])
            if log.t[rest] - log.t[k] >= _REST:
                side = 1 if log.q[start, joint] > log.q[k, joint] else -1
                starts[side].append(float(tau[rest]))
                k = _next_rest(log, joint, start, end, moved)
            else:
                k = start
    return BreakAway(log.joints[joint], np.array(starts[1]), np.array(starts[-1]))


@short_repr
@dataclass(frozen=True, eq=False)
class BreakAwayRun(OutcomeWithPage):
    """Break-away torques of some joints of a robot.

    Attributes:
        robot: The robot.
        joints: Break-away torques of each joint.
        gravity_from: Source of the subtracted gravity torque; "" if it was not subtracted.
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
            "joints/*/*/mean": "The joint never started in this direction.",
            "joints/*/*/std": "A standard deviation needs two starts.",
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
    """Summarise the magnitudes of the torques in one direction."""
    size = np.abs(starts)
    mean, std = float(np.mean(size)) if len(size) else None, float(np.std(size, ddof=1)) if len(size) > 1 else None
    return {"starts": len(size), "mean": mean, "std": std}


def measure_break_away(
    robot: RobotLike, logs: LogsLike, joints: Sequence[str] = (), model: Model | None = None
) -> BreakAwayRun:
    """Measure break-away torques from slow ramps of torque, as `steelyard friction --break-away` does.

    Args:
        robot: Robot, as `load_robot` takes it.
        logs: Logs of slow ramps of torque.
        joints: Names of the joints; default: all that start.
        model: Model whose gravity torque is subtracted; None: that of the description, if it has inertias.

    Raises:
        SteelyardError: If no joint starts from rest.
    """
    arm = as_robot(robot)
    used = model if model is not None else Model.nominal(arm) if arm.has_inertia else None
    inputs = as_logs(logs, arm)
    results = []
    for name in joints or arm.joint_names:
        index = arm.joint_index(name)
        each = [break_away(log, index, used) for log in inputs]
        sides = (np.concatenate([getattr(one, side) for one in each]) for side in ("forward", "backward"))
        results.append(BreakAway(name, *sides))
    selected = tuple(j for j in results if joints or len(j.forward) or len(j.backward))
    if not any(len(j.forward) or len(j.backward) for j in selected):
        raise SteelyardError(
            f"No joint starts from rest in the logs (still for {_REST:g} s, then moved by {_MOVED:g} rad or m); "
            "let each joint rest, and increase its torque slowly until it moves."
        )
    source = "" if used is None else "the model" if model is not None else "the description"
    return BreakAwayRun(arm, selected, source)


def _next_rest(log: Log, joint: int, start: int, end: int, moved: float) -> int:
    """Find the next sample at the beginning of a rest."""
    t, q = log.t, log.q[:, joint]
    for k in range(start, end):
        until = int(np.searchsorted(t, t[k] + _REST))
        if until >= end:
            return end
        if np.ptp(q[k : until + 1]) <= 0.1 * moved:
            return k
    return end
