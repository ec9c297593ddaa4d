"""Reads fleets from TOML files, from tables with a row per log or pattern, and from folders."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.fleet.patterns import Pattern, date_in_name
from steelyard.fleet.robot_table import Fleet, FleetBuilder, FleetLog
from steelyard.fleet.storage import (
    FleetError,
    children,
    files_at,
    folder_of,
    is_folder,
    location_in,
    read_location,
    tree,
)
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.documents import parse_document
from steelyard.ground.field import Field, shown_value
from steelyard.ground.remote import any_path
from steelyard.ground.schema import build
from steelyard.robot.formats import ROBOT_FORMATS
from steelyard.signals.mapping import LogMapping
from steelyard.signals.presets import PRESETS
from steelyard.signals.table import has_reader, read_table

FLEET_FILE = "fleet.toml"
_MAPPING, _ROBOT = "mapping", "robot"  # file names, without suffix, of a mapping and of a description in a folder
LARGEST_TABLE = 256 << 20
TABLE_COLUMNS = ("robot", "log", "model", "description", "mapping", "date", "temperature", "load")
_Names = str | tuple[str, ...]


@dataclass(frozen=True)
class LogEntry:
    """Logs of one robot in a TOML file; `files` is a path, a folder, a pattern or a URL."""

    files: _Names
    date: Any = None
    temperature: float | None = None
    load: str | None = None
    mapping: Any = None


@dataclass(frozen=True)
class ModelEntry:
    """A robot type in a TOML file; `logs` are patterns that contain {robot}."""

    description: str
    joints: _Names = ()
    lock: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, float, float] | None = None
    snap: float | None = None
    mapping: Any = None
    logs: _Names = ()


@dataclass(frozen=True)
class RobotEntry:
    """A robot in a TOML file."""

    logs: Any
    model: str = ""
    mapping: Any = None


@dataclass(frozen=True)
class FleetEntries:
    """A complete TOML file."""

    models: Mapping[str, ModelEntry]
    robots: Mapping[str, RobotEntry] = field(default_factory=dict)
    mapping: Any = None


def read_fleet_files(source: str) -> Fleet:
    """Read the fleet at `source`: a folder, a TOML file or a table."""
    if is_folder(source):
        inside = location_in(source, FLEET_FILE)
        return _from_toml(inside) if FLEET_FILE in children(source)[1] else _from_folder(source)
    suffix = any_path(source, FleetError).suffix.lower()
    if suffix not in _READERS:
        raise FleetError(
            f"{shown_address(source)}: a fleet is a folder or a file {', '.join(_READERS)}, not '{suffix}'; rename or "
            "convert it."
        )
    return _READERS[suffix](source)


class _Reader:
    """Adds entries to a fleet, finds their logs, reads each mapping once; paths are relative to the folder `base`."""

    def __init__(self, source: str, base: str) -> None:
        self.builder = FleetBuilder(shown_address(source), base)
        self.base = base
        self._mappings: dict[str, LogMapping] = {}

    def error(self, message: str) -> FleetError:
        return FleetError(f"{self.builder.source}: {message}")

    def mapping(self, *candidates: Any) -> LogMapping:
        """Read the first mapping that is stated: path, URL, preset, or keys and values."""
        stated = next((one for one in candidates if one not in (None, "")), None)
        if stated is None:
            return LogMapping()
        if isinstance(stated, Mapping):
            return LogMapping.from_table(stated, f"{self.builder.source}: mapping")
        if not isinstance(stated, str):
            raise self.error(f"mapping: {shown_value(stated)} is neither a path nor a table of keys and values.")
        if stated not in self._mappings:
            self._mappings[stated] = self._read_mapping(stated)
        return self._mappings[stated]

    def _read_mapping(self, stated: str) -> LogMapping:
        where = location_in(self.base, stated)
        if stated in PRESETS and not os.path.lexists(where):
            return LogMapping.from_table({"preset": stated}, "preset")
        if not is_url(where):
            return LogMapping.read(where)
        text = read_location(where, 1 << 20, LogError).decode("utf-8-sig", "replace")
        place = any_path(where)
        syntax = "toml" if place.suffix.lower() == ".toml" else "yaml"
        return LogMapping.from_table(parse_document(text, str(place), syntax, LogError), str(place))  # type: ignore[arg-type]

    def add_logs(self, robot: str, entry: LogEntry, mapping: LogMapping) -> None:
        """Add the logs of an entry; without a stated date the pattern or the names of the files give it."""
        for files in _as_list(entry.files):
            pattern = Pattern(location_in(self.base, files.replace("{robot}", robot)), self.builder.source)
            moment = None if entry.date in (None, "") else self._moment(entry.date, robot)
            urls = self._matches(pattern)
            dates = [moment if moment is not None else pattern.date_of(url) for url in urls]
            self.builder.add_logs(
                FleetLog(
                    robot, url, mapping, date_in_name(url) if when is None else when, entry.temperature, entry.load
                )
                for url, when in zip(urls, dates, strict=True)
            )

    def add_robots(self, model: str, files: str, mapping: LogMapping) -> None:
        """Add the robots of a type that a pattern with {robot} finds, and their logs."""
        pattern = Pattern(location_in(self.base, files), self.builder.source)
        if "{robot}" not in files:
            raise self.error(f"models: {model}: logs: '{files}' does not name the robot; write {{robot}} in it.")
        for url in self._matches(pattern):
            robot = pattern.robot_of(url) or ""
            self.builder.add_robot(robot, model)
            moment = pattern.date_of(url)
            self.builder.add_logs([FleetLog(robot, url, mapping, date_in_name(url) if moment is None else moment)])

    def _matches(self, pattern: Pattern) -> list[str]:
        urls = [url for url in files_at(pattern.wild) if pattern.fits(url)]
        if not urls:
            raise self.error(f"{shown_address(pattern.text)}: no log has such a name; correct it, or leave it out.")
        return urls

    def _moment(self, stated: Any, robot: str) -> float:
        """Convert a date to seconds since 1970; it is in UTC unless it states a time zone."""
        if isinstance(stated, np.datetime64):
            return float((stated - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
        try:
            if isinstance(stated, str):
                stated = datetime.fromisoformat(stated.strip())
            elif isinstance(stated, date) and not isinstance(stated, datetime):
                stated = datetime(stated.year, stated.month, stated.day)
            if not isinstance(stated, datetime):
                raise ValueError
        except ValueError:
            raise self.error(
                f"robot '{robot}': {shown_value(stated)} is not a date; write it as 2026-03-01 or "
                "2026-03-01T06:30:00+02:00."
            ) from None
        return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()


# ------------------------------------------------------------------------------ TOML


def _from_toml(source: str) -> Fleet:
    text = _text(source)
    reader = _Reader(source, folder_of(source))
    data = parse_document(text, reader.builder.source, "toml", FleetError)
    entries = build(FleetEntries, Field(data, reader.builder.source, error=FleetError))
    for name, model in entries.models.items():
        options = {
            "joints": _as_list(model.joints),
            "locked": dict(model.lock),
            "gravity": model.gravity,
            "snap": model.snap,
        }
        stated = {key: value for key, value in options.items() if value not in (None, {}, [])}
        reader.builder.add_robot_type(name, model.description, stated)
        for files in _as_list(model.logs):
            reader.add_robots(name, files, reader.mapping(model.mapping, entries.mapping))
    for robot, entry in entries.robots.items():
        of_model = entries.models[reader.builder.add_robot(robot, entry.model)].mapping
        place = Field(entry.logs, f"{reader.builder.source}: robots: {robot}: logs", error=FleetError)
        items = place.items("entry") if isinstance(entry.logs, list) else [place]
        for item in items:
            one = LogEntry(item.text()) if isinstance(item.value, str) else build(LogEntry, item)
            reader.add_logs(robot, one, reader.mapping(one.mapping, entry.mapping, of_model, entries.mapping))
    return reader.builder.fleet()


def _as_list(names: _Names) -> list[str]:
    return ([names] if names else []) if isinstance(names, str) else list(names)


def _text(source: str) -> str:
    try:
        return read_location(source, LARGEST_TABLE).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FleetError(f"{shown_address(source)}: is not text in UTF-8; save it as UTF-8.") from None


# ------------------------------------------------------------------------------ tables


def _from_csv(source: str) -> Fleet:
    text = _text(source)
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as why:
        raise FleetError(f"{shown_address(source)}: cannot be read as a table ({why}).") from None
    names = [name.strip() for name in rows[0]] if rows else []
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FleetError(f"{shown_address(source)}: column '{twice}' appears twice; keep one of the two.")
    cells = [row for row in rows[1:] if any(row)]
    table = {name: [row[k].strip() if k < len(row) else "" for row in cells] for k, name in enumerate(names)}
    return _from_columns(source, table)


def _from_parquet(source: str) -> Fleet:
    try:
        table = read_table(source)
        return _from_columns(source, {name: list(table.column(name)) for name in table.names})
    except LogError as why:
        raise FleetError(str(why)) from None


def _from_columns(source: str, table: Mapping[str, list[Any]]) -> Fleet:
    reader = _Reader(source, folder_of(source))
    for name in table:
        if name not in TABLE_COLUMNS:
            raise reader.error(str(UnknownNameError("column", name, TABLE_COLUMNS)))
    for name in ("robot", "log"):
        if name not in table:
            raise reader.error(f"has no column '{name}'; a fleet's table has {', '.join(TABLE_COLUMNS)}.")
    models: dict[tuple[str, str], str] = {}
    for k in range(len(table["robot"])):
        row = {name: _cell(column[k]) for name, column in table.items()}
        robot, files = _word(row["robot"]), _word(row["log"])
        if not robot or not files:
            raise reader.error(f"row {k + 1} lacks the {'log' if robot else 'robot'}; write it.")
        stated = _word(row.get("model")), _word(row.get("description"))
        if stated == ("", ""):
            raise reader.error(f"row {k + 1}: robot '{robot}' has neither model nor description; write one of them.")
        if stated not in models:
            models[stated] = _add_robot_type(reader, *stated)
        reader.builder.add_robot(robot, models[stated])
        mapping = reader.mapping(_word(row.get("mapping")))
        temperature = _degrees(reader, row.get("temperature"), k)
        reader.add_logs(robot, LogEntry(files, row.get("date"), temperature, _word(row.get("load")) or None), mapping)
    return reader.builder.fleet()


def _add_robot_type(reader: _Reader, name: str, description: str) -> str:
    """Add a robot type by name and description; a table may have only one of them: arm.urdf is a description."""
    suffixes = tuple(suffix for kind in ROBOT_FORMATS.values() for suffix in kind.suffixes)
    if not description and name.lower().endswith(suffixes):
        name, description = any_path(name, FleetError).stem, name
    return reader.builder.add_robot_type(name, description)


def _cell(value: Any) -> Any:
    """Return the value of a cell; None if it is empty."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if isinstance(value, np.datetime64) and np.isnat(value) else value


def _word(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)  # a column of numbers with gaps: robot 7, not 7.0
    return str(value).strip()


def _degrees(reader: _Reader, value: Any, row: int) -> float | None:
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not -273.15 <= number <= 1000.0:
        raise reader.error(f"row {row + 1}: the temperature {shown_value(value)} is invalid; write degrees Celsius.")
    return number


# ------------------------------------------------------------------------------ folders


def _from_folder(source: str) -> Fleet:
    """Read FLEET/arm.urdf and FLEET/ROBOT/…, or FLEET/MODEL/arm.urdf and FLEET/MODEL/ROBOT/… for several types."""
    reader = _Reader(source, source)
    entries = tree(source)
    top = _files_in(entries, "")
    if _description_in(reader, source, top) is not None:
        _add_folder(reader, entries, "", None)
    else:
        for name in sorted({name.partition("/")[0] for name, _ in entries if "/" in name}):
            if _description_in(reader, name, _files_in(entries, f"{name}/")) is not None:
                _add_folder(reader, entries, f"{name}/", _mapping_in(top))
    if not reader.builder.has_robot_types:
        known = ", ".join(sorted({suffix for kind in ROBOT_FORMATS.values() for suffix in kind.suffixes}))
        raise reader.error(
            f"has neither {FLEET_FILE} nor a description of a robot ({known}), nor have its folders; a fleet is "
            "FLEET/arm.urdf with FLEET/ROBOT/run.parquet, or FLEET/MODEL/arm.urdf with FLEET/MODEL/ROBOT/run.parquet."
        )
    return reader.builder.fleet()


def _add_folder(reader: _Reader, entries: list[tuple[str, bool]], folder: str, outer_mapping: str | None) -> None:
    """Add the robot type of a folder ("" or a name and /) with its robots."""
    files = _files_in(entries, folder)
    description, own = _description_in(reader, folder, files), _mapping_in(files)
    assert description is not None
    model = reader.builder.add_robot_type(folder.rstrip("/"), folder + description)
    logs: dict[str, list[str]] = {}
    mappings: dict[str, str] = {}
    for name, is_log in entries:
        robot, slash, rest = name.removeprefix(folder).partition("/")
        if not name.startswith(folder) or (not slash and (not is_log or has_reader(Path(robot)))):
            continue  # of another type, or a file next to the robots' folders; a robot's folder may itself be a log
        if is_log:
            logs.setdefault(robot, []).append(name)
        elif _mapping_in([rest]):
            mappings[robot] = name
    for robot, names in logs.items():
        mapping = reader.mapping(mappings.get(robot), own and folder + own, outer_mapping)
        urls = [location_in(reader.base, name) for name in names]
        reader.builder.add_robot(robot, model)
        reader.builder.add_logs(FleetLog(robot, url, mapping, date_in_name(url)) for url in urls)


def _files_in(entries: list[tuple[str, bool]], folder: str) -> list[str]:
    """Return the names of the files directly in a folder."""
    return [n.removeprefix(folder) for n, _ in entries if n.startswith(folder) and "/" not in n.removeprefix(folder)]


def _description_in(reader: _Reader, folder: str, files: list[str]) -> str | None:
    """Return the name of the robot description among the files of a folder; None if missing.

    Any file in an XML format is one; a .toml or .yaml file must have the name robot.
    """
    kinds = ROBOT_FORMATS.values()
    xml = {suffix for kind in kinds if kind.root for suffix in kind.suffixes}
    others = {suffix for kind in kinds for suffix in kind.suffixes} - xml
    paths = [(Path(file), file) for file in files]
    found = [f for p, f in paths if p.suffix.lower() in xml or (p.suffix.lower() in others and p.stem == _ROBOT)]
    if len(found) > 1:
        raise reader.error(
            f"{shown_address(folder)} has several descriptions, {', '.join(found)}; keep one, or give each model its "
            "own folder."
        )
    return found[0] if found else None


def _mapping_in(files: list[str]) -> str | None:
    return next((f for f in files if Path(f).stem.lower() == _MAPPING and Path(f).suffix.lower() in _DOCUMENTS), None)


_DOCUMENTS = (".toml", ".yaml", ".yml", ".json")
_READERS = {
    ".toml": _from_toml,
    **dict.fromkeys((".csv", ".tsv"), _from_csv),
    **dict.fromkeys((".parquet", ".pq"), _from_parquet),
}
