"""`LogMapping`: the meaning of a log's columns, as stated by the user."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.remote import RemoteFile, any_path
from steelyard.ground.short_repr import short_repr
from steelyard.signals._keys import parse_mapping

# Names of columns: a list, a pattern with {} or {joint}, None to recognise them, () to use none.
_Columns = tuple[str, ...] | str | None
Window = tuple[int, int]


@short_repr
@dataclass(frozen=True)
class LogMapping:
    """The meaning of a log's columns. Every part is optional; the rest is recognised, or SI on the joint side.

    Attributes:
        preset: Recorder, of `steelyard.signals.presets`, whose columns and units are the default.
        joints: Names of the joints in the order of the columns; default: those of the file, or of the robot.
        time: Column of the time.
        rate: Sampling rate of a log without such a column [Hz].
        gap: Longest step of the clock that is not a gap [s].
        position, velocity, acceleration, torque, current: Columns, one per joint, by name or by number from 1 ("2-7":
            the second to the seventh); or a pattern such as "q{}" (number of the joint from 1; {0}: from 0) or
            "position/{joint}" (its name); an empty tuple to use none.
        temperature: Columns of the joints' temperatures [°C], one per joint, or a pattern.
        wrench: Six columns of a force–torque sensor: forces along x, y, z [N], torques about them [N m].
        channels: Columns of further channels of the log, by name.
        torque_constants: Torque constant of each motor on the joint side of its gear, with sign [N m/A or N/A].
        torque_scale: Factor for the torque of each joint (also from currents), applied last.
        gear_ratio: Turns of the motor per turn of its output, with sign; rad/m for a prismatic joint.
        side: "motor" or "joint", for position, velocity and torque in the file. On the motor side, positions are
            divided by the gear ratio and torques multiplied by it, then the coupling is applied. Torque constants
            include the gear ratio.
        coupling: C with u = C q, one row per motor and one column per joint, as `motor_from_joint` of robot files and
            `Transmission.matrix`; u are the motor angles after the gears. Then q = C⁻¹ u and τ = Cᵀ τ_u. With more
            motors than joints, q is the least-squares solution; with fewer, it is not determined.
        coupling_inverse: B with q = B u, one row per joint and one column per motor, if C does not determine it.
        motors: Names of the motors in the order of the rows of the coupling and of the motors' columns.
        units: Units of the file's columns by signal, one for all joints or one each.
        sign: ±1 per joint, by signal; applied last except for the offset.
        offset: Added to the positions after all other conversions [rad or m].
        gravity: Gravity in the base frame [m/s^2]; applied by the caller.
        torque_used: Joints with a reliable torque; applied by the caller.
        window: First and last row, from 1, of every file or by the file's stem.
        topic: Topic of the joint states in a bag; group of an HDF5 file.
        episodes: Episodes of a LeRobot data set, such as "0-4,7"; default: all.
        nan_rows: "drop" omits rows with NaN or an empty cell in a used column; default: "refuse".
        prefix: Prefixes of joint names that only the file or only the robot has.
        files: Mappings of single files, which replace this one; by the end of the path ("logs/b.csv") or the stem.
        source: Source of the mapping, for errors.
    """

    preset: str | None = None
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
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    torque_constants: tuple[float, ...] = ()
    torque_scale: tuple[float, ...] = ()
    gear_ratio: tuple[float, ...] = ()
    side: Mapping[str, str] = field(default_factory=dict)
    coupling: tuple[tuple[float, ...], ...] = ()
    coupling_inverse: tuple[tuple[float, ...], ...] = ()
    motors: tuple[str, ...] = ()
    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sign: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    offset: tuple[float, ...] = ()
    gravity: tuple[float, float, float] | None = None
    torque_used: tuple[str, ...] | None = None
    window: Window | Mapping[str, Window] | None = None
    topic: str | None = None
    episodes: str | None = None
    nan_rows: str | None = None
    prefix: tuple[str, ...] = ()
    files: Mapping[str, LogMapping] = field(default_factory=dict)
    source: str = "mapping"

    @classmethod
    def from_table(cls, data: Mapping[str, Any], source: str = "mapping") -> LogMapping:
        """Create a mapping from the content of a mapping file; unknown keys are refused.

        Args:
            data: Keys and values.
            source: Name for errors.
        """
        keys = parse_mapping(Field(dict(data), source, error=LogError))
        files = {name: cls(**own, source=f"{source}: files.{name}") for name, own in keys.pop("files", {}).items()}
        return cls(**keys, files=files, source=source)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LogMapping:
        """Read a mapping from the TOML, JSON or YAML file at `path`."""
        return cls.from_table(read_document(Path(path), LogError), str(path))

    def columns(self, signal: str) -> _Columns:
        """Return the stated columns of `signal`, such as "torque": names, a pattern, or None."""
        return getattr(self, signal)  # type: ignore[no-any-return]

    def states(self, channel: str) -> bool:
        """Whether the mapping names the columns of a `channel`, so that gaps in it are errors."""
        return channel in self.channels or bool(getattr(self, channel, ()))

    @property
    def part(self) -> str | None:
        """The part of a file to read: a topic, group or episodes; None for formats without parts."""
        return self.topic if self.topic is not None else self.episodes

    def on_motor(self, signal: str) -> bool:
        """Whether the file's columns of `signal` are on the motor side; the default with gears or a coupling."""
        default = "motor" if self.gear_ratio or self.coupling else "joint"
        return self.side.get({"acceleration": "velocity", "current": "torque"}.get(signal, signal), default) == "motor"

    def coupling_matrix(self, joints: int) -> Array | None:
        """Return the coupling as a matrix for a number of `joints`, or None without one."""
        if not self.coupling:
            return None
        if len(self.coupling[0]) != joints:
            raise LogError(
                f"{self.source}: coupling has {len(self.coupling[0])} columns, but there are {joints} joints."
            )
        return np.array(self.coupling)

    def joint_from_motor(self) -> Array:
        """Return B with q = B u: as stated, or by least squares.

        Raises:
            LogError: If the motors do not determine the joints.
        """
        if self.coupling_inverse:
            return np.array(self.coupling_inverse)
        matrix = np.array(self.coupling)
        motors, joints = matrix.shape
        if motors < joints:
            raise LogError(
                f"{self.source}: coupling: {motors} motors do not determine {joints} joint positions; state "
                'coupling_inverse, or use the joints\' sensors (side = {position = "joint", velocity = "joint"}).'
            )
        inverse: Array = np.linalg.inv(matrix) if motors == joints else np.linalg.pinv(matrix)
        return inverse

    def motor_names(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the motors; by default those of the `joints`."""
        if self.motors or not self.coupling or len(self.coupling) == len(joints):
            return self.motors or joints
        return tuple(f"motor{k + 1}" for k in range(len(self.coupling)))

    def window_of(self, path: str | os.PathLike[str] | RemoteFile) -> Window | None:
        """Return the first and last row, from 1, to read of the file at `path`; None: all."""
        if isinstance(self.window, Mapping):
            return self.window.get(any_path(path).stem)
        return self.window

    def of_file(self, path: str | os.PathLike[str] | RemoteFile) -> LogMapping:
        """Return the mapping of the file at `path`: its own one, or else this one."""
        name = file_key(self.files, path)
        return self if name is None else self.files[name]

    def plain(self) -> dict[str, Any]:
        """Return the stated entries as plain data for the meta data of a log."""
        stated: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name not in ("source", "files") and value not in (None, (), {}):
                stated[entry.name] = _plain(value)
        return stated


def as_mapping(mapping: LogMapping | Mapping[str, Any] | str | os.PathLike[str] | None) -> LogMapping:
    """Convert an argument to a mapping: None, a path, the name of a preset, a dict, or a `mapping`.

    A file has priority over a preset of the same name.
    """
    if mapping is None:
        return LogMapping()
    if isinstance(mapping, LogMapping):
        return mapping
    if isinstance(mapping, Mapping):
        return LogMapping.from_table(mapping)
    if isinstance(mapping, str) and not os.path.splitext(mapping)[1] and not os.path.lexists(mapping):
        return LogMapping.from_table({"preset": mapping}, "preset")
    return LogMapping.read(mapping)


def mapping_table(mapping: str, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return the keys of a mapping.

    Args:
        mapping: File or preset; "" for none.
        path: Log whose own table in the file is returned, if it has one; None for the whole document.
    """
    if not mapping:
        return {}
    stated = as_mapping(mapping)
    if stated.source == "preset":
        return {"preset": stated.preset}
    table = dict(read_document(Path(mapping), LogError))
    if path is None:
        return table
    name = file_key(stated.files, path)
    return {k: v for k, v in table.items() if k != "files"} if name is None else dict(table["files"][name])


def file_key(names: Collection[str], path: str | os.PathLike[str] | RemoteFile) -> str | None:
    """Return the name that stands for a file: the longest end of its path, or its stem; None if there is none.

    Args:
        names: Names, as in the key `files` of a mapping.
        path: Path of the file.
    """
    if not names:
        return None
    parts = str(path).replace("\\", "/").split("/")
    ends = [name for name in names if parts[-len(own := name.split("/")) :] == own]
    stem = any_path(path).stem
    return max(ends, key=len, default=next((name for name in names if name == stem), None))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
