"""Reads logs for the stage *Data*: proposes and edits mappings, summarises logs and builds their plots.

All functions run in the helper process or in a job, in the studio's folder, with plain data as arguments and results.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.check.columns import ROWS_LOOKED_AT
from steelyard.check.guess import guess_mapping
from steelyard.check.guessed_mapping import GuessedMapping
from steelyard.check.repair_mapping import as_toml
from steelyard.errors import LogError, SteelyardError
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping, as_mapping, file_key, mapping_table
from steelyard.signals.read import read_log
from steelyard.signals.recognise import recognise_time
from steelyard.signals.source import LogFile
from steelyard.signals.table import LogReader, first_rows, open_reader
from steelyard.signals.units import LOG_UNITS
from steelyard.studio.mapping_page import MAPPED_NUMBERS, MAPPED_SIGNALS, MAPPING_HEADER
from steelyard.studio.pyramid import Pyramid, build_pyramid
from steelyard.studio.robot_files import robot_scene
from steelyard.studio.studio_folder import StudioFolder

# Text files below this size have their rows counted, larger ones estimated [bytes].
_MOST_COUNTED_BYTES = 50_000_000
_SIGNED = ("position", "velocity", "torque")


@dataclass(frozen=True)
class ColumnMeaning:
    """Meaning of a column.

    Attributes:
        column: Name of the column.
        signal: Signal; "" if unused.
        joint: Name of the joint; "" for the time.
        unit: Unit; "" for SI.
        sign: 1, or −1 if the axis is reversed.
    """

    column: str
    signal: str = ""
    joint: str = ""
    unit: str = ""
    sign: int = 1


def project_robot() -> Robot | None:
    """Load the robot of the project in the current folder; None without one."""
    project = StudioFolder(".").project()
    return project.load_robot() if project.robot else None


def project_mapping() -> str:
    """Return the path of the project's mapping, or ""."""
    project = StudioFolder(".").project()
    return project.path_of(project.mapping)


def check_readable(log: str) -> None:
    """Raise the reader's error if a `log` cannot be read or is empty."""
    reader = open_reader(log)
    rows = reader.table(reader.names, first_rows(reader.blocks(reader.names), 1000), 0)
    if not len(rows):
        raise LogError(f"{log}: is empty. Record the log again, or choose another file.")


def facts(log: str) -> dict[str, Any]:
    """Summarise the first rows of a `log`: rows, sample rate, kind of torque, findings; or an `error`."""
    robot = project_robot()
    reader = open_reader(log)
    exact = reader.row_count is not None or Path(log).stat().st_size < _MOST_COUNTED_BYTES
    count = reader.counted_rows() if exact else reader.estimated_rows()
    result: dict[str, Any] = {"rows": count, "exact": exact, "columns": len(reader.names)}
    if robot is None:
        return {**result, "error": ""}
    try:
        head = _head(reader, robot, project_mapping() or None)
    except SteelyardError as error:
        return {**result, "error": str(error)}
    period = head.meta["period"]
    findings = [(f.severity, f.message) for f in head.findings if f.severity in ("warning", "problem")]
    return {**result, "error": "", "rate": 1.0 / period, "torque": head.meta["torque_kind"], "findings": findings}


def _head(reader: LogReader, robot: Robot, mapping: Any) -> Any:
    most = reader.row_count
    rows = (1, min(ROWS_LOOKED_AT, most)) if most else None
    if rows is None:
        # The row count is unknown before reading, so take the rows that exist.
        table = reader.table(reader.names, first_rows(reader.blocks(reader.names), ROWS_LOOKED_AT), 0)
        rows = (1, len(table))
    return read_log(reader, robot, mapping, rows)


# ---------------------------------------------------------------- proposal


def proposal(log: str, answers: Mapping[str, str], numbers: Mapping[str, str]) -> dict[str, Any]:
    """Propose a mapping with reasons, as `steelyard map` does.

    Args:
        log: Path of the log.
        answers: Answers to the questions, by question number.
        numbers: Missing numbers by key: one number, or one per joint separated by commas.
    """
    robot = project_robot()
    guessed = guess_mapping(log, robot)
    rows = [[list(g.columns), g.key, g.unit, g.why] for g in guessed.guesses]
    questions = [[g.question, list(g.choices)] for g in guessed.questions]
    gaps = [[gap.text, gap.key] for gap in guessed.missing]
    certain = guessed.exit_code == 0
    guessed = _apply_answers(guessed, answers, numbers)
    notes = [f"# Assumed: {next(iter(g.choices))}. {g.question}" for g in guessed.questions]
    notes += [f"# Missing: {gap.text}" for gap in guessed.missing]
    return {
        "rows": rows, "questions": questions, "missing": gaps, "notes": list(guessed.notes), "certain": certain,
        "unused": list(guessed.unused), "toml": "\n".join([MAPPING_HEADER, f"# {log}", *notes, as_toml(guessed.keys)]),
    }  # fmt: skip


def _apply_answers(guessed: GuessedMapping, answers: Mapping[str, str], numbers: Mapping[str, str]) -> GuessedMapping:
    for k, guess in enumerate(guessed.questions):
        if (answer := answers.get(str(k), "")) in guess.choices:
            guessed = guessed.answered(guess, answer)
    for gap in guessed.missing:
        if gap.key and (entry := numbers.get(gap.key, "").strip()):
            guessed = guessed.filled(gap, _numbers(gap.key, entry))
    return guessed


def _numbers(key: str, entry: str) -> list[float]:
    try:
        return [float(word) for word in entry.replace(";", ",").split(",")]
    except ValueError:
        raise LogError(
            f"{key}: '{entry[:60]}' is not a list of numbers; write one number, or one per joint: 0.1, 0.1, …"
        ) from None


# ---------------------------------------------------------------- editor


def column_meanings(log: str) -> dict[str, Any]:
    """Return the meaning of each column of `log` by the project's mapping, or by a guess without one.

    `fixed` is the reason why menus cannot edit the mapping, and `error` why it cannot read the log; "" without one.
    """
    robot, mapping = project_robot(), project_mapping()
    reader = open_reader(log)
    error = ""
    keys: Mapping[str, Any] = {}
    try:
        keys = mapping_table(mapping, log) if mapping else guess_mapping(reader, robot).keys
    except SteelyardError as failed:
        error = str(failed)
    fixed = "The mapping couples motors and joints" if "coupling" in keys else ""
    stated = LogMapping.from_table(keys)
    joints: Sequence[str] = robot.joint_names if robot is not None else stated.joints
    order, lists = tuple(stated.joints or reader.joints or joints), _lists(stated)
    if robot is not None and not error:
        try:
            head = _head(reader, robot, keys)
            stated, order = LogMapping(**_with_tuples(head.meta["mapping"])), tuple(head.meta["coupling"]["joints"])
            lists = {
                signal: dict(zip(joints, columns, strict=False)) for signal, columns in head.meta["columns"].items()
            }
            lists |= {k: v for k, v in _lists(stated).items() if k not in lists and k not in ("torque", "current")}
        except SteelyardError as failed:
            error = str(failed)
    rows = [asdict(row) for row in _rows(reader.names, stated, order, lists)]
    numbers = {key: _per_joint(getattr(stated, key), order, joints) for key in MAPPED_NUMBERS}
    return {
        "columns": rows, "joints": list(joints), "rate": stated.rate, "numbers": numbers, "error": error,
        "fixed": fixed, "motors": stated.on_motor("position"), "mapping": mapping, "own": has_own_table(log),
    }  # fmt: skip


def has_own_table(log: str) -> bool:
    """Whether the project's mapping has a table for this `log` alone."""
    try:
        return file_key(as_mapping(project_mapping() or None).files, log) is not None
    except SteelyardError:  # an unreadable mapping is reported where it is shown
        return False


def merged_mapping(log: str, toml: str, only: bool) -> str:
    """Join the mapping of a log with the project's mapping, which may have tables for other logs.

    Args:
        log: Path of the log.
        toml: Its mapping; "" removes the table of the log.
        only: Whether it is for this log only, and others keep theirs.
    """
    import tomllib

    mapping = project_mapping()
    old = mapping_table(mapping) if mapping else {}
    files = dict(old.pop("files", {}))
    name = file_key(files, log)
    if only and toml and mapping:
        files[name or log] = tomllib.loads(toml)
        return "\n".join([MAPPING_HEADER, as_toml({**old, "files": files})])
    files.pop(name, None)
    if not toml:
        return "\n".join([MAPPING_HEADER, as_toml({**old, **({"files": files} if files else {})})])
    return f"{toml}\n{as_toml({'files': files})}" if files else toml


def _with_tuples(value: Any) -> Any:
    """Convert the lists of a log's mapping to tuples, as `LogMapping` takes them."""
    if isinstance(value, Mapping):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _lists(stated: LogMapping) -> dict[str, dict[str, str]]:
    """Return the columns that are listed one per joint: signal → joint → column."""
    by_signal = {signal: stated.columns(signal) for signal in MAPPED_SIGNALS}
    return {
        signal: dict(zip(stated.joints, columns, strict=False))
        for signal, columns in by_signal.items() if isinstance(columns, tuple) and columns
    }  # fmt: skip


def _rows(
    names: Sequence[str], stated: LogMapping, order: tuple[str, ...], lists: Mapping[str, Mapping[str, str]]
) -> list[ColumnMeaning]:
    meanings: dict[str, ColumnMeaning] = {}
    for signal, columns in lists.items():
        for joint, column in columns.items():
            unit = _of_joint(stated.units.get(signal, ()), order, joint, "")
            sign = int(_of_joint(stated.sign.get("torque" if signal == "current" else signal, ()), order, joint, 1))
            meanings[column] = ColumnMeaning(column, signal, joint, str(unit), sign)
    time = stated.time if stated.time is not None or stated.rate is not None else recognise_time(names)
    if time is not None:
        time = names[int(time) - 1] if time not in names and time.isdigit() and int(time) <= len(names) else time
        meanings[time] = ColumnMeaning(time, "time", "", (stated.units.get("time") or ("",))[0])
    return [meanings.get(name, ColumnMeaning(name)) for name in names]


def _of_joint(values: Sequence[Any], order: tuple[str, ...], joint: str, default: Any) -> Any:
    if len(values) <= 1:
        return values[0] if values else default
    return values[order.index(joint)] if joint in order and order.index(joint) < len(values) else default


def _per_joint(values: Sequence[float], order: tuple[str, ...], joints: Sequence[str]) -> list[float]:
    return [float(_of_joint(values, order, joint, 0.0)) for joint in joints] if values else []


def edited_mapping(log: str, rows: Sequence[Mapping[str, Any]], rate: str, numbers: Mapping[str, str]) -> str:
    """Return the project's mapping with the menus' values, as TOML; an error if `log` cannot be read by it.

    Args:
        log: Path of the log.
        rows: `ColumnMeaning` of each used column.
        rate: Sample rate of a log without a clock [Hz]; "" with a clock.
        numbers: Values of `MAPPED_NUMBERS`, separated by commas; "" for none.
    """
    robot, mapping = project_robot(), project_mapping()
    before = column_meanings(log)
    if before["fixed"]:
        raise LogError(f"{mapping}: {before['fixed']}; edit the file.")
    joints = before["joints"]
    lines = [ColumnMeaning(**row) for row in rows]
    old_signals = {row["signal"] for row in before["columns"]}
    units = {joint.name: joint.unit for joint in robot.joints} if robot is not None else {}
    keys = {k: v for k, v in (mapping_table(mapping, log) if mapping else {}).items() if k not in _WRITTEN}
    keys = {"joints": list(joints), **_keys(lines, joints, rate, old_signals, units), **keys}
    keys |= {key: _collapse(_numbers(key, numbers[key])) for key in MAPPED_NUMBERS if numbers.get(key, "").strip()}
    LogMapping.from_table(keys, log)  # raises an error if they are invalid
    if robot is not None:
        _head(open_reader(log), robot, keys)
    return "\n".join([MAPPING_HEADER, f"# {log}", as_toml(keys)])


_WRITTEN = {"joints", "time", "preset", "units", "sign", *MAPPED_SIGNALS, *MAPPED_NUMBERS}


def _keys(
    lines: Sequence[ColumnMeaning], joints: Sequence[str], rate: str, old_signals: set[str],
    joint_units: Mapping[str, str],
) -> dict[str, Any]:  # fmt: skip
    """Return time, columns, units and signs as keys of a mapping.

    A removed signal is set to false; otherwise its columns would be recognised by their names again.
    """
    clocks = [row for row in lines if row.signal == "time"]
    if len(clocks) > 1:
        raise LogError(f"{' and '.join(row.column for row in clocks)} are both the time; choose one column.")
    keys: dict[str, Any] = {}
    units: dict[str, Any] = {}
    signs: dict[str, Any] = {}
    if clocks:
        keys["time"] = clocks[0].column
        units |= {"time": clocks[0].unit} if clocks[0].unit else {}
    elif rate.strip():
        keys["time"] = {"rate": _numbers("rate", rate)[0]}
    for signal in MAPPED_SIGNALS:
        of = _one_per_joint(signal, [row for row in lines if row.signal == signal], joints)
        if not of:
            keys |= {signal: False} if signal in old_signals and signal != "temperature" else {}
            continue
        keys[signal] = [row.column for row in of]
        if signal in LOG_UNITS and any(row.unit for row in of):
            units[signal] = _collapse([row.unit or _si_unit(signal, joint_units.get(row.joint, "")) for row in of])
        side = "torque" if signal == "current" else signal
        if side in _SIGNED and any(row.sign < 0 for row in of):
            signs[side] = [row.sign for row in of]
    return {**keys, **({"units": units} if units else {}), **({"sign": signs} if signs else {})}


def _one_per_joint(signal: str, rows: Sequence[ColumnMeaning], joints: Sequence[str]) -> list[ColumnMeaning]:
    by_joint: dict[str, ColumnMeaning] = {}
    for row in rows:
        if row.joint not in joints:
            raise LogError(f"{row.column} is a {signal}: choose its joint.")
        if row.joint in by_joint:
            first = by_joint[row.joint].column
            raise LogError(f"{first} and {row.column} are both the {signal} of {row.joint}; choose one column.")
        by_joint[row.joint] = row
    missing = [joint for joint in joints if joint not in by_joint]
    if by_joint and missing:
        raise LogError(f"The {signal} of {', '.join(missing)} is missing: choose its column, or none for all joints.")
    if not by_joint and signal == "position":
        raise LogError("No column is a position; choose the columns of the joint positions.")
    return [by_joint[joint] for joint in joints if joint in by_joint]


def _si_unit(signal: str, joint_unit: str) -> str:
    """Return the SI unit of a signal of a joint that moves in rad or m."""
    is_prismatic = joint_unit == "m"
    units = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "acceleration": ("rad/s^2", "m/s^2"),
             "torque": ("N m", "N"), "current": ("A", "A")}  # fmt: skip
    return units[signal][is_prismatic]


def _collapse(values: list[Any]) -> Any:
    """Return a single value if all are equal, else the list."""
    return values[0] if len(set(values)) == 1 else values


# ---------------------------------------------------------------- plots


def scene(pyramid: str) -> str:
    """Return the scene of the project's robot as JSON, sized for all postures of the log at `pyramid`."""
    robot = _required_robot()
    motions = []
    if Path(pyramid).exists():
        log = Pyramid.open(pyramid)
        part = log.window(log.start, log.end, 100, range(robot.dof))
        motions = [("", part.times[:, 0], part.low.astype(float))]
    drawn = robot_scene(StudioFolder(".").project(), robot, motions)
    return replace(drawn, motions=()).to_json()


def draw_short(log: str, target: str) -> bool:
    """Write the pyramid of a short log and return True; return False for a long log.

    Args:
        log: Path of the log.
        target: Path of the pyramid.
    """
    source = LogFile(Path(log), _required_robot(), project_mapping() or None)
    if source.is_long:
        return False
    build_pyramid(source.in_memory(), source.robot, target)
    return True


def draw(log: str, target: str) -> None:
    """Write the pyramid of a log of any length; run as the job `-m pyramid LOG TARGET`.

    Args:
        log: Path of the log.
        target: Path of the pyramid.
    """
    try:
        robot = _required_robot()
        build_pyramid(LogFile(Path(log), robot, project_mapping() or None), robot, target)
    except SteelyardError as error:
        print(f"steelyard: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _required_robot() -> Robot:
    robot = project_robot()
    if robot is None:
        raise LogError("Choose the robot first: it defines the joints of the log and their units.")
    return robot
