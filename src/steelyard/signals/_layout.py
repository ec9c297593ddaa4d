"""`Layout`: which column of a file is which signal of which joint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from steelyard.errors import LogError, UnknownNameError
from steelyard.robot.robot import Robot
from steelyard.signals.log import CHANNEL, Finding
from steelyard.signals.mapping import LogMapping
from steelyard.signals.recognise import (
    recognise_named,
    recognise_numbered,
    recognise_time,
    recognise_wrench,
    same_joint,
)
from steelyard.signals.table import NAMELESS

Effort = Literal["torque", "current"]
TorqueKind = Literal["torque", "current", "none"]

PLACES = ("{}", "{0}", "{joint}")  # in a pattern of columns
MOTION = ("position", "velocity", "acceleration")
_SPAN = re.compile(r"(\d{1,4})-(\d{1,4})")  # columns by number: from the first to the last


@dataclass(frozen=True)
class Layout:
    """The columns that a log of a robot is made of.

    `joints` are those that the mapping's lists speak of, in their order; `needed` are the places among them that the
    robot's joints depend on: its own, in its order, or all of them if motors and joints are coupled. Each signal has
    one column per needed joint. `time` is None for a log with a rate only.
    """

    joints: tuple[str, ...]
    needed: tuple[int, ...]
    time: str | None
    columns: dict[str, tuple[str, ...]]
    torque_kind: TorqueKind
    findings: tuple[Finding, ...] = ()
    channels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, each once."""
        time = () if self.time is None else (self.time,)
        all_of = {**self.columns, **self.channels}
        return tuple(dict.fromkeys([*time, *(name for names in all_of.values() for name in names)]))


def find_layout(names: Sequence[str], file_joints: Sequence[str], robot: Robot, mapping: LogMapping) -> Layout:
    """Which of the columns `names` is what, by the mapping where it speaks and by recognition where it does not."""
    joints = _joints(names, file_joints, robot, mapping)
    missing = [name for name in robot.joint_names if name not in joints]
    if missing:
        raise LogError(
            f"joint {', '.join(repr(name) for name in missing)} of robot '{robot.name}' is not in the log, whose "
            f"joints are {', '.join(joints)}; name the columns' joints with the mapping's key joints, or lock those "
            "that did not move by naming the ones that did (--joints, joints=[…])."
        )
    needed = tuple(range(len(joints))) if mapping.coupling else tuple(joints.index(name) for name in robot.joint_names)
    mapping.coupling_matrix(len(joints))  # or it is an error
    motors = mapping.motor_names(joints)

    def found_columns(signal: str) -> tuple[str, ...] | None:
        if mapping.coupling and mapping.on_motor(signal):
            return _columns(signal, names, motors, tuple(range(len(motors))), mapping)
        return _columns(signal, names, joints, needed, mapping)

    columns = {signal: found for signal in MOTION if (found := found_columns(signal)) is not None}
    if "position" not in columns:
        numbers = " by number (position = [2, 3, …])" if names[0].startswith(NAMELESS) else ""
        raise LogError(
            f"no column holds the joints' positions; name them in a mapping{numbers}. Columns: {_listed(names)}."
        )
    kind: TorqueKind = "none"
    for signal in _efforts(mapping):
        found = found_columns(signal)
        if found is not None:
            kind = signal
            columns[signal] = found
            break
    findings = _findings(joints, file_joints, robot, mapping, kind)
    channels = _channels(names, joints, needed, mapping)
    return Layout(joints, needed, _time(names, mapping), columns, kind, findings, channels)


def _channels(
    names: Sequence[str], joints: tuple[str, ...], needed: tuple[int, ...], mapping: LogMapping
) -> dict[str, tuple[str, ...]]:
    """Signals beside the motion; one that was only recognised, and does not fit, is left out."""
    out: dict[str, tuple[str, ...]] = {}
    try:
        warm = _columns("temperature", names, joints, needed, mapping)
    except LogError:
        if mapping.temperature is not None:
            raise
        warm = None
    if warm:
        out["temperature"] = warm
    wrench = tuple(_known(name, names) for name in mapping.wrench) or recognise_wrench(names)
    if wrench:
        out["wrench"] = wrench
    for name, columns in _saved_channels(names).items():  # as `Log.save` wrote them
        of_joints = name == "temperature" and len(columns) == len(joints)
        out.setdefault(name, tuple(columns[k] for k in needed) if of_joints else columns)
    return out


def _saved_channels(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for name in names:
        if match := re.fullmatch(rf"{CHANNEL}(.+?)_?(\d+)", name):
            out[match[1]] = (*out.get(match[1], ()), name)
    return out


def _joints(names: Sequence[str], file_joints: Sequence[str], robot: Robot, mapping: LogMapping) -> tuple[str, ...]:
    if mapping.joints:
        return mapping.joints
    # Columns that carry the joints' names may come in any order; numbered ones come in the file's.
    named = all(f"position/{name}" in names for name in robot.joint_names)
    if not file_joints or named or (mapping.coupling and len(mapping.coupling) != len(mapping.coupling[0])):
        return robot.joint_names
    return tuple(
        next((own for own in robot.joint_names if same_joint(own, name, mapping.prefix)), name) for name in file_joints
    )


def _time(names: Sequence[str], mapping: LogMapping) -> str | None:
    if mapping.rate is not None:
        return None
    if mapping.time is not None:
        return _known(mapping.time, names)
    time = recognise_time(names)
    if time is None:
        raise LogError(
            f'no column holds the time; name it in a mapping (time = "…") or give the samples per second '
            f"(time = {{rate = 1000}}). Columns: {_listed(names)}."
        )
    return time


def _efforts(mapping: LogMapping) -> tuple[Effort, ...]:
    """Where the torque may come from, best first."""
    if mapping.torque is not None and mapping.torque != ():
        return ("torque",)
    if mapping.current is not None and mapping.current != ():
        return ("current",)
    return ("current", "torque") if mapping.torque_constants else ("torque", "current")


def _columns(
    signal: str, names: Sequence[str], joints: tuple[str, ...], needed: tuple[int, ...], mapping: LogMapping
) -> tuple[str, ...] | None:
    stated = mapping.columns(signal)
    if stated == ():
        return None
    if stated is None:
        wanted = [joints[k] for k in needed]
        by_name = recognise_named(signal, names, wanted, mapping.prefix)
        if by_name is not None:
            return by_name
        by_number = recognise_numbered(signal, names, joints, mapping.prefix)
        return None if by_number is None else tuple(by_number[k] for k in needed)
    if isinstance(stated, str) and (span := _SPAN.fullmatch(stated)) and stated not in names:
        stated = tuple(str(k) for k in range(int(span[1]), int(span[2]) + 1))
    if isinstance(stated, str):
        if not any(place in stated for place in PLACES) and len(joints) > 1:
            raise LogError(
                f"{mapping.source}: {signal}: '{stated}' is one column, but there are {len(joints)} joints; write a "
                f"list, or a pattern with {{}} for the joint's number or {{joint}} for its name."
            )
        stated = spelled_out(stated, joints)
    if len(stated) != len(joints):
        raise LogError(
            f"{mapping.source}: {signal} names {len(stated)} columns, but there are {len(joints)} joints: "
            f"{', '.join(joints)}."
        )
    return tuple(_known(stated[k], names) for k in needed)


def spelled_out(pattern: str, joints: Sequence[str]) -> tuple[str, ...]:
    """The columns of a `pattern` for all `joints`: {} is a joint's number from 1, {0} from 0, {joint} its name."""
    return tuple(
        pattern.replace("{}", str(k + 1)).replace("{0}", str(k)).replace("{joint}", name)
        for k, name in enumerate(joints)
    )


def _known(name: str, names: Sequence[str]) -> str:
    """The column called `name`, or of that number, from 1."""
    if name not in names and name.isdecimal() and 1 <= int(name[:9]) <= len(names):
        return names[int(name[:9]) - 1]
    if name not in names:
        raise LogError(str(UnknownNameError("column", name, names)))
    return name


def _findings(
    joints: tuple[str, ...], file_joints: Sequence[str], robot: Robot, mapping: LogMapping, kind: TorqueKind
) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    extra = [name for name in dict.fromkeys([*joints, *file_joints]) if name not in robot.joint_names]
    if extra and not (mapping.joints and not set(mapping.joints) - set(robot.joint_names)):
        message = f"The log has joints that the robot does not have: {', '.join(extra)}; not used."
        findings.append(Finding("extra_joints", "note", message, count=len(extra)))
    if kind == "none":
        findings.append(Finding("no_torque", "warning", "The log has neither torques nor currents."))
    elif kind == "current" and not mapping.torque_constants:
        message = "Currents stand for torques, in A: no torque_constants are given, so no mass can be told in kg."
        findings.append(Finding("torque_is_current", "warning", message))
    elif kind == "torque" and mapping.torque_constants:
        message = "torque_constants are not used: the log's torque columns are taken."
        findings.append(Finding("unused_key", "note", message))
    stated = [name for name, value in (("gear_ratio", mapping.gear_ratio), ("coupling", mapping.coupling)) if value]
    if stated and not any(mapping.on_motor(signal) for signal in ("position", "velocity", "torque")):
        findings.append(
            Finding("joint_side", "note", f"{' and '.join(stated)} not applied to the signals: the file is joint side.")
        )
    return tuple(findings)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:40]) + (f", … ({len(names)} in all)" if len(names) > 40 else "")
