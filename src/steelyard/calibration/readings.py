"""Recognise the readings of a table of poses by the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.calibration.column_names import listed, plain_name
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.table import Table

_LENGTHS = {"": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2, "in": 0.0254}
_COORDINATE = re.compile(r"^(.*?)_?([xyz])(?:_(m|mm|cm|in))?$")
_QUATERNION = re.compile(r"^(?:(.*)_)?(?:q|quat|quaternion|orientation)_?([wxyz])$")
_VECTOR = re.compile(r"^(?:(.*)_)?(?:r|rvec|rotvec)_?([xyz])(?:_(rad|deg))?$")
_KUKA = re.compile(r"^(?:(.*)_)?([abc])(?:_(rad|deg))?$")
_ROLL_PITCH_YAW = re.compile(r"^(?:(.*)_)?(roll|pitch|yaw)(?:_(rad|deg))?$")
_DISTANCE = re.compile(r"^(?:distance|wire|length|range)_?(\d*)(?:_(m|mm|cm|in))?$")
# Columns beside the readings: sessions, conditions of --only, radii, and what recorders add.
_BESIDE = re.compile(
    r"^(session|setup|station|flag.*|radius.*|.*id|no|index|row|time.*|t|t_s|date|.*temp.*|tau.*|subset)$"
)
_SIGMA = re.compile(r"^sigma(?:_(m|mm|cm|in|rad|deg))?$")
# Prefixes of columns without points of the tool: errors, and markers on the base.
_NO_POINTS = ("sigma", "std", "err", "base", "ref", "fixed")
_CONTACTS = {"plane": "plane", "sphere": "sphere", "hole": "contact", "contact": "contact", "pin": "contact"}


@dataclass(frozen=True, eq=False)
class ReadingColumns:
    """Columns of a table other than those of the joints.

    Attributes:
        table: Table.
        names: Names of the columns.
    """

    table: Table
    names: tuple[str, ...]

    def values(self, name: str, factor: float = 1.0) -> Array:
        """Return a column as numbers, empty cells as NaN.

        Args:
            name: Column.
            factor: Unit of the column.
        """
        column = self.table.column(name)
        try:
            values = np.asarray([np.nan if x is None or x == "" else x for x in column], dtype=float) * factor
            return np.where(np.isfinite(values), values, np.nan)
        except (TypeError, ValueError):
            raise LogError(
                f"{self.table.path}: column '{name}' has text; write numbers or leave cells empty."
            ) from None

    def labels(self, name: str) -> tuple[Array, Array]:
        """Return the index of the label of every row, NaN for an empty cell, and the labels of a column (`name`)."""
        text = np.asarray(self.table.column(name)).astype(str)
        named = ~np.isin(np.char.lower(text), ("", "nan", "none"))
        index = np.full(len(text), np.nan)
        labels, index[named] = np.unique(text[named], return_inverse=True)
        return index, labels

    def flags(self, name: str) -> NDArray[np.bool_]:
        """Return whether each row of a column (`name`) is true, or has the value of NAME=VALUE."""
        name, equals, value = name.partition("=")
        if equals:
            return np.asarray(np.asarray(self.table.column(name)).astype(str) == value)
        text = np.char.lower(np.asarray(self.table.column(name)).astype(str))
        return np.asarray(~np.isin(text, ("false", "0", "0.0", "no", "", "nan", "none")))


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of one kind: its name, and its values by group."""

    kind: str
    values: dict[str, Array]


def recognise_readings(
    columns: ReadingColumns, kind: str = "", points: Sequence[str] = ()
) -> tuple[Readings, list[str]]:
    """Find the readings in a table, with the standard deviations of the sensor where stated.

    Args:
        columns: Columns other than those of the joints.
        kind: Kind of measurement; "" to recognise it.
        points: Prefixes of the columns to use; () for all.

    Returns:
        Readings, and notes on unused columns.
    """
    readings, notes = _recognise(columns, kind, points)
    if rest := _unknown(columns):
        notes.append(f"Columns without a meaning here: {listed(rest)}.")
    for name in columns.names:
        if m := _SIGMA.match(plain_name(name)):
            unit = (m[1] or "m").lower()
            own = "sigma" if unit in _LENGTHS else "sigma_rotation"
            sigma = columns.values(name, _LENGTHS.get(unit, np.pi / 180.0 if unit == "deg" else 1.0))
            if bad := np.flatnonzero(~(sigma >= 0.0)).tolist():
                raise LogError(
                    f"{columns.table.path}: row {bad[0] + 1}, column '{name}': {sigma[bad[0]]:g} is no standard "
                    "deviation; write numbers from 0."
                )
            readings.values[own] = sigma
    return readings, notes


def _unknown(columns: ReadingColumns) -> list[str]:
    """Columns that look like no reading, such as angles with names of their own."""
    patterns = (_COORDINATE, _QUATERNION, _VECTOR, _ROLL_PITCH_YAW, _KUKA, _DISTANCE, _SIGMA, _BESIDE)
    return [
        n for n in columns.names if n.lower() not in _CONTACTS and not any(p.match(plain_name(n)) for p in patterns)
    ]


def _recognise(columns: ReadingColumns, kind: str = "", points: Sequence[str] = ()) -> tuple[Readings, list[str]]:
    turns = {
        **_groups(columns, _KUKA, "abc"),
        **_groups(columns, _ROLL_PITCH_YAW, ("roll", "pitch", "yaw")),
        **_groups(columns, _VECTOR, "xyz"),
        **_groups(columns, _QUATERNION, "wxyz"),
    }
    turned = {name for group in turns.values() for name, _ in group.values()}
    places = {
        prefix: group
        for prefix, group in _groups(columns, _COORDINATE, "xyz").items()
        if not turned & {name for name, _ in group.values()}
    }
    points = [prefix.lower() for prefix in points]
    for prefix in points:
        if prefix not in places:
            raise LogError(
                f"{columns.table.path}: has no columns {prefix}x, {prefix}y, {prefix}z; known: {_known(places)}."
            )
    selection = {p: g for p, g in places.items() if (p in points if points else not p.lower().startswith(_NO_POINTS))}
    rest = [p for p in places if p not in selection]
    notes = [f"Columns {', '.join(rest)} (x, y, z) are not used."] if rest else []
    if len(selection) == len(turns) == 1:  # the names of both parts of a pose may differ: pos_x, quat_x
        turns = dict(zip(selection, turns.values(), strict=True))
    poses = [p for p in selection if p in turns]
    contact = next((name for name in columns.names if name.lower() in _CONTACTS), None)
    wires = [(name, m) for name in columns.names if (m := _DISTANCE.match(plain_name(name)))]
    kind = kind or ("pose" if poses else "points" if selection else "")
    if not kind:
        kind = _CONTACTS[contact.lower()] if contact else "distances" if wires else ""
    if kind == "pose":
        if len(poses) != 1:
            raise LogError(
                f"{columns.table.path}: has {len(poses)} groups of pose columns ({', '.join(poses) or 'none'}); choose "
                "one that a sensor measured (--points NAME)."
            )
        rotation = _rotations(columns, turns[poses[0]])
        return Readings("pose", {"position": _lengths(columns, selection[poses[0]]), "rotation": rotation}), notes
    if kind == "points" and selection:
        coordinates = {prefix: _lengths(columns, group) for prefix, group in selection.items()}
        empty = [prefix for prefix, values in coordinates.items() if not np.isfinite(values).all(axis=1).any()]
        if empty:
            notes.append(f"Columns {', '.join(empty)} (x, y, z) are empty.")
        complete = [values for prefix, values in coordinates.items() if prefix not in empty]
        complete = complete or [*coordinates.values()][:1]
        return Readings("points", {"points": np.stack(complete, axis=1)}), notes
    if kind in ("plane", "sphere", "contact") and contact:
        labels, _ = columns.labels(contact)
        values = {"surface": labels}
        radius = next((n for n in columns.names if re.fullmatch(r"radius(_(m|mm))?", n.lower())), None)
        if kind == "sphere" and radius:
            values["radius"] = columns.values(radius, 1e-3 if radius.lower().endswith("_mm") else 1.0)
        return Readings(kind, values), notes
    if kind == "distances" and wires:
        lengths = [columns.values(name, _LENGTHS[(m[2] or "").lower()]) for name, m in wires]
        return Readings("distances", {"distances": np.column_stack(lengths)}), notes
    raise LogError(
        f"{columns.table.path}: has no readings{f' of kind {kind}' if kind else ''}; name the columns p1x_m, p1y_m, "
        "p1z_m (points), x_m … qw or roll_deg … (a pose), plane, sphere, contact, or distance1_m."
    )


def _groups(
    columns: ReadingColumns, pattern: re.Pattern[str], letters: Sequence[str]
) -> dict[str, dict[str, tuple[str, str]]]:
    """Complete groups of columns by prefix: letter → (column, unit)."""
    out: dict[str, dict[str, tuple[str, str]]] = {}
    for name in columns.names:
        if m := pattern.match(plain_name(name)):
            unit = (m[3] or "").lower() if m.re.groups > 2 else ""
            out.setdefault(m[1] or "", {})[m[2].lower()] = (name, unit)
    return {prefix: group for prefix, group in out.items() if set(group) == set(letters)}


def _lengths(columns: ReadingColumns, group: dict[str, tuple[str, str]]) -> Array:
    return np.column_stack([columns.values(group[x][0], _LENGTHS[group[x][1]]) for x in "xyz"])


def _rotations(columns: ReadingColumns, group: dict[str, tuple[str, str]]) -> Array:
    from scipy.spatial.transform import Rotation

    known = (("x", "y", "z", "w"), ("x", "y", "z"), ("roll", "pitch", "yaw"), ("a", "b", "c"))
    letters = next(names for names in known if set(names) == set(group))
    factors = [np.pi / 180.0 if group[x][1] == "deg" else 1.0 for x in letters]
    numbers = np.column_stack([columns.values(group[x][0], f) for x, f in zip(letters, factors, strict=True)])
    valid = np.isfinite(numbers).all(axis=1) & (np.linalg.norm(numbers, axis=1) > 0.0 if "w" in group else True)
    out = np.full((len(numbers), 3, 3), np.nan)
    if "w" in group:
        turned = Rotation.from_quat(numbers[valid])
    elif "x" in group:
        turned = Rotation.from_rotvec(numbers[valid])
    elif "roll" in group:  # turns about the fixed axes x, y, z, as in URDF
        turned = Rotation.from_euler("xyz", numbers[valid])
    else:  # KUKA's turns about the moved axes z, y, x
        turned = Rotation.from_euler("ZYX", numbers[valid])
    out[valid] = turned.as_matrix()
    return out


def _known(groups: dict[str, dict[str, tuple[str, str]]]) -> str:
    return ", ".join(repr(p) for p in groups) or "none"
