"""`Layout`: assigns the columns of a file to the signals of the joints."""

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

PLACES = ("{}", "{0}", "{joint}")  # placeholders in a pattern of columns
MOTION = ("position", "velocity", "acceleration")
_SPAN = re.compile(r"(\d{1,4})-(\d{1,4})")  # a range of column numbers


@dataclass(frozen=True)
class Layout:
    """The columns of a robot's log.

    Attributes:
        joints: Joints of the mapping's lists, in their order.
        needed: Indices of the joints that the robot needs: its own, in its order, or all if motors are coupled.
        time: Column of the time; None for a log with a rate only.
        columns: Columns of each signal, one per needed joint.
        torque_kind: Source of the torque.
        findings: Remarks on the layout.
        channels: Columns of further signals.
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
        """Names of all columns, each once."""
        time = () if self.time is None else (self.time,)
        all_of = {**self.columns, **self.channels}
        return tuple(dict.fromkeys([*time, *(name for names in all_of.values() for name in names)]))


def find_layout(names: Sequence[str], file_joints: Sequence[str], robot: Robot, mapping: LogMapping) -> Layout:
    """Assign columns to signals, by the mapping or else by recognition of their names.

    Args:
        names: Columns of the file.
        file_joints: Joint names in the file.
        robot: Robot.
        mapping: Mapping of the file.
    """
    joints = _joints(names, file_joints, robot, mapping)
    missing = [name for name in robot.joint_names if name not in joints]
    if missing:
        raise LogError(
            f"joint {', '.join(repr(name) for name in missing)} of robot '{robot.name}' is not in the log, whose "
            f"joints are {', '.join(joints)}; name the joints of the columns with the mapping's key joints, or lock "
            "joints that did not move by naming the moving ones (--joints, joints=[…])."
        )
    needed = tuple(range(len(joints))) if mapping.coupling else tuple(joints.index(name) for name in robot.joint_names)
    mapping.coupling_matrix(len(joints))  # raises an error if it does not fit
    motors = mapping.motor_names(joints)

    def columns_of(signal: str) -> tuple[str, ...] | None:
        if mapping.coupling and mapping.on_motor(signal):
            return _columns(signal, names, motors, tuple(range(len(motors))), mapping)
        return _columns(signal, names, joints, needed, mapping)

    columns = {signal: own for signal in MOTION if (own := columns_of(signal)) is not None}
    if "position" not in columns:
        numbers = " by number (position = [2, 3, …])" if names[0].startswith(NAMELESS) else ""
        raise LogError(
            f"no columns with joint positions were recognised; name them in a mapping{numbers}. "
            f"Columns: {_listed(names)}."
        )
    kind: TorqueKind = "none"
    for signal in _efforts(mapping):
        own = columns_of(signal)
        if own is not None:
            kind = signal
            columns[signal] = own
            break
    findings = _findings(joints, file_joints, robot, mapping, kind)
    channels = _channels(names, joints, needed, mapping)
    return Layout(joints, needed, _time(names, mapping), columns, kind, findings, channels)


def _channels(
    names: Sequence[str], joints: tuple[str, ...], needed: tuple[int, ...], mapping: LogMapping
) -> dict[str, tuple[str, ...]]:
    """Find further signals; a recognised one that does not fit is omitted."""
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
    out |= {name: tuple(_known(column, names) for column in own) for name, own in mapping.channels.items()}
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
    # Columns with joint names may have any order; numbered ones have the order of the file's joints.
    named = all(f"position/{name}" in names for name in robot.joint_names)
    if not file_joints or named or (mapping.coupling and len(mapping.coupling) != len(mapping.coupling[0])):
        return robot.joint_names
    return tuple(
        next((own for own in robot.joint_names if same_joint(own, name, mapping.prefix)), name) for name in file_joints
    )


class NoTimeError(LogError):
    """A log has no time, which only a table of poses at rest may lack."""


def _time(names: Sequence[str], mapping: LogMapping) -> str | None:
    if mapping.rate is not None:
        return None
    if mapping.time is not None:
        return _known(mapping.time, names)
    time = recognise_time(names)
    if time is None:
        raise NoTimeError(
            f'no column with the time was recognised; name it in a mapping (time = "…") or give the samples per '
            f"second (time = {{rate = 1000}}). Columns: {_listed(names)}."
        )
    return time


def _efforts(mapping: LogMapping) -> tuple[Effort, ...]:
    """Return the possible sources of the torque, best first."""
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
        stated = expand_pattern(stated, joints)
    if len(stated) != len(joints):
        raise LogError(
            f"{mapping.source}: {signal} names {len(stated)} columns, but there are {len(joints)} joints: "
            f"{', '.join(joints)}."
        )
    return tuple(_known(stated[k], names) for k in needed)


def expand_pattern(pattern: str, joints: Sequence[str]) -> tuple[str, ...]:
    """Expand a pattern to one column per joint.

    Args:
        pattern: Pattern; {} is the number of a joint from 1, {0} from 0, {joint} its name.
        joints: Names of the joints.
    """
    return tuple(
        pattern.replace("{}", str(k + 1)).replace("{0}", str(k)).replace("{joint}", name)
        for k, name in enumerate(joints)
    )


def _known(name: str, names: Sequence[str]) -> str:
    """Return the column with this name, or with this number from 1."""
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
        message = "The torque is a current in A: without torque_constants, masses are not identifiable in kg."
        findings.append(Finding("torque_is_current", "warning", message))
    elif kind == "torque" and mapping.torque_constants:
        message = "torque_constants are not used, because the log has torque columns."
        findings.append(Finding("unused_key", "note", message))
    stated = [name for name, value in (("gear_ratio", mapping.gear_ratio), ("coupling", mapping.coupling)) if value]
    if stated and not any(mapping.on_motor(signal) for signal in ("position", "velocity", "torque")):
        findings.append(
            Finding("joint_side", "note", f"{' and '.join(stated)} not applied: the signals are on the joint side.")
        )
    return tuple(findings)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:40]) + (f", … ({len(names)} in total)" if len(names) > 40 else "")
