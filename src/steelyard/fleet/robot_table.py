"""`Fleet`: robots, their types, and the locations of their logs."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from steelyard.errors import RobotError, UnknownNameError, unfit_for_a_name
from steelyard.fleet.storage import FleetError, forget_listings, location_in, read_location
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.files import plain
from steelyard.ground.remote import any_path
from steelyard.ground.short_repr import short_repr
from steelyard.ground.untrusted_files import read_bytes
from steelyard.robot.formats import read_robot
from steelyard.robot.library import builtin_names
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping

LARGEST_DESCRIPTION = 64 << 20
LONGEST_ID = 100  # characters in the name of a robot or a type, which is used in file names


@dataclass(frozen=True)
class RobotType:
    """A robot type ("model" in the files of a fleet).

    Attributes:
        name: Name of the type.
        description: Path or URL of the robot description, or name of a built-in robot; meshes are not used.
        options: Options of `load_robot`: joints, locked, gravity, snap.
    """

    name: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def robot(self) -> Robot:
        """The robot as described; loaded on first use."""
        if not is_url(self.description):
            return load_robot(self.description, **self.options)
        place = any_path(self.description, RobotError)
        with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
            copy = Path(folder) / place.name
            copy.write_bytes(read_location(self.description, LARGEST_DESCRIPTION, RobotError))
            try:
                robot = read_robot(copy)
            except RobotError as why:
                raise RobotError(str(why).replace(str(copy), str(place))) from None
        return load_robot(robot, **self.options)

    @cached_property
    def identity(self) -> str:
        """SHA-256 of the description's bytes and of the options."""
        local = not is_url(self.description)
        if local and not os.path.isfile(self.description):
            content = self.description.encode()
        elif local:
            content = read_bytes(Path(self.description), LARGEST_DESCRIPTION)
        else:
            content = read_location(self.description, LARGEST_DESCRIPTION, RobotError)
        stated = repr(sorted((name, plain(value)) for name, value in self.options.items()))
        return hashlib.sha256(content + b"\0" + stated.encode()).hexdigest()


@dataclass(frozen=True)
class FleetLog:
    """One log of one robot.

    Attributes:
        robot: Name of the robot.
        url: Path or URL of the log.
        mapping: Meaning of its columns.
        date: Date of the log, seconds since 1970 (UTC); None if unknown.
        temperature: Temperature of the robot or its surroundings [°C]; None if unknown.
        load: Name of the robot's load; None if not stated.
    """

    robot: str
    url: str
    mapping: LogMapping = field(default_factory=LogMapping)
    date: float | None = None
    temperature: float | None = None
    load: str | None = None

    @property
    def shown(self) -> str:
        """The location without parts that may be a secret."""
        return shown_address(self.url)


@short_repr
@dataclass(frozen=True)
class Fleet:
    """Robots, their types, and their logs in the order of robot, date and location.

    Attributes:
        source: Location of the fleet's file or folder.
        robot_types: Robot types by name.
        robots: Name of each robot's type, by the robot's name.
        logs: Logs of all robots.
    """

    source: str
    robot_types: Mapping[str, RobotType]
    robots: Mapping[str, str]
    logs: tuple[FleetLog, ...]

    def type_of(self, log: FleetLog) -> RobotType:
        """Return the type of the robot of a `log`."""
        return self.robot_types[self.robots[log.robot]]

    def logs_of(self, robot: str) -> tuple[FleetLog, ...]:
        """Return the logs of one `robot`, by date."""
        if robot not in self.robots:
            raise UnknownNameError("robot", robot, self.robots)
        return self._by_robot[robot]

    @cached_property
    def _by_robot(self) -> dict[str, tuple[FleetLog, ...]]:
        found: dict[str, list[FleetLog]] = {robot: [] for robot in self.robots}
        for log in self.logs:
            found[log.robot].append(log)
        return {robot: tuple(logs) for robot, logs in found.items()}


class FleetBuilder:
    """Builds a fleet entry by entry and checks each against the earlier ones.

    Args:
        source: Location of the fleet's file or folder, for messages.
        base: Folder that paths are relative to.
    """

    def __init__(self, source: str, base: str) -> None:
        self.source, self.base = source, base
        self._types: dict[str, RobotType] = {}
        self._robots: dict[str, str] = {}
        self._logs: dict[str, FleetLog] = {}

    @property
    def has_robot_types(self) -> bool:
        """Whether at least one robot type was added."""
        return bool(self._types)

    def add_robot_type(self, name: str, description: str, options: Mapping[str, Any] | None = None) -> str:
        """Add a robot type, unless the same one is there already; return its name.

        Args:
            name: Name of the type; "": the stem of the description's file.
            description: Path, URL or name of a built-in robot; "": `name` is that of a built-in robot.
            options: Options of `load_robot`.
        """
        name = name or any_path(description, FleetError).stem
        _check_id(self.source, "model", name)
        where = self._description(name, description)
        made = RobotType(name, where, options or {})
        known = self._types.setdefault(name, made)
        if known != made:
            raise FleetError(
                f"{self.source}: model '{name}' has two descriptions, {known.description} and {where}; give one of "
                "them another name."
            )
        return name

    def _description(self, name: str, description: str) -> str:
        stated = description or name
        if not is_url(stated) and stated in builtin_names():
            return stated
        if not description:
            raise FleetError(
                f"{self.source}: model '{name}' has no description; add the path of its URDF, MJCF or DH file, or name "
                f"a built-in robot: {', '.join(builtin_names())}."
            )
        where = location_in(self.base, description)
        if not is_url(where) and not os.path.isfile(where):
            raise FleetError(
                f"{self.source}: model '{name}': {where}: there is no such file; check the path of the description."
            )
        return where

    def add_robot(self, robot: str, model: str) -> str:
        """Add a robot, unless the same one is there already; return the name of its type.

        Args:
            robot: Name of the robot.
            model: Name of its type; "": the only one.
        """
        _check_id(self.source, "robot", robot)
        if not model:
            if len(self._types) != 1:
                raise FleetError(
                    f"{self.source}: robot '{robot}' states no model; write one of {', '.join(self._types)}."
                )
            (model,) = self._types
        if model not in self._types:
            raise FleetError(f"{self.source}: robot '{robot}': {UnknownNameError('model', model, self._types)}")
        known = self._robots.setdefault(robot, model)
        if known != model:
            raise FleetError(
                f"{self.source}: robot '{robot}' appears twice, as {known} and as {model}; give every robot its "
                "own name."
            )
        return model

    def add_logs(self, logs: Iterable[FleetLog]) -> None:
        """Add `logs` of robots that were added before; a log that is listed twice counts once."""
        for log in logs:
            known = self._logs.setdefault(log.url, log)
            if known.robot != log.robot:
                raise FleetError(
                    f"{self.source}: {log.shown} is listed for robot '{known.robot}' and for '{log.robot}'; keep one."
                )
            if known != log:
                raise FleetError(f"{self.source}: {log.shown} is listed twice, with other values; keep one of the two.")

    def fleet(self) -> Fleet:
        """Return the fleet, sorted."""
        if not self._logs:
            raise FleetError(f"{self.source}: names no log; add the logs of the robots.")
        found = sorted(self._logs.values(), key=lambda log: (log.robot, _moment(log), log.url))
        without_logs = sorted(set(self._robots) - {log.robot for log in found})
        if without_logs:
            raise FleetError(f"{self.source}: robot '{without_logs[0]}' has no logs; add them, or leave it out.")
        robots = dict(sorted(self._robots.items()))
        used = set(robots.values())
        types = {name: robot_type for name, robot_type in sorted(self._types.items()) if name in used}
        return Fleet(self.source, types, robots, tuple(found))


def _moment(log: FleetLog) -> float:
    return float("-inf") if log.date is None else log.date


def _check_id(source: str, kind: str, name: str) -> None:
    problem = unfit_for_a_name(name)
    if not name.strip() or name in (".", "..") or len(name) > LONGEST_ID:
        problem = f"is not a valid name; use 1 to {LONGEST_ID} characters"
    elif any(sign in name for sign in '/\\<>:"|?*'):
        problem = 'contains one of / \\ < > : " | ? *, which file names must not contain; rename it'
    if problem:
        raise FleetError(f"{source}: the {kind} '{name}' {problem}.")


def read_fleet(source: str | os.PathLike[str]) -> Fleet:
    """Read a fleet from a table, a TOML file or a folder (docs/guides/fleet.md).

    Args:
        source: Path or URL of a .toml file, of a table (.csv, .parquet) or of a folder.
    """
    from steelyard.fleet.fleet_files import read_fleet_files

    forget_listings()
    return read_fleet_files(os.fspath(source))
