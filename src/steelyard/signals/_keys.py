"""Checks the keys of a mapping file and names the place of every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.signals.units import LOG_UNITS, unit_size

COLUMN_KEYS = ("position", "velocity", "acceleration", "torque", "current")
_SIDES = ("position", "velocity", "torque")
KEYS = (
    *(
        "preset",
        "joints",
        "time",
        *COLUMN_KEYS,
        "torque_constants",
        "torque_scale",
        "gear_ratio",
        "side",
        "coupling",
        "units",
        "sign",
    ),
    *("offset", "gravity", "torque_used", "window", "topic", "temperature", "wrench", "prefix", "episodes", "nan_rows"),
    *("coupling_inverse", "motors", "channels", "files"),
)


def parse_mapping(document: Field) -> dict[str, Any]:
    """Parse a mapping `document` into the arguments of a `LogMapping`."""
    entries = document.table(optional=KEYS)
    out: dict[str, Any] = {}
    count: int | None = None
    if "preset" in entries:
        from steelyard.signals.presets import PRESETS

        try:
            out["preset"] = entries["preset"].text()
            PRESETS[out["preset"]]
        except UnknownNameError as error:
            entries["preset"].fail(str(error))
    if "joints" in entries:
        out["joints"] = _names(entries["joints"])
        count = len(out["joints"])
    if "time" in entries:
        out |= _time(entries["time"])
    out |= _couplings(entries, count)
    on_motors = _on_motors(entries, len(out["coupling"]) if "coupling" in out else None)
    for key in (*COLUMN_KEYS, "temperature"):
        if key in entries:
            out[key] = _columns(entries[key], on_motors.get(key, count))
    for key in ("torque_constants", "torque_scale", "gear_ratio", "offset"):
        if key in entries:
            out[key] = _numbers(entries[key], on_motors.get(key, count))
    for key in ("torque_constants", "torque_scale", "gear_ratio"):
        if 0.0 in out.get(key, ()):
            entries[key].fail("0 makes every torque zero; correct it, or leave its joint out of torque_used.")
    if "side" in entries:
        out["side"] = _side(entries["side"])
    if "units" in entries:
        table = entries["units"].table(optional=tuple(LOG_UNITS))
        out["units"] = {key: _units(value, key, on_motors.get(key, count)) for key, value in table.items()}
    if "sign" in entries:
        out["sign"] = _sign(entries["sign"], count)
    if "gravity" in entries:
        out["gravity"] = tuple(entries["gravity"].vector(3))
    if "torque_used" in entries:
        out["torque_used"] = _names(entries["torque_used"])
    if "window" in entries:
        out["window"] = _window(entries["window"])
    if "wrench" in entries:
        out["wrench"] = _names(entries["wrench"])
        if len(out["wrench"]) != 6:
            entries["wrench"].fail("must name six columns: three forces and three torques.")
    if "channels" in entries:
        out["channels"] = {name: _names(entry) for name, entry in entries["channels"].entries().items()}
    if "topic" in entries:
        out["topic"] = entries["topic"].text()
    if "prefix" in entries:
        out["prefix"] = (
            (entries["prefix"].text(),) if isinstance(entries["prefix"].value, str) else _names(entries["prefix"])
        )
    if "nan_rows" in entries:
        out["nan_rows"] = entries["nan_rows"].choice(("drop", "refuse"))
    if "episodes" in entries:
        out["episodes"] = _episodes(entries["episodes"])
    if "files" in entries:
        out["files"] = {name: _of_file(entry) for name, entry in entries["files"].entries().items()}
    return out


def _of_file(entry: Field) -> dict[str, Any]:
    """Parse the mapping of one file, which replaces the rest of the document."""
    parsed = parse_mapping(entry)
    if "files" in parsed:
        entry.fail("is the mapping of one file and cannot have files itself; remove the inner table.")
    return parsed


def _episodes(entry: Field) -> str:
    """Parse the episodes to a text such as "0-4,7"."""
    if isinstance(entry.value, str):
        return entry.text()
    items = entry.items("number") if isinstance(entry.value, list | tuple) else [entry]
    numbers = [item.number(low=0.0, high=1e9) for item in items]
    if not numbers or any(number != int(number) for number in numbers):
        entry.fail('write whole numbers, or a text such as "0-4,7".')
    return ",".join(str(int(number)) for number in numbers)


def _names(entry: Field) -> tuple[str, ...]:
    names = entry.texts()
    if len(set(names)) < len(names):
        entry.fail(f"'{next(n for n in names if names.count(n) > 1)}' appears twice.")
    if not names:
        entry.fail("is empty; name at least one joint.")
    return tuple(names)


def _time(entry: Field) -> dict[str, Any]:
    if isinstance(entry.value, str | int) and not isinstance(entry.value, bool):
        return {"time": _column(entry)}
    table = entry.table(optional=("column", "rate", "gap"))
    if "column" in table and "rate" in table:
        entry.fail("give either a column or a rate.")
    out: dict[str, Any] = {key: table[key].positive() for key in ("rate", "gap") if key in table}
    return out | ({"time": _column(table["column"])} if "column" in table else {})


def _column(entry: Field) -> str:
    """Parse the name of a column, or its number from 1."""
    if isinstance(entry.value, int) and not isinstance(entry.value, bool):
        return str(int(entry.number(low=1.0, high=1e6)))
    return entry.text()


def _columns(entry: Field, count: int | None) -> tuple[str, ...] | str:
    if entry.value is False:
        return ()
    if isinstance(entry.value, str):
        pattern = entry.text()
        if "{}" in pattern and "{joint}" in pattern:
            entry.fail(f"'{pattern}' has both {{}} and {{joint}}; use one of them.")
        return pattern
    names = [_column(item) for item in entry.items("column")]
    if names and count is not None and len(names) != count:
        entry.fail(f"names {len(names)} columns, but there are {count} joints.")
    if len(set(names)) < len(names):
        entry.fail(f"column '{next(n for n in names if names.count(n) > 1)}' appears twice.")
    return tuple(names)


def _numbers(entry: Field, count: int | None) -> tuple[float, ...]:
    if not isinstance(entry.value, list | tuple):
        return (entry.number(),)
    items = entry.items("number")
    if count is not None and len(items) != count:
        entry.fail(f"has {len(items)} numbers, but there are {count} joints.")
    return tuple(item.number() for item in items)


def _side(entry: Field) -> dict[str, str]:
    if isinstance(entry.value, Mapping):
        return {key: value.choice(("motor", "joint")) for key, value in entry.table(optional=_SIDES).items()}
    side = entry.choice(("motor", "joint"))
    return dict.fromkeys(_SIDES, side)


def _on_motors(entries: Mapping[str, Field], motors: int | None) -> dict[str, int]:
    """Return the number of entries of each key that refers to the motors of a coupling."""
    if motors is None:
        return {}
    sides = _side(entries["side"]) if "side" in entries else {}
    out = dict.fromkeys(("gear_ratio", "torque_constants"), motors)
    for key in COLUMN_KEYS:
        of = {"acceleration": "velocity", "current": "torque"}.get(key, key)
        if sides.get(of, "motor") == "motor":
            out[key] = motors
    return out


def _couplings(entries: Mapping[str, Field], count: int | None) -> dict[str, Any]:
    """Parse the coupling of motors and joints, its inverse if stated, and the names of the motors."""
    out: dict[str, Any] = {}
    if "coupling" not in entries:
        for key in ("coupling_inverse", "motors"):
            if key in entries:
                entries[key].fail("needs the key coupling; add it.")
        return out
    entry = entries["coupling"]
    matrix = _rectangle(entry)
    motors, joints = matrix.shape
    if count is not None and joints != count:
        entry.fail(
            f"has {joints} columns, but there are {count} joints; write one row per motor, one column per joint."
        )
    out["coupling"] = tuple(tuple(row) for row in matrix.tolist())
    if "motors" in entries:
        out["motors"] = _names(entries["motors"])
        if len(out["motors"]) != motors:
            entries["motors"].fail(f"names {len(out['motors'])} motors, but the coupling has {motors} rows.")
    if "coupling_inverse" in entries:
        inverse = _rectangle(entries["coupling_inverse"])
        if inverse.shape != (joints, motors):
            entries["coupling_inverse"].fail(f"is {inverse.shape[0]} × {inverse.shape[1]}, not {joints} × {motors}.")
        there = inverse @ matrix if motors >= joints else matrix @ inverse
        if not np.allclose(there, np.eye(min(joints, motors)), atol=1e-6):
            entries["coupling_inverse"].fail("is not an inverse of the coupling: their product must be the identity.")
        out["coupling_inverse"] = tuple(tuple(row) for row in inverse.tolist())
    elif motors >= joints and np.linalg.cond(matrix) > 1e8:
        entry.fail("is singular, so it does not determine the joint positions; check its rows.")
    return out


def _rectangle(entry: Field) -> Array:
    """Parse a matrix of any shape."""
    rows = entry.items("row", 1000)
    widths = {len(row.items("number", 1000)) for row in rows}
    if len(widths) != 1 or 0 in widths:
        entry.fail("write one row per motor, with one number per joint.")
    return np.array([row.vector(next(iter(widths))) for row in rows], dtype=float)


def _units(entry: Field, signal: str, count: int | None) -> tuple[str, ...]:
    units = [entry] if isinstance(entry.value, str) else entry.items("unit")
    if signal == "time" and len(units) != 1:
        entry.fail("write one unit, such as 'ms'.")
    if len(units) != 1 and count is not None and len(units) != count:
        entry.fail(f"has {len(units)} units, but there are {count} joints.")
    for unit in units:
        try:
            unit_size(signal, unit.text())
        except UnknownNameError as error:
            unit.fail(str(error))
    return tuple(unit.text() for unit in units)


def _sign(entry: Field, count: int | None) -> dict[str, tuple[float, ...]]:
    """Parse signs: a list for the torque, or a table for position, velocity and torque."""
    tables = entry.table(optional=_SIDES) if isinstance(entry.value, Mapping) else {"torque": entry}
    out = {key: _numbers(value, count) for key, value in tables.items()}
    for key, numbers in out.items():
        if any(abs(number) != 1.0 for number in numbers):
            tables[key].fail("a sign must be 1 or -1.")
    return out


def _window(entry: Field) -> Any:
    if isinstance(entry.value, Mapping):
        return {str(stem): _pair(entry.inside(pair, str(stem))) for stem, pair in entry.value.items()}
    return _pair(entry)


def _pair(entry: Field) -> tuple[int, int]:
    first, last = entry.vector(2)
    if first != int(first) or last != int(last) or first < 1:
        entry.fail(f"[{first:g}, {last:g}] must be two whole row numbers, counted from 1.")
    if last < first:
        entry.fail(f"the last row, {last:g}, is before the first, {first:g}.")
    return int(first), int(last)
