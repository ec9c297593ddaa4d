"""`Layout`: which column of a file is which signal of which joint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from steelyard.errors import LogError, UnknownNameError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding
from steelyard.signals.mapping import LogMapping

# Recognise what columns mean by their names, for the layouts that most logs have.


# Earlier names win where a file has several. Capitals do not matter.
NAMES = {
    "time": ("t", "time", "timestamp", "stamp", "time_s", "t_s", "seconds"),
    "position": (
        "q",
        "position",
        "pos",
        "positions",
        "joint_position",
        "joint_positions",
        "actual_q",
        "angle",
        "theta",
    ),
    "velocity": (
        *("dq", "qd", "qdot", "velocity", "vel", "velocities", "joint_velocity", "joint_velocities", "actual_qd"),
    ),
    "acceleration": ("ddq", "qdd", "qddot", "acceleration", "acc"),
    "torque": ("tau", "torque", "effort", "torques", "efforts", "joint_torque", "joint_torques", "trq", "force"),
    "temperature": ("temperature", "temp", "joint_temperature", "motor_temperature"),
    "current": ("i", "current", "cur", "currents", "motor_current", "joint_current", "actual_current"),
}
# Of a force–torque sensor: three forces, three torques.
WRENCHES = (
    ("fx", "fy", "fz", "tx", "ty", "tz"),
    ("fx", "fy", "fz", "mx", "my", "mz"),
    ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z"),
)
GAP = r"[ _./:-]?"


def recognise_time(names: Sequence[str]) -> str | None:
    """The column that holds the time."""
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[name] for name in NAMES["time"] if name in lower), None)


def recognise_wrench(names: Sequence[str]) -> tuple[str, ...]:
    """The six columns of a force–torque sensor, or none."""
    lower = {_plain(name): name for name in reversed(names)}
    return next((tuple(lower[n] for n in six) for six in WRENCHES if all(n in lower for n in six)), ())


def recognise_named(signal: str, names: Sequence[str], joints: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a signal that carry the joints' names, in the order of the joints; None if there are none.

    Some joints found and others not is an error.
    """
    lower = {_plain(name): name for name in reversed(names)}
    for word in NAMES[signal]:
        for pattern in ("{word}/{joint}", "{joint}/{word}"):
            wanted = [_plain(pattern.format(word=word, joint=joint)) for joint in joints]
            found = [lower.get(name) for name in wanted]
            there = [name for name in found if name is not None]
            if len(there) == len(joints):
                return tuple(there)
            # A joint called "1" is a number, and numbers are counted elsewhere.
            missing = [joint for joint, name in zip(joints, found, strict=True) if name is None]
            if there and not any(joint.isdigit() for joint in joints):
                raise LogError(
                    f"no {signal} column for joint {_quoted(missing)}; there is '{there[0]}', so a column such as "
                    f"'{there[0].replace(_other(joints, missing), missing[0])}' is expected."
                )
    return None


def recognise_numbered(signal: str, names: Sequence[str], joints: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a signal that are numbered from 0 or 1, one per joint; None if there are none."""
    for word in NAMES[signal]:
        part = re.escape(word)
        after = re.compile(rf"{part}{GAP}(?:(?:joint|axis|j){GAP})?[\[(]?(\d+)[\])]?", re.IGNORECASE)
        before = re.compile(rf"(?:joint|axis|j){GAP}(\d+){GAP}{part}", re.IGNORECASE)
        for pattern in (after, before):
            numbers = {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}
            if numbers:
                return _counted(signal, numbers, joints)
        single = next((name for name in names if name.lower() == word and word != "i"), None)
        if single is not None and len(joints) == 1:
            return (single,)
    return None


def _counted(signal: str, numbers: dict[int, str], joints: Sequence[str]) -> tuple[str, ...]:
    first = 0 if 0 in numbers else 1
    example = numbers[min(numbers)]
    if len(numbers) != len(joints):
        raise LogError(
            f"there are {len(numbers)} {signal} columns ({', '.join(numbers[k] for k in sorted(numbers))}), but "
            f"{len(joints)} joints: {', '.join(joints)}. Name the joints of the columns with the mapping's key joints."
        )
    missing = next((k for k in range(first, first + len(joints)) if k not in numbers), None)
    if missing is not None:
        raise LogError(
            f"{signal} column number {missing} is missing (such as '{re.sub(r'[0-9]+', str(missing), example)}')."
        )
    return tuple(numbers[k] for k in range(first, first + len(joints)))


def _plain(name: str) -> str:
    return re.sub(r"[ ./:-]", "_", name.lower())


def _other(joints: Sequence[str], missing: Sequence[str]) -> str:
    return next(joint for joint in joints if joint not in missing)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


Effort = Literal["torque", "current"]
TorqueKind = Literal["torque", "current", "none"]

MOTION = ("position", "velocity", "acceleration")


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
    columns = {
        signal: found for signal in MOTION if (found := _columns(signal, names, joints, needed, mapping)) is not None
    }
    if "position" not in columns:
        raise LogError(f"no column holds the joints' positions; name them in a mapping. Columns: {_listed(names)}.")
    kind: TorqueKind = "none"
    for signal in _efforts(mapping):
        found = _columns(signal, names, joints, needed, mapping)
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
    return out


def _joints(names: Sequence[str], file_joints: Sequence[str], robot: Robot, mapping: LogMapping) -> tuple[str, ...]:
    if mapping.joints:
        return mapping.joints
    # Columns that carry the joints' names may come in any order; numbered ones come in the file's.
    named = all(f"position/{name}" in names for name in robot.joint_names)
    return tuple(file_joints) if file_joints and not named else robot.joint_names


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
        by_name = recognise_named(signal, names, wanted)
        if by_name is not None:
            return by_name
        by_number = recognise_numbered(signal, names, joints)
        return None if by_number is None else tuple(by_number[k] for k in needed)
    if isinstance(stated, str):
        if "{}" not in stated and "{joint}" not in stated and len(joints) > 1:
            raise LogError(
                f"{mapping.source}: {signal}: '{stated}' is one column, but there are {len(joints)} joints; write a "
                f"list, or a pattern with {{}} for the joint's number or {{joint}} for its name."
            )
        stated = tuple(stated.replace("{}", str(k + 1)).replace("{joint}", name) for k, name in enumerate(joints))
    if len(stated) != len(joints):
        raise LogError(
            f"{mapping.source}: {signal} names {len(stated)} columns, but there are {len(joints)} joints: "
            f"{', '.join(joints)}."
        )
    return tuple(_known(stated[k], names) for k in needed)


def _known(name: str, names: Sequence[str]) -> str:
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
