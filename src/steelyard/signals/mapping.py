"""`LogMapping`: what the columns of a log mean, as its owner wrote it down."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.remote import RemoteFile, any_path
from steelyard.signals._keys import parse_mapping

# Names of columns: a list, a pattern with {} or {joint}, None to recognise them, () for none at all.
_Columns = tuple[str, ...] | str | None
Window = tuple[int, int]


@dataclass(frozen=True)
class LogMapping:
    """What the columns of a log mean. Every part is optional; what is not said is recognised or SI at the joints.

    Attributes:
        preset: the recorder, of `steelyard.signals.presets`, whose columns and units hold where nothing else is said.
        joints: names of the joints in the order of the columns; default: the file's own, or the robot's.
        time: the column with the time.
        rate: samples per second of a log without such a column.
        gap: the longest step of the clock that is not a gap, s.
        position, velocity, acceleration, torque, current: columns, one per joint, by name or by number from 1 ("2-7":
            from the second to the seventh); or a pattern such as "q{}" (the number of the joint, from 1; {0}: from 0)
            or "position/{joint}" (its name); an empty tuple if not to be used.
        temperature: columns of the joints' temperatures, °C, one per joint, or a pattern.
        wrench: six columns of a force–torque sensor: forces along x, y, z (N), then torques about them (N m).
        torque_constants: N m (or N) per A of each motor, seen from the joint side of its gear, sign included.
        torque_scale: what a torque (or what its current makes) is multiplied with, per joint, after everything else.
        gear_ratio: turns of the motor per turn of its output, sign included; rad/m for one that moves a slide.
        side: of position, velocity and torque: "motor" or "joint", what the file holds. On the motor side x is
            divided by the gear ratio and torque multiplied by it, then the coupling is applied; a torque from
            currents needs no ratio, its constants hold it.
        coupling: C with u = C q, one row per motor and one column per joint, as `motor_from_joint` of robot files and
            `Transmission.matrix`, u being the motors' angles after their gears. Then q = C⁻¹ u and τ = Cᵀ τ_u. Where
            there are more motors than joints, q is that of least squares; where there are fewer, it does not follow.
        coupling_inverse: B with q = B u, one row per joint and one column per motor, where C alone does not say it.
        motors: their names, in the order of the rows of the coupling and of the motors' columns.
        units: by signal, of the file's columns, one or one per joint.
        sign: ±1 by signal, per joint, applied last but for the offset.
        offset: added to the positions at the end, rad or m.
        gravity: in the base frame, m/s²; for the caller to apply.
        torque_used: the joints whose torque can be trusted; for the caller to apply.
        window: first and last row, from 1, of every file or by the file's stem.
        topic: of the joint states in a bag; a group of an HDF5 file.
        episodes: of a LeRobot data set, such as "0-4,7"; default: all.
        nan_rows: "drop" leaves out rows with NaN or an empty cell in a column that is used; "refuse" is the default.
        prefix: what may stand before the joints' names in the file and not in the robot, or the other way round.
        source: where it was written, for errors.
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
    source: str = "mapping"

    @classmethod
    def from_table(cls, data: Mapping[str, Any], source: str = "mapping") -> LogMapping:
        """From `data`, the keys and values of a mapping file, called `source` in errors; unknown keys are refused."""
        return cls(**parse_mapping(Field(dict(data), source, error=LogError)), source=source)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LogMapping:
        """From the TOML, JSON or YAML file at `path`."""
        return cls.from_table(read_document(Path(path), LogError), str(path))

    def columns(self, signal: str) -> _Columns:
        """What is said of the columns of `signal`, such as "torque": names, a pattern, or None for nothing."""
        return getattr(self, signal)  # type: ignore[no-any-return]

    @property
    def part(self) -> str | None:
        """Which part of a file is meant, where formats have such: a topic, a group, episodes."""
        return self.topic if self.topic is not None else self.episodes

    def on_motor(self, signal: str) -> bool:
        """Whether the file's columns of `signal` are on the motor side; not unless gears or a coupling are stated."""
        stated = "motor" if self.gear_ratio or self.coupling else "joint"
        return self.side.get({"acceleration": "velocity", "current": "torque"}.get(signal, signal), stated) == "motor"

    def coupling_matrix(self, joints: int) -> Array | None:
        """The coupling as a matrix for so many `joints`, or None where none is stated."""
        if not self.coupling:
            return None
        if len(self.coupling[0]) != joints:
            raise LogError(
                f"{self.source}: coupling has {len(self.coupling[0])} columns, but there are {joints} joints."
            )
        return np.array(self.coupling)

    def joint_from_motor(self) -> Array:
        """B with q = B u: as stated, or by least squares; an error where the motors do not tell of the joints."""
        if self.coupling_inverse:
            return np.array(self.coupling_inverse)
        matrix = np.array(self.coupling)
        motors, joints = matrix.shape
        if motors < joints:
            raise LogError(
                f"{self.source}: coupling: {motors} motors do not tell where {joints} joints are; state "
                'coupling_inverse, or read the joints\' own sensors (side = {position = "joint", velocity = "joint"}).'
            )
        inverse: Array = np.linalg.inv(matrix) if motors == joints else np.linalg.pinv(matrix)
        return inverse

    def motor_names(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Of whom the columns on the motor side are: the motors, called as their `joints` unless they are named."""
        if self.motors or not self.coupling or len(self.coupling) == len(joints):
            return self.motors or joints
        return tuple(f"motor{k + 1}" for k in range(len(self.coupling)))

    def window_of(self, path: str | os.PathLike[str] | RemoteFile) -> Window | None:
        """First and last row, from 1, of the file at `path`; None: all of it."""
        if isinstance(self.window, Mapping):
            return self.window.get(any_path(path).stem)
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
    """A mapping from whatever a caller may hold: nothing, a path, the name of a preset, a table of keys, or a mapping.

    Args:
        mapping: any of these; a file is looked for before a preset.
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


def mapping_table(mapping: str) -> dict[str, Any]:
    """The keys of the mapping that `mapping` names: a file, a preset, or "" for none."""
    if not mapping:
        return {}
    stated = as_mapping(mapping)
    return {"preset": stated.preset} if stated.source == "preset" else dict(read_document(Path(mapping), LogError))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
