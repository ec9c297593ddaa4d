"""Reads one actuator from tables: CSV, Parquet and the other formats of logs, and LeRobot's data sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.actuators.command_columns import Code, CommandColumns, command_unit_size, decode, filled, guess_code
from steelyard.actuators.recorders.columns_by_name import SETTINGS, find_columns, run_column, unit_in_name
from steelyard.errors import LogError, UnknownNameError, shortened
from steelyard.ground.untrusted_files import read_json
from steelyard.signals.table import Table, open_reader

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array

# Largest number of runs of one table; a column with more values does not number runs.
_MOST_RUNS = 10_000
_SIGNALS = ("goal", "position", "velocity", "duty", "voltage", "current", "torque", "enabled", "feedforward")


def is_lerobot(path: Path) -> bool:
    """Whether the folder `path` is a LeRobot data set."""
    return (path / "meta" / "info.json").is_file()


def read_table_runs(
    path: Path, joint: str | None = None, units: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None, codes: Mapping[str, Code] | None = None, episodes: str | None = None,
) -> list[CommandColumns]:  # fmt: skip
    """Read one actuator of a table; a column `log`, `run` or `episode` separates runs.

    Args:
        path: File, or the folder of a LeRobot data set.
        joint: Name or number of the joint, if the table has several.
        units: Units by signal, if the names of the columns do not contain them.
        columns: Columns by signal, if their names do not identify the signal.
        codes: How registers store negative numbers, by signal; default: guessed for duty, else "signed".
        episodes: Episodes of a LeRobot data set, such as "0-4,7"; default: all.
    """
    if is_lerobot(path):
        if "position" not in (units or {}):
            raise LogError(
                f"{path}: a LeRobot data set does not contain the unit of its positions; state units position = deg "
                "(recorded with use_degrees)."
            )
        return [
            _run(_whole(path, str(k)), joint, units or {}, columns or {}, codes or {}, f"{path} episode {k}")
            for k in _episodes(path, episodes)
        ]
    table = _whole(path, None)
    run = run_column(table.names)
    if run is None:
        return [_run(table, joint, units or {}, columns or {}, codes or {}, str(path))]
    labels = table.column(run)
    order = list(dict.fromkeys(labels.tolist()))
    if len(order) > _MOST_RUNS:
        raise LogError(f"{path}: column '{run}' has {len(order)} values, so it does not number runs; rename it.")
    out = []
    for label in order:
        rows = labels == label
        part = Table(table.path, table.names, ({n: table.column(n)[rows] for n in table.names},))
        out.append(_run(part, joint, units or {}, columns or {}, codes or {}, f"{path} {run} {label}"))
    return out


def _episodes(path: Path, episodes: str | None) -> Iterable[int]:
    if episodes is not None:
        from steelyard.signals.readers.lerobot import _parse_episodes

        return sorted(_parse_episodes(path, episodes) or ())
    info = read_json(path / "meta" / "info.json", LogError, "name the folder of the data set").entries()
    if "total_episodes" not in info:
        raise LogError(f"{path}: meta/info.json lacks total_episodes; state the episodes.")
    return range(info["total_episodes"].whole(1, _MOST_RUNS))


def _whole(path: Path, topic: str | None) -> Table:
    reader = open_reader(path, topic)
    return reader.table(reader.names, reader.blocks(reader.names), 0)


def _run(
    table: Table, joint: str | None, units: Mapping[str, str], columns: Mapping[str, str], codes: Mapping[str, Code],
    source: str,
) -> CommandColumns:  # fmt: skip
    for signal in (*units, *columns, *codes):
        if signal not in (*_SIGNALS, "time"):
            raise UnknownNameError("signal", signal, ("time", *_SIGNALS))
    named = {k: v for k, v in columns.items()}
    for signal, name in named.items():
        if name not in table.names:
            raise LogError(f"{source}: {UnknownNameError(f'column ({signal})', name, table.names)}")
    rest = [name for name in table.names if name not in named.values()]
    meanings = {**{k: v for k, v in find_columns(source, rest, joint).items() if k not in named}, **named}
    for needed in ("time", "goal", "position"):
        if needed not in meanings:
            raise LogError(
                f"{source}: no column looks like the {needed}; name it (columns: {needed}). Columns: "
                f"{shortened(', '.join(table.names), 150)}."
            )
    time = _time(table, meanings["time"], units)
    signals: dict[str, Array | None] = dict.fromkeys(_SIGNALS)
    notes: list[str] = []
    enabled: NDArray[np.bool_] | None = None
    for signal, name in meanings.items():
        if signal == "time":
            continue
        values = _numbers(table, name)
        if signal == "enabled":
            enabled = filled(values) > 0.5
            continue
        code = codes.get(signal) or (guess_code(values) if signal == "duty" else "signed")
        if code is None:
            notes.append(f"The column '{name}' was averaged across the wrap of an unsigned register; it is not used.")
            continue
        values = decode(values, code)
        unit = units.get(signal) or unit_in_name(name, signal) or _usual(signal, units)
        if signal == "duty" and not unit:
            if np.nanmax(np.abs(values), initial=0.0) > 1.05:
                notes.append(
                    f"The column '{name}' has no unit and values above 1, so it is not used; state the unit of duty: "
                    "percent, per mille or counts/N, such as --units duty=counts/885."
                )
                continue
            unit = "1"
        signals[signal] = values * command_unit_size(_unit_signal(signal), unit) if unit else values
    goal, position = signals["goal"], signals["position"]
    assert goal is not None  # the check above requires both
    assert position is not None
    if enabled is None:
        goal = filled(goal)
    numbers, words = _settings(table)
    result = CommandColumns(
        source, joint or "drive", time, goal, position, signals["velocity"], _maybe_filled(signals["duty"]),
        _maybe_filled(signals["voltage"]), _maybe_filled(signals["current"]), signals["torque"], enabled,
        numbers, words, tuple(notes), _maybe_filled(signals["feedforward"]),
    )  # fmt: skip
    return result


def _maybe_filled(values: Array | None) -> Array | None:
    return None if values is None or not np.isfinite(values).any() else filled(values)


def _usual(signal: str, units: Mapping[str, str]) -> str:
    """The unit of a signal without a stated one: goals have the unit of the positions."""
    return units.get("position", "") if signal == "goal" else ""


def _unit_signal(signal: str) -> str:
    return {"goal": "position", "feedforward": "torque"}.get(signal, signal)


def _time(table: Table, name: str, units: Mapping[str, str]) -> Array:
    column = table.column(name)
    if column.dtype.kind == "M":
        return np.asarray((column - column[0]).astype("m8[ns]").astype(float) * 1e-9)
    unit = units.get("time") or unit_in_name(name, "time") or "s"
    values = table.numbers(name) * command_unit_size("time", unit)
    return np.asarray(values - values[0] if len(values) else values)


def _numbers(table: Table, name: str) -> Array:
    """A column as numbers; empty cells are NaN."""
    column = table.column(name)
    if column.dtype.kind in "biuf":
        return np.asarray(column, dtype=float)
    out = np.full(len(column), np.nan)
    for k, value in enumerate(column):
        text = str(value).strip() if value is not None else ""
        if text.lower() in ("true", "false"):
            out[k] = float(text.lower() == "true")
        elif text:
            try:
                out[k] = float(text)
            except ValueError:
                raise LogError(
                    f"{table.path}: row {table.row_numbers[k]}, column '{name}': '{shortened(text, 30)}' is not a "
                    "number."
                ) from None
    return out


def _settings(table: Table) -> tuple[dict[str, float], dict[str, str]]:
    """Columns with one number or text for the whole run."""
    numbers: dict[str, float] = {}
    words: dict[str, str] = {}
    for name in table.names:
        key = name.lower()
        column = table.column(name)
        if key in SETTINGS and column.dtype.kind in "iuf" and len(column) and np.all(column == column[0]):
            numbers[SETTINGS[key]] = float(column[0])
        if key in ("motor", "trajectory") and len(column):
            words[key] = shortened(str(column[0]), 60)
    return numbers, words


def settings_table(path: Path) -> dict[str, tuple[dict[str, float], dict[str, str]]]:
    """Read a table with one row per run: its number or name, and mass, length, kp, kd, volts, motor, trajectory.

    Args:
        path: File.
    """
    table = _whole(path, None)
    run = run_column(table.names)
    if run is None:
        raise LogError(f"{path}: the column with the run of each row is missing; name it log, run or episode.")
    out = {}
    labels: Sequence[object] = table.column(run).tolist()
    for k, label in enumerate(labels):
        numbers, words = _settings(table.rows(k, k + 1))
        # Other columns are properties that may define groups of runs.
        others = [n for n in table.names if n != run and n.lower() not in SETTINGS]
        more = {n: shortened(str(table.column(n)[k]), 60) for n in others if n not in words}
        out[str(label)] = numbers, {**words, **more}
    return out
