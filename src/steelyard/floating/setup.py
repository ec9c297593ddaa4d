"""`FloatingMapping`: the base, passive joints and contacts in a mapping file.

passive = {slider = "height_m"}              # joints without a drive, with the columns of their positions
[base]                                       # the floating joint
position = ["x", "y", "z"]                   # of its body in the world [m]
orientation = ["qw", "qx", "qy", "qz"]
quaternion = "wxyz"                          # or "xyzw"
linear_velocity = ["vx", "vy", "vz"]         # [m/s]
angular_velocity = ["wx", "wy", "wz"]        # [rad/s]
twist = "body"                               # axes of both: "body", "world", or "mixed" (linear world, angular body)
gyroscope = ["gx", "gy", "gz"]               # an IMU on the base [rad/s]
accelerometer = ["ax", "ay", "az"]           # its specific force [m/s²]: about +9.81 upwards at rest
imu = {position = [0.1, 0, 0.05], rpy = [0, 0, 0]}
[contacts.FL_foot]                           # a frame or link of the robot
kind = "point"                               # or "line" (along y), "flat"
state = "FL_contact"                         # 1 in contact; without it and without a force: always
force = "FL_force"                           # or: a foot's sensor in any unit, zero in the air, that shows contact only
from_torques = true                          # or: joint torques show contact
wrench = ["FL_fx", "FL_fy", "FL_fz"]         # measured: three forces, or six with moments about the frame [N, N m]
axes = "world"                               # axes of the wrench: "world", "base" (base of the tree) or "frame"
sign = 1                                     # 1: force on the robot; -1: force on the ground
radius = 0.02                                # of a round foot [m]: its lowest point touches the ground
[free.shoulder]                              # a spherical or planar joint without a drive, in the frame of the joint
orientation = ["qw", "qx", "qy", "qz"]       # spherical; with quaternion, and angular_velocity with twist, as in [base]
position = ["x", "y"]                        # planar [m]
angle = "yaw"                                # planar [rad]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.robot.free import free_links
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping, as_mapping

_BASE_VECTORS = {
    "position": 3, "orientation": 4, "linear_velocity": 3, "angular_velocity": 3, "gyroscope": 3, "accelerometer": 3,
}  # fmt: skip
_TABLES = ("base", "passive", "contacts", "free")
# Signals of the other free joints, those that must be stated first.
_FREE_VECTORS = {"spherical": {"orientation": 4, "angular_velocity": 3}, "planar": {"position": 2, "angle": 1}}
_NEEDED = {"spherical": ("orientation",), "planar": ("position", "angle")}
QUATERNIONS = ("wxyz", "xyzw")
TWISTS = ("body", "world", "mixed")
# Rows of the Jacobian of a frame (velocity, angular velocity) that a contact holds; a line lies along y of its frame.
CONTACT_ROWS = {"point": (0, 1, 2), "line": (0, 1, 2, 3, 5), "flat": (0, 1, 2, 3, 4, 5)}


@dataclass(frozen=True)
class BaseColumns:
    """Columns of the base.

    Attributes:
        columns: Names of the columns of each signal.
        quaternion: Order of the quaternion; "" if it is not stated.
        twist: Axes of the velocities; "" if they are not stated.
        imu_position: Position of the IMU in the body [m].
        imu_rpy: Orientation of the IMU in the body [rad].
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quaternion: str = ""
    twist: str = ""
    imu_position: tuple[float, ...] = (0.0, 0.0, 0.0)
    imu_rpy: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class ContactColumns:
    """A contact and its columns.

    Attributes:
        frame: Frame or link of the robot.
        kind: "point", "line" or "flat".
        state: Column that is not zero in contact; "": always in contact, without `force` and `from_torques`.
        force: Column of a foot's force sensor that shows contact, in any unit.
        from_torques: Whether joint torques show contact.
        wrench: Columns of the measured force or wrench; empty: unknown.
        axes: Axes of the wrench: "world", "base" or "frame".
        sign: 1: on the robot; -1: on the ground.
        radius: Radius of a round foot about the frame [m]; its lowest point touches the ground.
    """

    frame: str
    kind: str = "point"
    state: str = ""
    force: str = ""
    from_torques: bool = False
    wrench: tuple[str, ...] = ()
    axes: str = "world"
    sign: float = 1.0
    radius: float = 0.0

    @property
    def known(self) -> bool:
        return bool(self.wrench)


@dataclass(frozen=True)
class FloatingMapping:
    """The entries of a mapping for base, passive joints and contacts.

    Attributes:
        log: The rest of the mapping, with channels for the columns of these entries.
        base: Columns of the base; None: not stated.
        passive: Column of the position of each passive joint.
        contacts: Contacts.
        free: Columns of each spherical or planar joint.
    """

    log: LogMapping = field(default_factory=LogMapping)
    base: BaseColumns | None = None
    passive: Mapping[str, str] = field(default_factory=dict)
    contacts: tuple[ContactColumns, ...] = ()
    free: Mapping[str, BaseColumns] = field(default_factory=dict)

    @classmethod
    def of(cls, mapping: Any, robot: Robot) -> FloatingMapping:
        """Read the entries of a mapping.

        Args:
            mapping: File, dict or None.
            robot: Robot with the frames of the contacts.
        """
        if isinstance(mapping, LogMapping):
            return cls(mapping)
        source = "mapping" if mapping is None or isinstance(mapping, Mapping) else str(mapping)
        if isinstance(mapping, str) and not Path(mapping).suffix:  # the name of a preset
            return cls(as_mapping(mapping))
        if not isinstance(mapping, Mapping):
            mapping = read_document(Path(mapping), LogError) if mapping else {}
        table = dict(mapping)
        own = Field({k: table.pop(k) for k in _TABLES if k in table}, source, error=LogError)
        entries = own.table(optional=_TABLES)
        base = _base(entries["base"]) if "base" in entries else None
        passive = _passive(entries["passive"], robot) if "passive" in entries else {}
        contacts = _contacts(entries["contacts"], robot) if "contacts" in entries else ()
        free = _free(entries["free"], robot) if "free" in entries else {}
        channels = {f"base.{name}": columns for name, columns in (base.columns if base else {}).items()}
        channels |= {f"passive.{name}": (column,) for name, column in passive.items()}
        for joint, own_columns in free.items():
            channels |= {f"free.{joint}.{name}": columns for name, columns in own_columns.columns.items()}
        for c in contacts:
            channels |= {f"contact.{c.frame}.state": (c.state,)} if c.state else {}
            channels |= {f"contact.{c.frame}.force": (c.force,)} if c.force else {}
            channels |= {f"contact.{c.frame}.wrench": c.wrench} if c.wrench else {}
        log = replace(as_mapping(table or None), source=source)
        return cls(replace(log, channels={**log.channels, **channels}), base, passive, contacts, free)

    def driven(self, robot: Robot) -> Robot:
        """Return `robot` with its driven joints alone, for reading their columns."""
        if robot.loops:
            names = [n for n in self.log.joints or robot.actuated if n not in self.passive]
            return replace(robot.with_joints(names), loops=(), start={}) if names else robot
        free = {robot.joint_names[k] for link in free_links(robot) for k in link.coordinates}
        names = [n for n in robot.joint_names if n not in free and n not in self.passive]
        return robot.with_joints(names) if names else robot


def is_floating(robot: Robot, mapping: Any) -> bool:
    """Whether a robot has free joints or closed loops, or its mapping states a base, passive joints or contacts.

    Args:
        robot: Robot.
        mapping: Mapping file, dict or None.
    """
    if free_links(robot) or robot.loops:
        return True
    if isinstance(mapping, str) and not Path(mapping).suffix:
        return False
    table = mapping if isinstance(mapping, Mapping) else read_document(Path(mapping), LogError) if mapping else {}
    return bool(isinstance(table, Mapping) and set(_TABLES) & set(table))


def _base(entry: Field) -> BaseColumns:
    table = entry.table(optional=(*_BASE_VECTORS, "quaternion", "twist", "imu"))
    columns = {}
    for name, width in _BASE_VECTORS.items():
        if name in table:
            columns[name] = tuple(table[name].texts())
            if len(columns[name]) != width:
                table[name].fail(f"names {len(columns[name])} columns; it needs {width}.")
    quaternion = table["quaternion"].choice(QUATERNIONS) if "quaternion" in table else ""
    if "orientation" in columns and not quaternion:
        quaternion = _order(columns["orientation"])
        if not quaternion:
            table["orientation"].fail('the order of the quaternion is not stated; add quaternion = "wxyz" or "xyzw".')
    twist = table["twist"].choice(TWISTS) if "twist" in table else ""
    if not twist and {"linear_velocity", "angular_velocity"} & set(columns):
        entry.fail('the axes of the velocities are not stated; add twist = "body", "world" or "mixed".')
    if not columns:
        entry.fail("names no column; state position and orientation, or gyroscope and accelerometer.")
    if ("gyroscope" in columns) != ("accelerometer" in columns):
        entry.fail("an IMU has a gyroscope and an accelerometer; name both, or give angular_velocity instead.")
    imu = table["imu"].table(optional=("position", "rpy")) if "imu" in table else {}
    place = {f"imu_{k}": tuple(v.vector(3)) for k, v in imu.items()}
    return BaseColumns(columns, quaternion, twist, **place)


def _free(entry: Field, robot: Robot) -> dict[str, BaseColumns]:
    """Read the columns of spherical and planar joints."""
    kinds = {link.joint: link.kind for link in free_links(robot) if link.kind in _FREE_VECTORS}
    out = {}
    for name, own in entry.entries().items():
        if name not in kinds:
            entry.fail(str(UnknownNameError("spherical or planar joint", name, tuple(kinds))))
        kind = kinds[name]
        stated = ("quaternion", "twist") if kind == "spherical" else ()
        table = own.table(
            _NEEDED[kind], optional=(*(k for k in _FREE_VECTORS[kind] if k not in _NEEDED[kind]), *stated)
        )
        columns = {}
        for signal, width in _FREE_VECTORS[kind].items():
            if signal in table:
                columns[signal] = (table[signal].text(),) if width == 1 else tuple(table[signal].texts())
                if len(columns[signal]) != width:
                    table[signal].fail(f"names {len(columns[signal])} columns; it needs {width}.")
        quaternion = table["quaternion"].choice(QUATERNIONS) if "quaternion" in table else ""
        if kind == "spherical" and not quaternion and not (quaternion := _order(columns["orientation"])):
            table["orientation"].fail('the order of the quaternion is not stated; add quaternion = "wxyz" or "xyzw".')
        twist = table["twist"].choice(("body", "world")) if "twist" in table else ""
        if "angular_velocity" in columns and not twist:
            own.fail('the axes of the velocity are not stated; add twist = "body", or "world" for the joint frame.')
        out[name] = BaseColumns(columns, quaternion, twist)
    return out


def _order(names: tuple[str, ...]) -> str:
    """Return the order of a quaternion by the endings w, x, y and z of its columns; "" for other names."""
    ends = "".join(name.rstrip("_]) ")[-1:].lower() for name in names)
    return ends if ends in QUATERNIONS else ""


def _passive(entry: Field, robot: Robot) -> dict[str, str]:
    out = {}
    for name, column in entry.entries().items():
        if name not in robot.joint_names:
            entry.fail(str(UnknownNameError("joint", name, robot.joint_names)))
        out[name] = column.text()
    return out


def _contacts(entry: Field, robot: Robot) -> tuple[ContactColumns, ...]:
    out = []
    for name, own in entry.entries().items():
        if name not in robot.frames and name not in robot.link_names:
            entry.fail(str(UnknownNameError("frame", name, (*robot.link_names, *robot.frames))))
        if robot.frame(name).host < 0:
            entry.fail(f"frame '{name}' is fixed to the world; name a frame of the robot.")
        table = own.table(optional=("kind", "state", "force", "from_torques", "wrench", "axes", "sign", "radius"))
        sources = [k for k in ("state", "force", "from_torques") if k in table]
        if len(sources) > 1:
            table[sources[1]].fail(f"the contact also states {sources[0]}; keep one of them.")
        wrench = tuple(table["wrench"].texts()) if "wrench" in table else ()
        if len(wrench) not in (0, 3, 6):
            table["wrench"].fail(f"names {len(wrench)} columns; a force has three, a wrench six.")
        sign = table["sign"].number() if "sign" in table else 1.0
        if abs(sign) != 1.0:
            table["sign"].fail("a sign must be 1 or -1.")
        out.append(
            ContactColumns(
                name,
                table["kind"].choice(tuple(CONTACT_ROWS)) if "kind" in table else "point",
                table["state"].text() if "state" in table else "",
                table["force"].text() if "force" in table else "",
                table["from_torques"].flag() if "from_torques" in table else False,
                wrench,
                table["axes"].choice(("world", "base", "frame")) if "axes" in table else "world",
                sign,
                table["radius"].number(low=0.0) if "radius" in table else 0.0,
            )
        )
    return tuple(out)
