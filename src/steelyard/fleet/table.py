"""`Fleet`: which robots there are, of which models, and where their logs lie."""

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
from steelyard.fleet.storage import FleetError, location_in, look_anew, read_location
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.files import plain
from steelyard.ground.remote import any_path
from steelyard.ground.untrusted import read_bytes
from steelyard.robot.formats import read_robot
from steelyard.robot.library import builtin_names
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.mapping import LogMapping

LARGEST_DESCRIPTION = 64 << 20
LONGEST_ID = 100  # of a robot or a model: files are called so


@dataclass(frozen=True)
class FleetModel:
    """A kind of robot.

    Attributes:
        name: of the model.
        description: of the robot: a path, a URL, or the name of a built-in robot. Its meshes are not looked at.
        options: those of `load_robot`: joints, locked, gravity, snap.
    """

    name: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def robot(self) -> Robot:
        """As the description says it; made when asked for."""
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
        """The SHA-256 of the description's bytes and of the options."""
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
        robot: whose it is.
        url: where it lies: a path or a URL.
        mapping: what its columns mean.
        date: when it was logged, seconds since 1970 (UTC); None: not known.
        temperature: of the robot or its surroundings, °C; None: not known.
        load: what the robot carried, in the owner's words; None: nothing is said.
    """

    robot: str
    url: str
    mapping: LogMapping = field(default_factory=LogMapping)
    date: float | None = None
    temperature: float | None = None
    load: str | None = None

    @property
    def shown(self) -> str:
        """The location for people: without what may be a key to it."""
        return shown_address(self.url)


@dataclass(frozen=True)
class Fleet:
    """Robots, their models, and their logs in the order of robot, date and location.

    Attributes:
        source: where it is written.
        models: by name.
        robots: the name of each robot's model, by the robot's.
        logs: of all robots.
    """

    source: str
    models: Mapping[str, FleetModel]
    robots: Mapping[str, str]
    logs: tuple[FleetLog, ...]

    def model_of(self, log: FleetLog) -> FleetModel:
        """The model of the robot whose `log` it is."""
        return self.models[self.robots[log.robot]]

    def logs_of(self, robot: str) -> tuple[FleetLog, ...]:
        """The logs of one `robot`, by date."""
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
    """A fleet that grows, entry by entry, each looked at on its own and against those before.

    Args:
        source: where it is written, for messages.
        base: the folder that paths are relative to.
    """

    def __init__(self, source: str, base: str) -> None:
        self.source, self.base = source, base
        self._models: dict[str, FleetModel] = {}
        self._robots: dict[str, str] = {}
        self._logs: dict[str, FleetLog] = {}

    @property
    def has_models(self) -> bool:
        """Whether there is one."""
        return bool(self._models)

    def add_model(self, name: str, description: str, options: Mapping[str, Any] | None = None) -> str:
        """Another model, or the same again.

        Args:
            name: of the model; "": that of the file.
            description: path, URL or name of a built-in robot; "": the name is that of a built-in robot.
            options: of `load_robot`.
        """
        name = name or any_path(description, FleetError).stem
        _check_id(self.source, "model", name)
        where = self._description(name, description)
        made = FleetModel(name, where, options or {})
        known = self._models.setdefault(name, made)
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
            raise FleetError(f"{self.source}: model '{name}': {where}: there is no such description; check the path.")
        return where

    def add_robot(self, robot: str, model: str) -> str:
        """A `robot`, or the same again, which is of a `model`; "": the only one there is. The model's name."""
        _check_id(self.source, "robot", robot)
        if not model:
            if len(self._models) != 1:
                raise FleetError(
                    f"{self.source}: robot '{robot}' does not say its model; write one of {', '.join(self._models)}."
                )
            (model,) = self._models
        if model not in self._models:
            raise FleetError(f"{self.source}: robot '{robot}': {UnknownNameError('model', model, self._models)}")
        known = self._robots.setdefault(robot, model)
        if known != model:
            raise FleetError(
                f"{self.source}: robot '{robot}' appears twice, as {known} and as {model}; give every robot a name of "
                "its own."
            )
        return model

    def add_logs(self, logs: Iterable[FleetLog]) -> None:
        """More `logs`, of robots that are there; one that is listed twice counts once."""
        for log in logs:
            known = self._logs.setdefault(log.url, log)
            if known.robot != log.robot:
                raise FleetError(
                    f"{self.source}: {log.shown} is listed for robot '{known.robot}' and for '{log.robot}'; keep one."
                )
            if known != log:
                raise FleetError(f"{self.source}: {log.shown} is listed twice, with other values; keep one of the two.")

    def fleet(self) -> Fleet:
        """What there is, in order."""
        if not self._logs:
            raise FleetError(f"{self.source}: names no log; add the logs of the robots.")
        found = sorted(self._logs.values(), key=lambda log: (log.robot, _moment(log), log.url))
        silent = sorted(set(self._robots) - {log.robot for log in found})
        if silent:
            raise FleetError(f"{self.source}: robot '{silent[0]}' has no logs; add them, or leave it out.")
        robots = dict(sorted(self._robots.items()))
        used = set(robots.values())
        models = {name: model for name, model in sorted(self._models.items()) if name in used}
        return Fleet(self.source, models, robots, tuple(found))


def _moment(log: FleetLog) -> float:
    return float("-inf") if log.date is None else log.date


def _check_id(source: str, kind: str, name: str) -> None:
    odd = unfit_for_a_name(name)
    if not name.strip() or name in (".", "..") or len(name) > LONGEST_ID:
        odd = f"is no name; give it one of 1 to {LONGEST_ID} characters"
    elif any(sign in name for sign in '/\\<>:"|?*'):
        odd = 'holds one of / \\ < > : " | ? *, which names of files may not'
    if odd:
        raise FleetError(f"{source}: the {kind} '{name}' {odd}.")


def read_fleet(source: str | os.PathLike[str]) -> Fleet:
    """The fleet that a table, a TOML file or a folder describes.

    Args:
        source: path or URL of a .toml file, of a table (.csv, .parquet) or of a folder; docs/guides/fleet.md says how
            each is written.
    """
    from steelyard.fleet.written import read_written

    look_anew()
    return read_written(os.fspath(source))
