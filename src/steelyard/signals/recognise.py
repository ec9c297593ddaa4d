"""Recognise what columns mean by their names, for the layouts that most logs have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from steelyard.errors import LogError

# Earlier names win where a file has several. Capitals do not matter.
SIGNAL_WORDS = {
    "time": ("t", "time", "timestamp", "stamp", "time_s", "t_s", "seconds", "__time"),
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
        "qpos",
        "observation.state",
    ),
    "velocity": (
        *(
            "dq",
            "qd",
            "qdot",
            "velocity",
            "vel",
            "velocities",
            "joint_velocity",
            "joint_velocities",
            "actual_qd",
            "qvel",
        ),
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
    # Numbered from one, as this program writes channels, or from zero, as arrays elsewhere.
    *(tuple(f"wrench{gap}{first + k}" for k in range(6)) for gap in ("", "_") for first in (1, 0)),
    *(tuple(f"wrench_{axis}" for axis in axes.split()) for axes in ("fx fy fz tx ty tz", "fx fy fz mx my mz")),
)
_GAP = r"[ _./:-]?"
_PATTERNS = ("{word}/{joint}", "{joint}/{word}")
# Paths whose columns are what the robot was told to do, not what it did.
_COMMANDS = re.compile(r"action|command|cmd|desired|target|reference|setpoint|goal", re.IGNORECASE)


def recognise_time(names: Sequence[str]) -> str | None:
    """The column among `names` that holds the time."""
    lower = {name.lower(): name for name in reversed(names)}
    found = next((lower[name] for name in SIGNAL_WORDS["time"] if name in lower), None)
    behind = [name for name in names if re.split(r"[/.:]", name)[-1].lower() in SIGNAL_WORDS["time"]]
    return behind[0] if found is None and len(behind) == 1 else found


def recognise_wrench(names: Sequence[str]) -> tuple[str, ...]:
    """The six columns among `names` of a force–torque sensor, or none."""
    lower = {_plain(name): name for name in reversed(names)}
    return next((tuple(lower[n] for n in six) for six in WRENCHES if all(n in lower for n in six)), ())


def recognise_named(
    signal: str, names: Sequence[str], joints: Sequence[str], prefixes: Sequence[str] = ()
) -> tuple[str, ...] | None:
    """The columns of a signal that carry the joints' names, in the order of the joints; None if there are none.

    Before the names of all of them one and the same path may stand ("/joint_states/elbow/position"). Some joints found
    and others not is an error.

    Args:
        signal: "position", …
        names: of the file's columns.
        joints: as the robot calls them.
        prefixes: what else may stand before the joints' names, in the file or in the robot.
    """
    lower = {_plain(name): name for name in reversed(names)}
    for word in SIGNAL_WORDS[signal]:
        for spelled in spellings(joints, prefixes):
            for pattern in _PATTERNS:
                found = [lower.get(_plain(pattern.format(word=word, joint=joint))) for joint in spelled]
                there = [name for name in found if name is not None]
                if len(there) == len(joints):
                    return tuple(there)
                # A joint called "1" is a number, and numbers are counted elsewhere.
                missing = [joint for joint, name in zip(spelled, found, strict=True) if name is None]
                if there and not any(joint.isdigit() for joint in joints):
                    raise LogError(
                        f"no {signal} column for joint {_quoted(missing)}; there is '{there[0]}', so a column such as "
                        f"'{there[0].replace(_other(spelled, missing), missing[0])}' is expected."
                    )
    return _behind_a_path(signal, names, prefixes, lambda rests: _all_named(signal, rests, joints, prefixes))


def _all_named(
    signal: str, names: Sequence[str], joints: Sequence[str], prefixes: Sequence[str]
) -> tuple[str, ...] | None:
    lower = {_plain(name): name for name in reversed(names)}
    for word in SIGNAL_WORDS[signal]:
        for spelled in spellings(joints, prefixes):
            for pattern in _PATTERNS:
                found = [lower.get(_plain(pattern.format(word=word, joint=joint))) for joint in spelled]
                if None not in found:
                    return tuple(str(name) for name in found)
    return None


def recognise_numbered(
    signal: str, names: Sequence[str], joints: Sequence[str], prefixes: Sequence[str] = ()
) -> tuple[str, ...] | None:
    """The columns of a signal that are numbered from 0 or 1, one per joint; None if there are none.

    Args:
        signal: "position", …
        names: of the file's columns.
        joints: which of them there are.
        prefixes: what may stand before the columns' names.
    """
    found = _numbered(signal, names, joints)
    if found is None and prefixes:
        short = {_without(name, prefixes): name for name in reversed(names)}
        found = _numbered(signal, list(short), joints)
        found = None if found is None else tuple(short[name] for name in found)
    return found or _behind_a_path(signal, names, prefixes, lambda rests: _numbered(signal, rests, joints))


def _numbered(signal: str, names: Sequence[str], joints: Sequence[str]) -> tuple[str, ...] | None:
    for word in SIGNAL_WORDS[signal]:
        part = re.escape(word)
        after = re.compile(rf"{part}{_GAP}(?:(?:joint|axis|j){_GAP})?[\[(]?(\d+)[\])]?", re.IGNORECASE)
        before = re.compile(rf"(?:joint|axis|j){_GAP}(\d+){_GAP}{part}", re.IGNORECASE)
        for pattern in (after, before):
            numbers = {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}
            if numbers:
                return _counted(signal, numbers, joints)
        single = next((name for name in names if name.lower() == word and word != "i"), None)
        if single is not None and len(joints) == 1:
            return (single,)
    return None


def _behind_a_path(
    signal: str,
    names: Sequence[str],
    prefixes: Sequence[str],
    recognise: Callable[[Sequence[str]], tuple[str, ...] | None],
) -> tuple[str, ...] | None:
    """What is recognised of columns that begin with the same path: one of the `prefixes`, if any is, else any one.

    Commands count only where nothing else is there.
    """
    paths: dict[str, dict[str, str]] = {}
    for name in names:
        for cut in re.finditer(r"[/.:]", name):
            paths.setdefault(name[: cut.end()], {})[name[cut.end() :]] = name
    found: dict[str, tuple[str, ...]] = {}
    odd: list[LogError] = []
    for path, rests in paths.items():
        try:
            if some := recognise(list(rests)):
                found[path] = tuple(rests[rest] for rest in some)
        except LogError as error:
            odd.append(error)
    if not found and len(odd) == 1:
        raise odd[0]
    found = {path: some for path, some in found.items() if path in prefixes} or found
    found = {path: some for path, some in found.items() if not _COMMANDS.search(path)} or found
    if len(set(found.values())) > 1:
        raise LogError(
            f"several groups of columns may be the {signal}: {', '.join(list(found)[:6])}; choose one with the "
            f'mapping\'s key prefix, e.g. prefix = "{next(iter(found))}".'
        )
    return next(iter(found.values()), None)


def spellings(joints: Sequence[str], prefixes: Sequence[str]) -> Iterator[list[str]]:
    """How a file may call the `joints`: as they are, with one of the `prefixes` before them, or without it."""
    yield list(joints)
    for prefix in prefixes:
        yield [prefix + joint for joint in joints]
        if all(joint.startswith(prefix) for joint in joints):
            yield [joint.removeprefix(prefix) for joint in joints]


def same_joint(one: str, other: str, prefixes: Sequence[str]) -> bool:
    """Whether `one` and `other` name the same joint, but for one of the `prefixes` before either."""
    return one == other or any(prefix + one == other or one == prefix + other for prefix in prefixes)


def _without(name: str, prefixes: Sequence[str]) -> str:
    return next((name[len(prefix) :] for prefix in prefixes if name.startswith(prefix)), name)


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
