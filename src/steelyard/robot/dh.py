"""Read robots from Denavit–Hartenberg tables in YAML or TOML (format: docs/robot-files.md).

In both conventions a row is a screw along x (alpha, a) and a screw along z (theta, d), and the joint moves along
z. Standard: T_i = Z(theta, d) X(alpha, a), the joint moves about z of frame i−1. Modified (Craig, Khalil):
T_i = X(alpha, a) Z(theta, d), the joint moves about z of frame i. As Z(q + offset) = Z(q) Z(offset), offsets
become constant placements and only ±q remains in the joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import RobotError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.robot._dh_row import COLUMNS, Row, read_link, read_row
from steelyard.robot.formats import ROBOT_FORMATS, RobotFormat
from steelyard.robot.free import with_floating_base
from steelyard.robot.robot import MOST_JOINTS, Link, NominalTerm, Robot
from steelyard.robot.spatial import rotation_about, rotation_from_rpy, snap
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission


def read_transmission(entry: Field, joint_names: Sequence[str]) -> Transmission:
    """Read the coupling of motors and joints.

    Args:
        entry: The table `transmission` of the file.
        joint_names: Joints in the order of the robot.
    """
    keys = entry.table((), ("motors", "motor_from_joint", "joint_from_motor", "ratios"))
    matrix_keys = [key for key in ("motor_from_joint", "joint_from_motor") if key in keys]
    if len(matrix_keys) != 1:
        entry.fail("needs one matrix, motor_from_joint or joint_from_motor, as a list of rows.")
    matrix = keys[matrix_keys[0]].matrix(len(joint_names))
    motors = tuple(keys["motors"].texts()) if "motors" in keys else ()
    if len(set(motors)) < len(motors):
        keys["motors"].fail("a motor is named twice; name every motor differently.")
    ratios = tuple(_ratio(item) for item in keys["ratios"].items("ratio")) if "ratios" in keys else ()
    try:
        if matrix_keys == ["joint_from_motor"]:
            # The inverse of a coupling of ones and minus ones has such entries again, except for rounding.
            inverse = snap(Transmission.from_motor_to_joint(matrix).matrix, 1e-14)
            return Transmission(inverse, motors, ratios)
        return Transmission(np.array(matrix), motors, ratios)
    except RobotError as error:
        entry.fail(str(error))


def _ratio(entry: Field) -> Ratio:
    """Read a constant ratio or a ball screw."""
    if not isinstance(entry.value, dict):
        ratio = entry.number()
        if ratio == 0.0:
            entry.fail("a ratio of 0 would leave the motor unconnected.")
        return ConstantRatio(ratio)
    screw = entry.table(("ball_screw",))["ball_screw"]
    keys = screw.table(("pitch", "x1_squared", "x2_squared", "phase"))
    pitch = keys["pitch"].number()
    if pitch == 0.0:
        keys["pitch"].fail("must not be 0 (it is negative if a growing motor angle shortens the screw).")
    x1, x2 = keys["x1_squared"].positive(), keys["x2_squared"].positive()
    if x1 >= x2:
        screw.fail("x1_squared = 2ab must be below x2_squared = a² + b², the cranks being a and b.")
    return BallScrew(pitch, x1, x2, keys["phase"].number())


def _term(entry: Field, joint_names: Sequence[str], transmission: Transmission | None) -> NominalTerm:
    keys = entry.table(("kind", "values"), ("on", "options"))
    kind = keys["kind"].text()
    keys = Field(entry.value, f"{entry.place} ({kind})", entry.names).table(tuple(keys))
    on = keys["on"].choice(("joint", "drive", "motor")) if "on" in keys else "joint"
    if on != "joint" and transmission is None:
        keys["on"].fail(f"needs a transmission to refer to a {on}; write on: joint, or state the transmission.")
    count = len(joint_names) if on == "joint" or transmission is None else len(transmission.motors)
    values = keys["values"]
    nested = isinstance(values.value, list | tuple) and any(isinstance(v, list | tuple) for v in values.value)
    rows = values.matrix(count) if nested else [values.vector(count)]
    options = _options(keys.get("options"))
    try:
        needed = _parameters(kind, dict(options))
    except SteelyardError as error:
        keys.get("options", entry).fail(str(error))
    if needed not in (None, len(rows)):
        values.fail(f"a {kind} term has {needed} parameter(s), one list each, not {len(rows)}.")
    return NominalTerm(kind, tuple(tuple(row) for row in rows), on, options)


def _parameters(kind: str, options: dict[str, Any]) -> int | None:
    """Return the number of parameters of a term per coordinate; None for an unknown term."""
    from steelyard.parameters.term import TERMS, make_term

    return len(make_term(kind, **options).columns) if kind in TERMS else None


def _options(entry: Field | None) -> tuple[tuple[str, float | str], ...]:
    if entry is None:
        return ()
    if not isinstance(entry.value, dict):
        entry.fail("must be a table of option names and values.")
    options: list[tuple[str, float | str]] = []
    for name, value in entry.value.items():
        item = entry.inside(value, str(name))
        options.append((str(name), item.text() if isinstance(value, str) else item.number()))
    return tuple(options)


_REQUIRED = ("convention", "rows")
_OPTIONAL = (
    *("name", "description", "units", "gravity", "base", "tool", "link_frame", "lengths", "constants"),
    *("columns", "transmission", "terms", "torque_used", "floating_base"),
)
_LINK_FRAMES = {"standard": ("distal", "proximal", "joint"), "modified": ("joint",)}


def read_dh(path: Path) -> Robot:
    """Read the robot of a `.yaml` or `.toml` file at `path` with a Denavit–Hartenberg table."""
    return robot_from_dh(read_document(path), str(path))


def robot_from_dh(data: Mapping[str, Any], source: str) -> Robot:
    """Convert the data of a file to a robot.

    Args:
        data: Content of the file.
        source: Name of the file for error messages.
    """
    entries = Field(data, source).table(_REQUIRED, _OPTIONAL)
    lengths = _named_numbers(entries.get("lengths"), {})
    names = {**lengths, **_named_numbers(entries.get("constants"), lengths)}
    root = Field(data, source, names)
    entries = root.table(_REQUIRED, _OPTIONAL)

    rows = _read_rows(root, entries)
    joints = tuple(row.joint for row in rows)
    joint_names = [joint.name for joint in joints]
    for name in ("lengths", "constants"):
        for duplicate in sorted(set(entries[name].value if name in entries else ()) & set(joint_names)):
            entries[name].fail(f"'{duplicate}' is also the name of a joint; rename one of the two.")

    transmission = read_transmission(entries["transmission"], joint_names) if "transmission" in entries else None
    used = _torque_used(entries["torque_used"], joint_names) if "torque_used" in entries else ()
    stated = entries["terms"].items("term") if "terms" in entries else ()
    stem = Path(source).stem or source
    robot = Robot(
        name=entries["name"].text() if "name" in entries else stem,
        joints=joints,
        links=_links(entries, rows),
        gravity=np.array(entries["gravity"].vector(3) if "gravity" in entries else [0.0, 0.0, -9.81]),
        transmission=transmission,
        torque_used=used,
        lengths=lengths,
        nominal_terms=tuple(_term(item, joint_names, transmission) for item in stated),
        source=source,
    )
    return _floating(robot, entries["floating_base"]) if "floating_base" in entries else robot


def _floating(robot: Robot, entry: Field) -> Robot:
    """Read the body that carries a robot: `true`, or its name and inertia as of a link."""
    if entry.value is False:
        return robot
    body, inertia = read_link(None if entry.value is True else entry, "base_link")
    if body in robot.link_names:
        entry.fail(f"'{body}' is also the name of a link; rename one of the two.")
    if robot.transmission is not None:
        entry.fail("has no meaning beside a transmission yet; remove one of the two.")
    return with_floating_base(robot, body, inertia)


def _named_numbers(entry: Field | None, before: Mapping[str, float]) -> dict[str, float]:
    """Read named constants; each may use earlier ones."""
    named: dict[str, float] = {}
    if entry is None:
        return named
    if not isinstance(entry.value, Mapping):
        entry.fail("must be a table of names and numbers, such as {l1: 0.3}.")
    for name, value in entry.value.items():
        if not isinstance(name, str) or not name.isidentifier():
            entry.fail(f"'{name}' cannot be used in a formula; name it with letters, digits and _ only.")
        if name in ("pi", "q"):
            entry.fail(f"'{name}' is reserved in formulas; choose another name.")
        if name in before:
            entry.fail(f"'{name}' is defined twice; keep one of the two.")
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
    for index, item in enumerate(entries["rows"].items("row", MOST_JOINTS)):
        rows.append(read_row(root.inside(item.value, f"row {index + 1}"), index, rows, columns, degrees))
    if not rows:
        entries["rows"].fail("has no row; a robot needs at least one.")
    return rows


def _torque_used(entry: Field, joint_names: list[str]) -> tuple[bool, ...]:
    chosen = [item.choice(joint_names) for item in entry.items("item")]
    return tuple(name in chosen for name in joint_names)


# -------------------------------------------------------------------- placements


@dataclass(frozen=True)
class _Placement:
    """Pose of a frame in another one."""

    rotation: Array
    translation: Array

    def __matmul__(self, inner: _Placement) -> _Placement:
        # Adding 0.0 turns -0.0 into 0.0, so that equal robots have equal bytes.
        return _Placement(
            self.rotation @ inner.rotation + 0.0, self.translation + self.rotation @ inner.translation + 0.0
        )


_IDENTITY = _Placement(np.eye(3), np.zeros(3))


def _screw(axis: int, angle: float, length: float) -> _Placement:
    """Compute a screw about the axis x (0) or z (2)."""
    direction = np.eye(3)[axis]
    # Rodrigues' c + (1 - c) can miss 1 by one bit, and tracing drops only exact ones.
    return _Placement(snap(rotation_about(direction, angle), 1e-15), length * direction)


def _links(entries: Mapping[str, Field], rows: list[Row]) -> tuple[Link, ...]:
    convention = entries["convention"].choice(tuple(_LINK_FRAMES))
    frames = _LINK_FRAMES[convention]
    link_frame = entries["link_frame"].choice(frames) if "link_frame" in entries else frames[0]
    base = _base(entries["base"], _in_degrees(entries)) if "base" in entries else _IDENTITY

    ends: list[_Placement] = []  # frame i in the moved joint frame i
    links: list[Link] = []
    for index, row in enumerate(rows):
        x, z = _screw(0, row.alpha, row.a), _screw(2, row.theta, row.d)
        before, end = (_IDENTITY, z @ x) if convention == "standard" else (x @ z, _IDENTITY)
        placement = (base if row.parent < 0 else ends[row.parent]) @ before
        own = {
            "joint": _IDENTITY,
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


ROBOT_FORMATS.register("dh")(RobotFormat((".yaml", ".yml", ".toml"), "a Denavit–Hartenberg table", read_dh))
