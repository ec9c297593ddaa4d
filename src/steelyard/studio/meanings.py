"""What the columns of a log mean, as a page shows it and gets it back: a line per column, and the keys of a mapping.

Everything here is called in the process aside or in a job, in the studio's folder, with plain data in and out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.check.columns import ROWS_LOOKED_AT, GuessedMapping
from steelyard.check.fix import as_toml
from steelyard.check.guess import guess_mapping
from steelyard.errors import LogError, SteelyardError
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping, mapping_table
from steelyard.signals.read import read_log
from steelyard.signals.recognise import recognise_time
from steelyard.signals.source import LogFile
from steelyard.signals.table import LogReader, first_rows, open_reader
from steelyard.signals.units import LOG_UNITS
from steelyard.studio.mapping_page import MAPPING_HEADER, NUMBERS_MAPPED, SIGNALS_MAPPED
from steelyard.studio.place import StudioFolder
from steelyard.studio.pyramid import Pyramid, build_pyramid
from steelyard.studio.robot_files import robot_scene

# Of texts up to so many bytes the rows are counted.
_COUNTED = 50_000_000
_SIGNED = ("position", "velocity", "torque")


@dataclass(frozen=True)
class ColumnMeaning:
    """What a `column` of the file is: `signal` ("": not used) of a `joint`, in a `unit`, `sign` −1 if it is turned."""

    column: str
    signal: str = ""
    joint: str = ""
    unit: str = ""
    sign: int = 1


def project_robot() -> Robot | None:
    """The robot of the project in this folder; None where it names none."""
    project = StudioFolder(".").project()
    return project.load_robot() if project.robot else None


def project_mapping() -> str:
    """The mapping of the project in this folder, or ""."""
    project = StudioFolder(".").project()
    return project.path_of(project.mapping)


def readable(log: str) -> None:
    """An error in the reader's own words, unless the file `log` can be read and holds something."""
    reader = open_reader(log)
    rows = reader.table(reader.names, first_rows(reader.blocks(reader.names), 1000), 0)
    if not len(rows):
        raise LogError(f"{log}: holds no rows.")


def facts(log: str) -> dict[str, Any]:
    """What the head of `log` says by the mapping of the project: samples, rate, what tau is, findings; or `error`."""
    robot = project_robot()
    reader = open_reader(log)
    exact = reader.row_count is not None or Path(log).stat().st_size < _COUNTED
    many = reader.counted_rows() if exact else reader.estimated_rows()
    found: dict[str, Any] = {"rows": many, "exact": exact, "columns": len(reader.names)}
    if robot is None:
        return {**found, "error": ""}
    try:
        head = _head(reader, robot, project_mapping() or None)
    except SteelyardError as error:
        return {**found, "error": str(error)}
    period = head.meta["period"]
    findings = [(f.severity, f.message) for f in head.findings if f.severity in ("warning", "problem")]
    return {**found, "error": "", "rate": 1.0 / period, "torque": head.meta["torque_kind"], "findings": findings}


def _head(reader: LogReader, robot: Robot, mapping: Any) -> Any:
    most = reader.row_count
    rows = (1, min(ROWS_LOOKED_AT, most)) if most else None
    if rows is None:
        # How many there are is not known before they are read; what is asked for is made of what there is.
        table = reader.table(reader.names, first_rows(reader.blocks(reader.names), ROWS_LOOKED_AT), 0)
        rows = (1, len(table))
    return read_log(reader, robot, mapping, rows)


# ---------------------------------------------------------------- what is proposed


def proposed(log: str, answers: Mapping[str, str], numbers: Mapping[str, str]) -> dict[str, Any]:
    """What the columns of `log` most likely mean, and why, as `steelyard map` has it.

    Args:
        log: the file.
        answers: to its questions, by their number.
        numbers: of what is missing, by its key: one, or one per joint with commas between.
    """
    robot = project_robot()
    guessed = guess_mapping(log, robot)
    rows = [[list(g.columns), g.key, g.unit, g.why] for g in guessed.guesses]
    asked = [[g.question, list(g.choices)] for g in guessed.questions]
    gaps = [[gap.text, gap.key] for gap in guessed.missing]
    certain = guessed.exit_code == 0
    guessed = _answered(guessed, answers, numbers)
    notes = [f"# Assumed: {next(iter(g.choices))}. {g.question}" for g in guessed.questions]
    notes += [f"# Missing: {gap.text}" for gap in guessed.missing]
    return {
        "rows": rows, "questions": asked, "missing": gaps, "notes": list(guessed.notes), "certain": certain,
        "unused": list(guessed.unused), "toml": "\n".join([MAPPING_HEADER, f"# {log}", *notes, as_toml(guessed.keys)]),
    }  # fmt: skip


def _answered(guessed: GuessedMapping, answers: Mapping[str, str], numbers: Mapping[str, str]) -> GuessedMapping:
    for k, guess in enumerate(guessed.questions):
        if (said := answers.get(str(k), "")) in guess.choices:
            guessed = guessed.answered(guess, said)
    for gap in guessed.missing:
        if gap.key and (typed := numbers.get(gap.key, "").strip()):
            guessed = guessed.filled(gap, _numbers(gap.key, typed))
    return guessed


def _numbers(key: str, typed: str) -> list[float]:
    try:
        return [float(word) for word in typed.replace(";", ",").split(",")]
    except ValueError:
        raise LogError(
            f"{key}: '{typed[:60]}' is no list of numbers; write one, or one per joint: 0.1, 0.1, …"
        ) from None


# ---------------------------------------------------------------- a line per column, and back


def meaning(log: str) -> dict[str, Any]:
    """What every column of `log` is by the project's mapping, or by a guess where it has none, as `ColumnMeaning`s.

    `fixed` says why it cannot be changed column by column, `error` why the log cannot be read by it; both may be "".
    """
    robot, mapping = project_robot(), project_mapping()
    reader = open_reader(log)
    error = ""
    keys: Mapping[str, Any] = {}
    try:
        keys = mapping_table(mapping) if mapping else guess_mapping(reader, robot).keys
    except SteelyardError as failed:
        error = str(failed)
    fixed = "It states a coupling of motors and joints" if "coupling" in keys else ""
    stated = LogMapping.from_table(keys)
    joints: Sequence[str] = robot.joint_names if robot is not None else stated.joints
    named, lists = tuple(stated.joints or reader.joints or joints), _lists(stated)
    if robot is not None and not error:
        try:
            head = _head(reader, robot, keys)
            stated, named = LogMapping(**_stated(head.meta["mapping"])), tuple(head.meta["coupling"]["joints"])
            lists = {
                signal: dict(zip(joints, columns, strict=False)) for signal, columns in head.meta["columns"].items()
            }
            lists |= {k: v for k, v in _lists(stated).items() if k not in lists and k not in ("torque", "current")}
        except SteelyardError as failed:
            error = str(failed)
    rows = [asdict(row) for row in _rows(reader.names, stated, named, lists)]
    numbers = {key: _per_joint(getattr(stated, key), named, joints) for key in NUMBERS_MAPPED}
    return {
        "columns": rows, "joints": list(joints), "rate": stated.rate, "numbers": numbers, "error": error,
        "fixed": fixed, "motors": stated.on_motor("position"), "mapping": mapping,
    }  # fmt: skip


def _stated(plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a log remembers of its mapping, as arguments of one."""

    def held(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: held(item) for key, item in value.items()}
        return tuple(held(item) for item in value) if isinstance(value, list) else value

    return {key: held(value) for key, value in plain.items()}


def _lists(stated: LogMapping) -> dict[str, dict[str, str]]:
    """Columns that are named one by one, by joint."""
    named = {signal: stated.columns(signal) for signal in SIGNALS_MAPPED}
    return {
        signal: dict(zip(stated.joints, columns, strict=False))
        for signal, columns in named.items() if isinstance(columns, tuple) and columns
    }  # fmt: skip


def _rows(
    names: Sequence[str], stated: LogMapping, named: tuple[str, ...], lists: Mapping[str, Mapping[str, str]]
) -> list[ColumnMeaning]:
    known: dict[str, ColumnMeaning] = {}
    for signal, columns in lists.items():
        for joint, column in columns.items():
            unit = _of_joint(stated.units.get(signal, ()), named, joint, "")
            sign = int(_of_joint(stated.sign.get("torque" if signal == "current" else signal, ()), named, joint, 1))
            known[column] = ColumnMeaning(column, signal, joint, str(unit), sign)
    time = stated.time if stated.time is not None or stated.rate is not None else recognise_time(names)
    if time is not None:
        time = names[int(time) - 1] if time not in names and time.isdigit() and int(time) <= len(names) else time
        known[time] = ColumnMeaning(time, "time", "", (stated.units.get("time") or ("",))[0])
    return [known.get(name, ColumnMeaning(name)) for name in names]


def _of_joint(values: Sequence[Any], named: tuple[str, ...], joint: str, otherwise: Any) -> Any:
    if len(values) <= 1:
        return values[0] if values else otherwise
    return values[named.index(joint)] if joint in named and named.index(joint) < len(values) else otherwise


def _per_joint(values: Sequence[float], named: tuple[str, ...], joints: Sequence[str]) -> list[float]:
    return [float(_of_joint(values, named, joint, 0.0)) for joint in joints] if values else []


def edited(log: str, rows: Sequence[Mapping[str, Any]], rate: str, numbers: Mapping[str, str]) -> str:
    """The mapping of the project with what the menus say, as the text of a file that `log` can be read by.

    Args:
        log: the file that the columns are of.
        rows: `ColumnMeaning`s of the columns that are used.
        rate: samples per second, of a log without a clock; "" with one.
        numbers: of `NUMBERS_MAPPED`, with commas between, or "" for none.
    """
    robot, mapping = project_robot(), project_mapping()
    before = meaning(log)
    if before["fixed"]:
        raise LogError(f"{mapping}: {before['fixed']}; change it there.")
    joints = before["joints"]
    lines = [ColumnMeaning(**row) for row in rows]
    was = {row["signal"] for row in before["columns"]}
    units = {joint.name: joint.unit for joint in robot.joints} if robot is not None else {}
    keys = {k: v for k, v in (mapping_table(mapping) if mapping else {}).items() if k not in _WRITTEN}
    keys = {"joints": list(joints), **_keys(lines, joints, rate, was, units), **keys}
    keys |= {key: _as_one(_numbers(key, numbers[key])) for key in NUMBERS_MAPPED if numbers.get(key, "").strip()}
    LogMapping.from_table(keys, log)  # or it is an error
    if robot is not None:
        _head(open_reader(log), robot, keys)
    return "\n".join([MAPPING_HEADER, f"# {log}", as_toml(keys)])


_WRITTEN = {"joints", "time", "preset", "units", "sign", *SIGNALS_MAPPED, *NUMBERS_MAPPED}


def _keys(
    lines: Sequence[ColumnMeaning], joints: Sequence[str], rate: str, was: set[str], joint_units: Mapping[str, str]
) -> dict[str, Any]:
    """Time, columns, units and signs, as a mapping states them; a signal that there `was` and is no more is refused
    there, or it would be recognised by its name again."""
    clocks = [row for row in lines if row.signal == "time"]
    if len(clocks) > 1:
        raise LogError(f"{' and '.join(row.column for row in clocks)} cannot both be the time; choose one.")
    keys: dict[str, Any] = {}
    units: dict[str, Any] = {}
    signs: dict[str, Any] = {}
    if clocks:
        keys["time"] = clocks[0].column
        units |= {"time": clocks[0].unit} if clocks[0].unit else {}
    elif rate.strip():
        keys["time"] = {"rate": _numbers("rate", rate)[0]}
    for signal in SIGNALS_MAPPED:
        of = _one_per_joint(signal, [row for row in lines if row.signal == signal], joints)
        if not of:
            keys |= {signal: False} if signal in was and signal != "temperature" else {}
            continue
        keys[signal] = [row.column for row in of]
        if signal in LOG_UNITS and any(row.unit for row in of):
            units[signal] = _as_one([row.unit or _usual(signal, joint_units.get(row.joint, "")) for row in of])
        side = "torque" if signal == "current" else signal
        if side in _SIGNED and any(row.sign < 0 for row in of):
            signs[side] = [row.sign for row in of]
    return {**keys, **({"units": units} if units else {}), **({"sign": signs} if signs else {})}


def _one_per_joint(signal: str, rows: Sequence[ColumnMeaning], joints: Sequence[str]) -> list[ColumnMeaning]:
    by_joint: dict[str, ColumnMeaning] = {}
    for row in rows:
        if row.joint not in joints:
            raise LogError(f"{row.column} is a {signal}: choose the joint that it is of.")
        if row.joint in by_joint:
            twice = by_joint[row.joint].column
            raise LogError(f"{twice} and {row.column} cannot both be the {signal} of {row.joint}; choose one.")
        by_joint[row.joint] = row
    lacking = [joint for joint in joints if joint not in by_joint]
    if by_joint and lacking:
        raise LogError(f"The {signal} of {', '.join(lacking)} is missing: choose its column, or none for all joints.")
    if not by_joint and signal == "position":
        raise LogError("No column is a position; without the joints' positions there is no motion.")
    return [by_joint[joint] for joint in joints if joint in by_joint]


def _usual(signal: str, joint_unit: str) -> str:
    """The unit in SI of a joint that moves in rad or m."""
    slides = joint_unit == "m"
    usual = {"position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "acceleration": ("rad/s^2", "m/s^2"),
             "torque": ("N m", "N"), "current": ("A", "A")}  # fmt: skip
    return usual[signal][slides]


def _as_one(values: list[Any]) -> Any:
    """One for all where they are alike."""
    return values[0] if len(set(values)) == 1 else values


# ---------------------------------------------------------------- what is looked at


def scene(pyramid: str) -> str:
    """The robot of the project to be drawn, so that it is in sight in all postures of the log with this `pyramid`."""
    robot = _needed_robot()
    motions = []
    if Path(pyramid).exists():
        made = Pyramid.open(pyramid)
        part = made.window(made.start, made.end, 100, range(robot.dof))
        motions = [("", part.times[:, 0], part.low.astype(float))]
    drawn = robot_scene(StudioFolder(".").project(), robot, motions)
    return replace(drawn, motions=()).to_json()


def draw_short(log: str, target: str) -> bool:
    """Write the pyramid of `log` to `target`, unless it is long: then this is False."""
    source = LogFile(Path(log), _needed_robot(), project_mapping() or None)
    if source.is_long:
        return False
    build_pyramid(source.in_memory(), source.robot, target)
    return True


def draw(log: str, target: str) -> None:
    """The same as a job, of a `log` of any length, to `target`: `-m pyramid LOG TARGET`."""
    try:
        robot = _needed_robot()
        build_pyramid(LogFile(Path(log), robot, project_mapping() or None), robot, target)
    except SteelyardError as error:
        print(f"steelyard: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _needed_robot() -> Robot:
    robot = project_robot()
    if robot is None:
        raise LogError("Choose the robot first: it says which joints the log has, and in which units they move.")
    return robot
