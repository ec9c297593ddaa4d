"""`LogMapping`: what the columns of a log mean, as its owner wrote it down."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, RobotError
from steelyard.robot.document import read_document
from steelyard.robot.fields import Field
from steelyard.robot.spatial import Array
from steelyard.signals.mapping_fields import parse_mapping

SIGNALS = ("position", "velocity", "acceleration", "torque", "current")

# Names of columns: a list, a pattern with {} or {joint}, None to recognise them, () for none at all.
Columns = tuple[str, ...] | str | None
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
    position: Columns = None
    velocity: Columns = None
    acceleration: Columns = None
    torque: Columns = None
    current: Columns = None
    temperature: Columns = None
    wrench: tuple[str, ...] = ()
    torque_constants: tuple[float, ...] = ()
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
        """From the keys and values of a mapping file; unknown keys are refused."""
        try:
            return cls(**parse_mapping(Field(dict(data), source)), source=source)
        except RobotError as error:
            raise LogError(str(error)) from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LogMapping:
        """From a TOML, JSON or YAML file."""
        try:
            data = read_document(Path(path))
        except RobotError as error:
            raise LogError(str(error)) from None
        return cls.from_table(data, str(path))

    def columns(self, signal: str) -> Columns:
        return getattr(self, signal)  # type: ignore[no-any-return]

    def on_motor(self, signal: str) -> bool:
        """Whether the file's columns of a signal are on the motor side; not unless gears or a coupling are stated."""
        stated = "motor" if self.gear_ratio or self.coupling else "joint"
        return self.side.get({"acceleration": "velocity", "current": "torque"}.get(signal, signal), stated) == "motor"

    def coupling_matrix(self, joints: int) -> Array | None:
        if not self.coupling:
            return None
        if len(self.coupling) != joints:
            raise LogError(f"{self.source}: coupling has {len(self.coupling)} rows, but there are {joints} joints.")
        return np.array(self.coupling)

    def window_of(self, path: str | os.PathLike[str]) -> Window | None:
        """First and last row of a file, from 1."""
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
    """A mapping from whatever a caller may hold: nothing, a path, a table of keys, or a mapping."""
    if mapping is None:
        return LogMapping()
    if isinstance(mapping, LogMapping):
        return mapping
    return LogMapping.from_table(mapping) if isinstance(mapping, Mapping) else LogMapping.read(mapping)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
