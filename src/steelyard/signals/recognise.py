"""Recognise what columns mean by their names, for the layouts that most logs have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.errors import LogError

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
