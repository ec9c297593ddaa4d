"""Recognises columns by their names, for common layouts of logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from steelyard.errors import LogError

# Earlier names have priority. Case is ignored.
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
# Columns of a force–torque sensor: three forces, three torques.
WRENCHES = (
    ("fx", "fy", "fz", "tx", "ty", "tz"),
    ("fx", "fy", "fz", "mx", "my", "mz"),
    ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z"),
    # Numbered from one, as in files of this program, or from zero.
    *(tuple(f"wrench{gap}{first + k}" for k in range(6)) for gap in ("", "_") for first in (1, 0)),
    *(tuple(f"wrench_{axis}" for axis in axes.split()) for axes in ("fx fy fz tx ty tz", "fx fy fz mx my mz")),
)
_GAP = r"[ _./:-]?"
_PATTERNS = ("{word}/{joint}", "{joint}/{word}")
# Paths of commanded signals.
_COMMANDS = re.compile(r"action|command|cmd|desired|target|reference|setpoint|goal", re.IGNORECASE)


def recognise_time(names: Sequence[str]) -> str | None:
    """Return the column of the time among `names`, or None."""
    lower = {name.lower(): name for name in reversed(names)}
    exact = next((lower[name] for name in SIGNAL_WORDS["time"] if name in lower), None)
    after_path = [name for name in names if re.split(r"[/.:]", name)[-1].lower() in SIGNAL_WORDS["time"]]
    return after_path[0] if exact is None and len(after_path) == 1 else exact


def recognise_wrench(names: Sequence[str]) -> tuple[str, ...]:
    """Return the six columns of a force–torque sensor among `names`, or none."""
    lower = {_plain(name): name for name in reversed(names)}
    return next((tuple(lower[n] for n in six) for six in WRENCHES if all(n in lower for n in six)), ())


def recognise_named(
    signal: str, names: Sequence[str], joints: Sequence[str], prefixes: Sequence[str] = ()
) -> tuple[str, ...] | None:
    """Find the columns of a signal by the names of the joints; None if there are none.

    All of them may have the same path as prefix ("/joint_states/elbow/position").

    Args:
        signal: "position", …
        names: Columns of the file.
        joints: Joint names of the robot.
        prefixes: Prefixes of joint names that only the file or only the robot has.

    Raises:
        LogError: If the columns of some joints are missing.
    """
    lower = {_plain(name): name for name in reversed(names)}
    for word in SIGNAL_WORDS[signal]:
        for spelled in spellings(joints, prefixes):
            for pattern in _PATTERNS:
                matches = [lower.get(_plain(pattern.format(word=word, joint=joint))) for joint in spelled]
                present = [name for name in matches if name is not None]
                if len(present) == len(joints):
                    return tuple(present)
                # Joint names that are numbers are handled by `recognise_numbered`.
                missing = [joint for joint, name in zip(spelled, matches, strict=True) if name is None]
                if present and not any(joint.isdigit() for joint in joints):
                    expected = present[0].replace(_other(spelled, missing), missing[0])
                    raise LogError(
                        f"no {signal} column for joint {_quoted(missing)}; there is '{present[0]}', so a column such "
                        f"as '{expected}' is expected."
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
    """Find the columns of a signal with numbers from 0 or 1, one per joint; None if there are none.

    Args:
        signal: "position", …
        names: Columns of the file.
        joints: Names of the joints.
        prefixes: Prefixes of column names.
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
    """Recognise columns with a common path: one of the `prefixes` if possible, else any.

    Commanded signals only count without alternatives.
    """
    paths: dict[str, dict[str, str]] = {}
    for name in names:
        for cut in re.finditer(r"[/.:]", name):
            paths.setdefault(name[: cut.end()], {})[name[cut.end() :]] = name
    found: dict[str, tuple[str, ...]] = {}
    odd: list[LogError] = []
    for path, rests in paths.items():
        try:
            if matches := recognise(list(rests)):
                found[path] = tuple(rests[rest] for rest in matches)
        except LogError as error:
            odd.append(error)
    if not found and len(odd) == 1:
        raise odd[0]
    found = {path: columns for path, columns in found.items() if path in prefixes} or found
    found = {path: columns for path, columns in found.items() if not _COMMANDS.search(path)} or found
    if len(set(found.values())) > 1:
        raise LogError(
            f"several groups of columns may be the {signal}: {', '.join(list(found)[:6])}; choose one with the "
            f'mapping\'s key prefix, e.g. prefix = "{next(iter(found))}".'
        )
    return next(iter(found.values()), None)


def spellings(joints: Sequence[str], prefixes: Sequence[str]) -> Iterator[list[str]]:
    """Yield possible joint names in a file: unchanged, with a prefix, or without it.

    Args:
        joints: Names of the joints.
        prefixes: Prefixes.
    """
    yield list(joints)
    for prefix in prefixes:
        yield [prefix + joint for joint in joints]
        if all(joint.startswith(prefix) for joint in joints):
            yield [joint.removeprefix(prefix) for joint in joints]


def same_joint(one: str, other: str, prefixes: Sequence[str]) -> bool:
    """Whether two names mean the same joint, up to a prefix.

    Args:
        one: Name of a joint.
        other: Name of a joint.
        prefixes: Prefixes that either name may have.
    """
    return one == other or any(prefix + one == other or one == prefix + other for prefix in prefixes)


def _without(name: str, prefixes: Sequence[str]) -> str:
    return next((name[len(prefix) :] for prefix in prefixes if name.startswith(prefix)), name)


def _counted(signal: str, numbers: dict[int, str], joints: Sequence[str]) -> tuple[str, ...]:
    first = 0 if 0 in numbers else 1
    example = numbers[min(numbers)]
    if len(numbers) != len(joints):
        fewer = f"Give --joints with the {len(numbers)} joints of the log, which locks the others, or name"
        advice = fewer if len(numbers) < len(joints) else "Name"
        raise LogError(
            f"there are {len(numbers)} {signal} columns, but {len(joints)} joints. {advice} the joints of the columns "
            f"with the mapping's key joints. Columns: {', '.join(numbers[k] for k in sorted(numbers))}; joints: "
            f"{', '.join(joints)}."
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
