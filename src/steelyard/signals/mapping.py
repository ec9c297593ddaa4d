"""`LogMapping`: what the columns of a log mean, as its owner wrote it down."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field

# The units that a log may use, and what they are in SI.


Dimension = Literal["angle", "length", "other"]

_ANGLES = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi}
_LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6}

# By signal: each unit with its size in SI.
_UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {**_ANGLES, **_LENGTHS},
    "velocity": {
        **{f"{unit}/s": size for unit, size in (_ANGLES | _LENGTHS).items()},
        "rpm": 2.0 * math.pi / 60.0,
    },
    "acceleration": {f"{unit}/s^2": size for unit, size in (_ANGLES | _LENGTHS).items()},
    "torque": {"N m": 1.0, "N mm": 1e-3, "N cm": 1e-2, "mN m": 1e-3, "kN m": 1e3, "N": 1.0, "mN": 1e-3, "kN": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
}
SI = {"time": "s", "current": "A"}


def unit_size(signal: str, unit: str) -> float:
    """What `unit` of `signal` ("position", "torque", …) is in SI; spaces and dots do not matter (Nm, N m, N·m)."""
    return _UNITS[signal][_spelled(signal, unit)]


def unit_dimension(signal: str, unit: str) -> Dimension:
    """Whether `unit` of `signal` measures something that turns, something that slides, or neither."""
    name = _spelled(signal, unit)
    if signal in ("position", "velocity", "acceleration"):
        return "length" if name.split("/")[0] in _LENGTHS else "angle"
    if signal == "torque":
        return "angle" if " " in name else "length"
    return "other"


def _spelled(signal: str, unit: str) -> str:
    compact = _compact(unit)
    for name in _UNITS[signal]:
        if _compact(name) == compact:
            return name
    raise UnknownNameError(f"unit of {signal}", unit, _UNITS[signal])


def _compact(unit: str) -> str:
    for sign, plain in (
        (" ", ""),
        ("·", ""),
        ("*", ""),
        (".", ""),
        ("^", ""),
        ("²", "2"),
        ("µ", "u"),
        ("μ", "u"),
        ("°", "deg"),
    ):
        unit = unit.replace(sign, plain)
    return unit


# Check the keys of a mapping file one by one, naming the place of every mistake.


COLUMN_KEYS = ("position", "velocity", "acceleration", "torque", "current")
_SIDES = ("position", "velocity", "torque")
KEYS = (
    *(
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
    *("offset", "gravity", "torque_used", "window", "topic", "temperature", "wrench"),
)


def _parse_mapping(document: Field) -> dict[str, Any]:
    """The arguments of a `LogMapping`."""
    entries = document.table(optional=KEYS)
    out: dict[str, Any] = {}
    count: int | None = None
    if "joints" in entries:
        out["joints"] = _names(entries["joints"])
        count = len(out["joints"])
    if "time" in entries:
        out |= _time(entries["time"])
    for key in (*COLUMN_KEYS, "temperature"):
        if key in entries:
            out[key] = _columns(entries[key], count)
    for key in ("torque_constants", "torque_scale", "gear_ratio", "offset"):
        if key in entries:
            out[key] = _numbers(entries[key], count)
    for key in ("torque_constants", "torque_scale", "gear_ratio"):
        if 0.0 in out.get(key, ()):
            entries[key].fail("0 makes every torque vanish; state it, or leave its joint out of torque_used.")
    if "side" in entries:
        out["side"] = _side(entries["side"])
    if "coupling" in entries:
        out["coupling"] = _coupling(entries["coupling"], count)
    if "units" in entries:
        table = entries["units"].table(optional=tuple(_UNITS))
        out["units"] = {key: _units(value, key, count) for key, value in table.items()}
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
            entries["wrench"].fail("names the columns of three forces and three torques, six in all.")
    if "topic" in entries:
        out["topic"] = entries["topic"].text()
    return out


def _names(entry: Field) -> tuple[str, ...]:
    names = entry.texts()
    if len(set(names)) < len(names):
        entry.fail(f"'{next(n for n in names if names.count(n) > 1)}' appears twice.")
    if not names:
        entry.fail("is empty; name at least one joint.")
    return tuple(names)


def _time(entry: Field) -> dict[str, Any]:
    if isinstance(entry.value, str):
        return {"time": entry.text()}
    table = entry.table(optional=("column", "rate", "gap"))
    if "column" in table and "rate" in table:
        entry.fail("give a column or a rate, not both.")
    out: dict[str, Any] = {key: table[key].positive() for key in ("rate", "gap") if key in table}
    return out | ({"time": table["column"].text()} if "column" in table else {})


def _columns(entry: Field, count: int | None) -> tuple[str, ...] | str:
    if entry.value is False:
        return ()
    if isinstance(entry.value, str):
        pattern = entry.text()
        if "{}" in pattern and "{joint}" in pattern:
            entry.fail(f"'{pattern}' has both {{}} and {{joint}}; use one.")
        return pattern
    names = entry.texts()
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


def _coupling(entry: Field, count: int | None) -> tuple[tuple[float, ...], ...]:
    rows = entry.matrix(count if count is not None else len(entry.items("row")))
    matrix = np.array(rows)
    if len(rows) == 0 or matrix.shape[0] != matrix.shape[1]:
        entry.fail(
            f"has {len(rows)} rows of {len(rows[0]) if rows else 0}; write one row per motor, as many as joints."
        )
    if np.linalg.cond(matrix) > 1e8:
        entry.fail("is singular: two motors move the same way; no joint positions follow from it.")
    return tuple(tuple(row) for row in rows)


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
    """One list is about the torque; a table tells position, velocity and torque apart."""
    tables = entry.table(optional=_SIDES) if isinstance(entry.value, Mapping) else {"torque": entry}
    out = {key: _numbers(value, count) for key, value in tables.items()}
    for key, numbers in out.items():
        if any(abs(number) != 1.0 for number in numbers):
            tables[key].fail("a sign is 1 or -1.")
    return out


def _window(entry: Field) -> Any:
    if isinstance(entry.value, Mapping):
        return {str(stem): _pair(entry.inside(pair, str(stem))) for stem, pair in entry.value.items()}
    return _pair(entry)


def _pair(entry: Field) -> tuple[int, int]:
    first, last = entry.vector(2)
    if first != int(first) or last != int(last) or first < 1:
        entry.fail(f"[{first:g}, {last:g}] must be two whole row numbers, the first row being 1.")
    if last < first:
        entry.fail(f"the last row, {last:g}, comes before the first, {first:g}.")
    return int(first), int(last)


_SIGNALS = ("position", "velocity", "acceleration", "torque", "current")

# Names of columns: a list, a pattern with {} or {joint}, None to recognise them, () for none at all.
_Columns = tuple[str, ...] | str | None
Window = tuple[int, int]


@dataclass(frozen=True)
class LogMapping:
    """What the columns of a log mean. Every part is optional; what is not said is recognised or SI at the joints.

    Attributes:
        joints: names of the joints in the order of the columns; default: the file's own, or the robot's.
        time: the column with the time.
        rate: samples per second of a log without such a column.
        gap: the longest step of the clock that is not a gap, s.
        position, velocity, acceleration, torque, current: columns, one per joint, or a pattern such as "q{}" (the
            number of the joint, from 1) or "position/{joint}" (its name); an empty tuple if not to be used.
        temperature: columns of the joints' temperatures, °C, one per joint, or a pattern.
        wrench: six columns of a force–torque sensor: forces along x, y, z (N), then torques about them (N m).
        torque_constants: N m (or N) per A of each motor, seen from the joint side of its gear, sign included.
        torque_scale: what a torque (or what its current makes) is multiplied with, per joint, after everything else.
        gear_ratio: turns of the motor per turn of its output, sign included; rad/m for one that moves a slide.
        side: of position, velocity and torque: "motor" or "joint", what the file holds. On the motor side x is
            divided by the gear ratio and torque multiplied by it, then the coupling is applied; a torque from
            currents needs no ratio, its constants hold it.
        coupling: C with u = C q, one row per motor and one column per joint, as `motor_from_joint` of robot files and
            `Transmission.matrix`, u being the motors' angles after their gears. Then q = C⁻¹ u and τ = Cᵀ τ_u.
        units: by signal, of the file's columns, one or one per joint.
        sign: ±1 by signal, per joint, applied last but for the offset.
        offset: added to the positions at the end, rad or m.
        gravity: in the base frame, m/s²; for the caller to apply.
        torque_used: the joints whose torque can be trusted; for the caller to apply.
        window: first and last row, from 1, of every file or by the file's stem.
        topic: of the joint states in a bag.
        source: where it was written, for errors.
    """

    joints: tuple[str, ...] = ()
    time: str | None = None
    rate: float | None = None
    gap: float | None = None
    position: _Columns = None
    velocity: _Columns = None
    acceleration: _Columns = None
    torque: _Columns = None
    current: _Columns = None
    temperature: _Columns = None
    wrench: tuple[str, ...] = ()
    torque_constants: tuple[float, ...] = ()
    torque_scale: tuple[float, ...] = ()
    gear_ratio: tuple[float, ...] = ()
    side: Mapping[str, str] = field(default_factory=dict)
    coupling: tuple[tuple[float, ...], ...] = ()
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sign: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    offset: tuple[float, ...] = ()
    gravity: tuple[float, float, float] | None = None
    torque_used: tuple[str, ...] | None = None
    window: Window | Mapping[str, Window] | None = None
    topic: str | None = None
    source: str = "mapping"

    @classmethod
    def from_table(cls, data: Mapping[str, Any], source: str = "mapping") -> LogMapping:
        """From `data`, the keys and values of a mapping file, called `source` in errors; unknown keys are refused."""
        return cls(**_parse_mapping(Field(dict(data), source, error=LogError)), source=source)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LogMapping:
        """From the TOML, JSON or YAML file at `path`."""
        return cls.from_table(read_document(Path(path), LogError), str(path))

    def columns(self, signal: str) -> _Columns:
        """What is said of the columns of `signal`, such as "torque": names, a pattern, or None for nothing."""
        return getattr(self, signal)  # type: ignore[no-any-return]

    def on_motor(self, signal: str) -> bool:
        """Whether the file's columns of `signal` are on the motor side; not unless gears or a coupling are stated."""
        stated = "motor" if self.gear_ratio or self.coupling else "joint"
        return self.side.get({"acceleration": "velocity", "current": "torque"}.get(signal, signal), stated) == "motor"

    def coupling_matrix(self, joints: int) -> Array | None:
        """The coupling as a matrix for so many `joints`, or None where none is stated."""
        if not self.coupling:
            return None
        if len(self.coupling) != joints:
            raise LogError(f"{self.source}: coupling has {len(self.coupling)} rows, but there are {joints} joints.")
        return np.array(self.coupling)

    def window_of(self, path: str | os.PathLike[str]) -> Window | None:
        """First and last row, from 1, of the file at `path`; None: all of it."""
        if isinstance(self.window, Mapping):
            return self.window.get(Path(path).stem)
        return self.window

    def plain(self) -> dict[str, Any]:
        """What was stated, as plain data for a log's remarks."""
        stated: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name != "source" and value not in (None, (), {}):
                stated[entry.name] = _plain(value)
        return stated


def as_mapping(mapping: LogMapping | Mapping[str, Any] | str | os.PathLike[str] | None) -> LogMapping:
    """A mapping from whatever a caller may hold as `mapping`: nothing, a path, a table of keys, or a mapping."""
    if mapping is None:
        return LogMapping()
    if isinstance(mapping, LogMapping):
        return mapping
    return LogMapping.from_table(mapping) if isinstance(mapping, Mapping) else LogMapping.read(mapping)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
