"""How a fleet is written: a TOML file, a table with a row for each log or pattern, or a folder whose layout says it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.fleet.collect import Collector
from steelyard.fleet.patterns import date_in_name
from steelyard.fleet.storage import FleetError, children, folder_of, is_folder, location_in, read_location, tree
from steelyard.fleet.table import Fleet, FleetLog
from steelyard.ground.addresses import shown_address
from steelyard.ground.documents import parse_document
from steelyard.ground.field import Field, shown_value
from steelyard.ground.remote import any_path
from steelyard.ground.schema import build
from steelyard.robot.formats import ROBOT_FORMATS
from steelyard.signals.table import has_reader, read_table

FLEET_FILE = "fleet.toml"
_MAPPING, _ROBOT = "mapping", "robot"  # names, without suffix, of a mapping and of a description in a folder
LARGEST_TABLE = 256 << 20
TABLE_COLUMNS = ("robot", "log", "model", "description", "mapping", "date", "temperature", "load")
_Names = str | tuple[str, ...]


@dataclass(frozen=True)
class LogEntry:
    """Logs of one robot, as a table of a TOML file says it: `files` is a path, a folder, a pattern or a URL."""

    files: _Names
    date: Any = None
    temperature: float | None = None
    load: str | None = None
    mapping: Any = None


@dataclass(frozen=True)
class ModelEntry:
    """A model, as a table of a TOML file says it; `logs` are patterns with {robot} in them."""

    description: str
    joints: _Names = ()
    lock: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, float, float] | None = None
    snap: float | None = None
    mapping: Any = None
    logs: _Names = ()


@dataclass(frozen=True)
class RobotEntry:
    """A robot, as a table of a TOML file says it."""

    logs: Any
    model: str = ""
    mapping: Any = None


@dataclass(frozen=True)
class FleetEntries:
    """A whole TOML file."""

    models: Mapping[str, ModelEntry]
    robots: Mapping[str, RobotEntry] = field(default_factory=dict)
    mapping: Any = None


def read_written(source: str) -> Fleet:
    """The fleet that is written at `source`: a folder, a TOML file or a table."""
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


# ------------------------------------------------------------------------------ TOML


def _from_toml(source: str) -> Fleet:
    text = _text(source)
    collector = Collector(source, folder_of(source))
    data = parse_document(text, collector.builder.source, "toml", FleetError)
    entries = build(FleetEntries, Field(data, collector.builder.source, error=FleetError))
    for name, model in entries.models.items():
        options = {
            "joints": _listed(model.joints),
            "locked": dict(model.lock),
            "gravity": model.gravity,
            "snap": model.snap,
        }
        given = {key: value for key, value in options.items() if value not in (None, {}, [])}
        collector.builder.add_model(name, model.description, given)
        for files in _listed(model.logs):
            collector.discovered(name, files, collector.mapping(model.mapping, entries.mapping))
    for robot, entry in entries.robots.items():
        of_model = entries.models[collector.builder.add_robot(robot, entry.model)].mapping
        place = Field(entry.logs, f"{collector.builder.source}: robots: {robot}: logs", error=FleetError)
        items = place.items("entry") if isinstance(entry.logs, list) else [place]
        for item in items:
            one = LogEntry(item.text()) if isinstance(item.value, str) else build(LogEntry, item)
            mapping = collector.mapping(one.mapping, entry.mapping, of_model, entries.mapping)
            for files in _listed(one.files):
                collector.logs(robot, files, mapping, one.date, one.temperature, one.load)
    return collector.builder.fleet()


def _listed(names: _Names) -> list[str]:
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
    collector = Collector(source, folder_of(source))
    for name in table:
        if name not in TABLE_COLUMNS:
            raise collector.fail(str(UnknownNameError("column", name, TABLE_COLUMNS)))
    for name in ("robot", "log"):
        if name not in table:
            raise collector.fail(f"has no column '{name}'; a fleet's table has {', '.join(TABLE_COLUMNS)}.")
    count = len(table["robot"])
    models: dict[tuple[str, str], str] = {}
    for k in range(count):
        row = {name: _cell(column[k]) for name, column in table.items()}
        robot, files = _word(row["robot"]), _word(row["log"])
        if not robot or not files:
            raise collector.fail(f"row {k + 1} lacks the {'log' if robot else 'robot'}; write it.")
        stated = _word(row.get("model")), _word(row.get("description"))
        if stated == ("", ""):
            raise collector.fail(f"row {k + 1}: robot '{robot}' has neither model nor description; write one of them.")
        if stated not in models:
            models[stated] = _add_model(collector, *stated)
        collector.builder.add_robot(robot, models[stated])
        load = _word(row.get("load")) or None
        mapping = collector.mapping(_word(row.get("mapping")))
        collector.logs(robot, files, mapping, row.get("date"), _degrees(collector, row.get("temperature"), k), load)
    return collector.builder.fleet()


def _add_model(collector: Collector, name: str, description: str) -> str:
    """A model by its name and description, of which a table may have one alone: arm.urdf is a description."""
    suffixes = tuple(suffix for kind in ROBOT_FORMATS.values() for suffix in kind.suffixes)
    if not description and name.lower().endswith(suffixes):
        name, description = any_path(name, FleetError).stem, name
    return collector.builder.add_model(name, description)


def _cell(value: Any) -> Any:
    """What a cell holds; None where it is empty."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if isinstance(value, np.datetime64) and np.isnat(value) else value


def _word(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)  # a column of numbers with gaps: robot 7, not 7.0
    return str(value).strip()


def _degrees(collector: Collector, value: Any, row: int) -> float | None:
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not -273.15 <= number <= 1000.0:
        raise collector.fail(f"row {row + 1}: the temperature {shown_value(value)} is none; write degrees Celsius.")
    return number


# ------------------------------------------------------------------------------ folders


def _from_folder(source: str) -> Fleet:
    """FLEET/arm.urdf and FLEET/ROBOT/…, or FLEET/MODEL/arm.urdf and FLEET/MODEL/ROBOT/… for several models."""
    collector = Collector(source, source)
    found = tree(source)
    above = _files_in(found, "")
    if _described(collector, source, above) is not None:
        _add_folder(collector, found, "", None)
    else:
        for name in sorted({name.partition("/")[0] for name, _ in found if "/" in name}):
            if _described(collector, name, _files_in(found, f"{name}/")) is not None:
                _add_folder(collector, found, f"{name}/", _mapping_in(above))
    if not collector.builder.has_models:
        known = ", ".join(sorted({suffix for kind in ROBOT_FORMATS.values() for suffix in kind.suffixes}))
        raise collector.fail(
            f"has neither {FLEET_FILE} nor a description of a robot ({known}), nor have its folders; a fleet is "
            "FLEET/arm.urdf with FLEET/ROBOT/run.parquet, or FLEET/MODEL/arm.urdf with FLEET/MODEL/ROBOT/run.parquet."
        )
    return collector.builder.fleet()


def _add_folder(collector: Collector, found: list[tuple[str, bool]], folder: str, above: str | None) -> None:
    """A model's folder ("" or a name and /) with its robots; `above` is a mapping beside it."""
    files = _files_in(found, folder)
    described, own = _described(collector, folder, files), _mapping_in(files)
    assert described is not None
    model = collector.builder.add_model(folder.rstrip("/"), folder + described)
    logs: dict[str, list[str]] = {}
    mappings: dict[str, str] = {}
    for name, is_log in found:
        robot, slash, rest = name.removeprefix(folder).partition("/")
        if not name.startswith(folder) or (not slash and (not is_log or has_reader(Path(robot)))):
            continue  # of another model, or beside the robots; a robot's folder may itself be a log
        if is_log:
            logs.setdefault(robot, []).append(name)
        elif _mapping_in([rest]):
            mappings[robot] = name
    for robot, names in logs.items():
        mapping = collector.mapping(mappings.get(robot), own and folder + own, above)
        urls = [location_in(collector.base, name) for name in names]
        collector.builder.add_robot(robot, model)
        collector.builder.add_logs(FleetLog(robot, url, mapping, date_in_name(url)) for url in urls)


def _files_in(found: list[tuple[str, bool]], folder: str) -> list[str]:
    """The names of the files right in a folder."""
    return [n.removeprefix(folder) for n, _ in found if n.startswith(folder) and "/" not in n.removeprefix(folder)]


def _described(collector: Collector, folder: str, files: list[str]) -> str | None:
    """The name of the description among the files of a folder; None where there is none.

    Of formats that are XML any file is; what may be any document (.toml, .yaml) must be called robot.
    """
    kinds = ROBOT_FORMATS.values()
    plainly = {suffix for kind in kinds if kind.root for suffix in kind.suffixes}
    others = {suffix for kind in kinds for suffix in kind.suffixes} - plainly
    places = [(Path(file), file) for file in files]
    found = [f for p, f in places if p.suffix.lower() in plainly or (p.suffix.lower() in others and p.stem == _ROBOT)]
    if len(found) > 1:
        raise collector.fail(
            f"{shown_address(folder)} has several descriptions, {', '.join(found)}; keep one, or give each model a "
            "folder of its own."
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
