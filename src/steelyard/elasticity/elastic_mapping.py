"""`ElasticMapping`: the table [elastic] of a mapping file, which states the second encoders of a log.

[elastic]
link = {joint1 = "qlink1", joint2 = "qlink2"}   # encoders on the link side of the gear
motor = {knee = "knee_motor"}                   # motor encoders over the gear, if `position` is the link position
deflection = {knee = "spring"}                  # sensors of the spring deflection: motor minus link
units = "rad"                                   # or "deg"; prismatic joints: "m", "mm"
sign = {joint2 = -1}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.documents import read_document
from steelyard.ground.field import Field
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping, as_mapping
from steelyard.signals.table import open_reader
from steelyard.signals.units import unit_size

ENCODERS = ("link", "motor", "deflection")
ELASTIC_CHANNEL = "elastic"
# Names of columns of link encoders: qlink1, q_link_1, link_position_1, position_link/1, joint1_link, …; the number or
# name of the joint replaces {}.
_LINK_NAMES = ("qlink{}", "linkq{}", "linkposition{}", "positionlink{}", "qlinkposition{}", "linkencoder{}", "{}link",
               "{}linkposition", "{}qlink", "qarm{}", "linkpos{}", "{}linkpos", "secondaryposition{}")  # fmt: skip


@short_repr
@dataclass(frozen=True)
class ElasticMapping:
    """The entries of a mapping for second encoders.

    Attributes:
        log: The rest of the mapping, with a channel for each second encoder.
        columns: Kind of the sensor and name of its column, by joint.
        units: Unit of the columns; "": rad or m.
        sign: ±1 by joint.
        stated: Whether the user stated the columns.
    """

    log: LogMapping = field(default_factory=LogMapping)
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    units: str = ""
    sign: Mapping[str, float] = field(default_factory=dict)
    stated: bool = False

    @classmethod
    def of(cls, mapping: Any, robot: Robot) -> ElasticMapping:
        """Read the entries of a mapping.

        Args:
            mapping: File, dict or None.
            robot: Robot with the joints.
        """
        if isinstance(mapping, LogMapping):
            return cls(mapping)
        if isinstance(mapping, str) and mapping and not Path(mapping).suffix:  # without a suffix: the name of a preset
            return cls(as_mapping(mapping))
        source = "mapping" if mapping is None or isinstance(mapping, Mapping) else str(mapping)
        if not isinstance(mapping, Mapping):
            mapping = read_document(Path(mapping), LogError) if mapping else {}
        table = dict(mapping)
        own = table.pop("elastic", None)
        log = replace(as_mapping(table or None), source=source)
        if own is None:
            return cls(log)
        return cls._stated(Field(own, f"{source}: elastic", error=LogError), log, robot)

    @classmethod
    def _stated(cls, entry: Field, log: LogMapping, robot: Robot) -> ElasticMapping:
        table = entry.table(optional=(*ENCODERS, "units", "sign"))
        columns: dict[str, tuple[str, str]] = {}
        for kind in ENCODERS:
            for name, column in (table[kind].entries() if kind in table else {}).items():
                _known(table[kind], name, robot)
                if name in columns:
                    table[kind].fail(f"joint '{name}' has two second encoders; state one of them.")
                columns[name] = (kind, column.text())
        if not columns:
            entry.fail('names no encoder; state link = {joint = "column"}.')
        sign = {}
        for name, value in (table["sign"].entries() if "sign" in table else {}).items():
            _known(table["sign"], name, robot)
            sign[name] = value.number()
            if abs(sign[name]) != 1.0:
                table["sign"].fail("a sign must be 1 or -1.")
        units = table["units"].choice(("rad", "deg", "m", "mm")) if "units" in table else ""
        return cls(_with_channels(log, columns), columns, units, sign, True)

    def for_file(self, path: Any, robot: Robot) -> ElasticMapping:
        """Add link encoders recognised by the column names of a file, unless the mapping states encoders.

        Args:
            path: Path of the log.
            robot: Robot with the joints.
        """
        if self.stated:
            return self
        if isinstance(path, str | Path):
            names: Sequence[str] = open_reader(path, self.log.part).names
        else:  # a frame or a dict of arrays
            names = [str(name) for name in (path if isinstance(path, Mapping) else getattr(path, "columns", ()))]
        columns = {joint: ("link", name) for joint, name in recognised(names, robot.joint_names).items()}
        return replace(self, log=_with_channels(self.log, columns), columns=columns)

    def size_of(self, joint: str, revolute: bool) -> float:
        """Compute the factor of a joint's column from unit and sign.

        Args:
            joint: Name of the joint.
            revolute: Whether it is revolute.
        """
        unit = self.units or ("rad" if revolute else "m")
        return float(unit_size("position", unit)) * self.sign.get(joint, 1.0)


def recognised(columns: Sequence[str], joints: Sequence[str]) -> dict[str, str]:
    """Find columns of link encoders by their names.

    Args:
        columns: Names of a file's columns.
        joints: Names of the joints.
    """
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in columns}
    out = {}
    for k, joint in enumerate(joints):
        own = (re.sub(r"[^a-z0-9]", "", joint.lower()), str(k + 1))
        names = (pattern.format(x) for x in own for pattern in _LINK_NAMES)
        if (name := next((plain[n] for n in names if n in plain), None)) is not None:
            out[joint] = name
    return out


def _with_channels(log: LogMapping, columns: Mapping[str, tuple[str, str]]) -> LogMapping:
    channels = {f"{ELASTIC_CHANNEL}.{kind}.{joint}": (name,) for joint, (kind, name) in columns.items()}
    return replace(log, channels={**log.channels, **channels})


def _known(entry: Field, name: str, robot: Robot) -> None:
    if name not in robot.joint_names:
        entry.fail(str(UnknownNameError("joint", name, robot.joint_names)))
