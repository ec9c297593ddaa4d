"""Read robots written as Denavit–Hartenberg tables, in YAML or TOML. The format is described in docs/robot-files.md.

In both conventions a row is a screw along x (alpha, a) and a screw along z (theta, d), and the joint moves along
z. Standard: T_i = Z(theta, d) X(alpha, a), the joint moves about z of frame i−1. Modified (Craig, Khalil):
T_i = X(alpha, a) Z(theta, d), the joint moves about z of frame i. As Z(q + offset) = Z(q) Z(offset), offsets
become constant placements and only ±q is left in the joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.robot.dh_drives import read_terms, read_transmission
from steelyard.robot.dh_row import COLUMNS, Row, read_row
from steelyard.robot.document import read_document
from steelyard.robot.fields import Field
from steelyard.robot.robot import Link, Robot
from steelyard.robot.spatial import Array, rotation_about, rotation_from_rpy, snap

_REQUIRED = ("convention", "rows")
_OPTIONAL = (
    *("name", "description", "units", "gravity", "base", "tool", "link_frame", "lengths", "constants"),
    *("columns", "transmission", "terms", "torque_used"),
)
_LINK_FRAMES = {"standard": ("distal", "proximal", "joint"), "modified": ("joint",)}


def read_dh(path: Path) -> Robot:
    """The robot of a `.yaml` or `.toml` file with a Denavit–Hartenberg table."""
    return robot_from_dh(read_document(path), str(path))


def robot_from_dh(data: Mapping[str, Any], source: str) -> Robot:
    """The robot that a file's plain data describe; `source` is the name of the file in errors."""
    entries = Field(data, source).table(_REQUIRED, _OPTIONAL)
    lengths = _named_numbers(entries.get("lengths"), {})
    names = {**lengths, **_named_numbers(entries.get("constants"), lengths)}
    root = Field(data, source, names)
    entries = root.table(_REQUIRED, _OPTIONAL)

    rows = _read_rows(root, entries)
    joints = tuple(row.joint for row in rows)
    joint_names = [joint.name for joint in joints]
    for name in ("lengths", "constants"):
        for twice in sorted(set(entries[name].value if name in entries else ()) & set(joint_names)):
            entries[name].fail(f"'{twice}' is also the name of a joint; rename one of the two.")

    transmission = read_transmission(entries["transmission"], joint_names) if "transmission" in entries else None
    used = _torque_used(entries["torque_used"], joint_names) if "torque_used" in entries else ()
    stem = Path(source).stem or source
    return Robot(
        name=entries["name"].text() if "name" in entries else stem,
        joints=joints,
        links=_links(entries, rows),
        gravity=np.array(entries["gravity"].vector(3) if "gravity" in entries else [0.0, 0.0, -9.81]),
        transmission=transmission,
        torque_used=used,
        lengths=lengths,
        nominal_terms=read_terms(entries["terms"], joint_names, transmission) if "terms" in entries else (),
        source=source,
    )


def _named_numbers(entry: Field | None, before: Mapping[str, float]) -> dict[str, float]:
    """Named constants; each may use those above it."""
    named: dict[str, float] = {}
    if entry is None:
        return named
    if not isinstance(entry.value, Mapping):
        entry.fail("must be a table of names and numbers, such as {l1: 0.3}.")
    for name, value in entry.value.items():
        if not isinstance(name, str) or not name.isidentifier():
            entry.fail(f"'{name}' cannot be used in a formula; name it with letters, digits and _ only.")
        if name in ("pi", "q"):
            entry.fail(f"'{name}' has a meaning of its own in formulas; choose another name.")
        if name in before:
            entry.fail(f"'{name}' is named twice; keep one of the two.")
        named[name] = Field(value, f"{entry.place}: {name}", {**before, **named}).number()
    return named


def _in_degrees(entries: Mapping[str, Field]) -> bool:
    return "units" in entries and entries["units"].choice(("rad", "deg")) == "deg"


def _read_rows(root: Field, entries: Mapping[str, Field]) -> list[Row]:
    degrees = _in_degrees(entries)
    columns: tuple[str, ...] = COLUMNS
    if "columns" in entries:
        columns = tuple(entries["columns"].texts())
        if sorted(columns) != sorted(COLUMNS):
            entries["columns"].fail(f"must be {', '.join(COLUMNS)}, each once, in the order of the rows' lists.")
    rows: list[Row] = []
    for index, item in enumerate(entries["rows"].items("row")):
        rows.append(read_row(root.inside(item.value, f"row {index + 1}"), index, rows, columns, degrees))
    if not rows:
        entries["rows"].fail("there is no row; a robot needs at least one.")
    return rows


def _torque_used(entry: Field, joint_names: list[str]) -> tuple[bool, ...]:
    chosen = [item.choice(joint_names) for item in entry.items("item")]
    return tuple(name in chosen for name in joint_names)


# -------------------------------------------------------------------- placements


@dataclass(frozen=True)
class _Placement:
    """Where a frame stands in another: rotation and translation."""

    rotation: Array
    translation: Array

    def __matmul__(self, inner: _Placement) -> _Placement:
        # Adding 0.0 turns -0.0 into 0.0, so that equal robots have equal bytes.
        return _Placement(
            self.rotation @ inner.rotation + 0.0, self.translation + self.rotation @ inner.translation + 0.0
        )


_HERE = _Placement(np.eye(3), np.zeros(3))


def _screw(axis: int, angle: float, length: float) -> _Placement:
    """Turn about, and slide along, the axis x (0) or z (2)."""
    direction = np.eye(3)[axis]
    # Rodrigues' c + (1 - c) can miss 1 by a last bit, which would keep tracing from dropping it.
    return _Placement(snap(rotation_about(direction, angle), 1e-15), length * direction)


def _links(entries: Mapping[str, Field], rows: list[Row]) -> tuple[Link, ...]:
    convention = entries["convention"].choice(tuple(_LINK_FRAMES))
    frames = _LINK_FRAMES[convention]
    link_frame = entries["link_frame"].choice(frames) if "link_frame" in entries else frames[0]
    base = _base(entries["base"], _in_degrees(entries)) if "base" in entries else _HERE

    ends: list[_Placement] = []  # of frame i in the moved joint frame i
    links: list[Link] = []
    for index, row in enumerate(rows):
        x, z = _screw(0, row.alpha, row.a), _screw(2, row.theta, row.d)
        before, end = (_HERE, z @ x) if convention == "standard" else (x @ z, _HERE)
        placement = (base if row.parent < 0 else ends[row.parent]) @ before
        own = {
            "joint": _HERE,
            "distal": end,
            "proximal": _Placement(end.rotation, np.zeros(3)),
        }[link_frame]
        ends.append(end)
        links.append(
            Link(
                name=row.link,
                joint=row.joint.name,
                kind=row.joint.kind,
                parent=row.parent,
                rotation=placement.rotation,
                translation=placement.translation,
                axis=np.array([0.0, 0.0, row.sign]),
                coordinate=index,
                inertia=row.inertia,
                frame_rotation=own.rotation,
                frame_translation=own.translation,
            )
        )
    return tuple(links)


def _base(entry: Field, degrees: bool) -> _Placement:
    parts = entry.table((), ("rpy", "xyz"))
    rpy = parts["rpy"].vector(3) if "rpy" in parts else [0.0, 0.0, 0.0]
    xyz = parts["xyz"].vector(3) if "xyz" in parts else [0.0, 0.0, 0.0]
    return _Placement(snap(rotation_from_rpy(*(np.deg2rad(rpy) if degrees else rpy)), 1e-15) + 0.0, np.array(xyz))
