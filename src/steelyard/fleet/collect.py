"""`Collector`: what the entries of a written fleet say, brought together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.fleet.patterns import Pattern, date_in_name
from steelyard.fleet.storage import FleetError, files_at, location_in, read_location
from steelyard.fleet.table import FleetBuilder, FleetLog
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.documents import parse_document
from steelyard.ground.field import shown_value
from steelyard.ground.remote import any_path
from steelyard.signals.mapping import LogMapping
from steelyard.signals.presets import PRESETS

# A mapping: path, URL, name of a preset, or its keys and values.
Stated = str | Mapping[str, Any]


class Collector:
    """Entries of a written fleet, with their logs looked up and their mappings read, each once.

    Args:
        source: where it is written.
        base: the folder that paths are relative to.
    """

    def __init__(self, source: str, base: str) -> None:
        self.builder = FleetBuilder(shown_address(source), base)
        self.base = base
        self._mappings: dict[str, LogMapping] = {}

    def fail(self, message: str) -> FleetError:
        """The error that `message` says, with its place in front."""
        return FleetError(f"{self.builder.source}: {message}")

    def mapping(self, *stated: Stated | None) -> LogMapping:
        """The first that is `stated`, the nearest to the log first: path, URL, preset, or keys and values."""
        nearest = next((one for one in stated if one not in (None, "")), None)
        if nearest is None:
            return LogMapping()
        if isinstance(nearest, Mapping):
            return LogMapping.from_table(nearest, f"{self.builder.source}: mapping")
        if not isinstance(nearest, str):
            raise self.fail(f"mapping: {shown_value(nearest)} is neither a path nor a table of keys and values.")
        if nearest not in self._mappings:
            self._mappings[nearest] = self._read_mapping(nearest)
        return self._mappings[nearest]

    def _read_mapping(self, stated: str) -> LogMapping:
        where = location_in(self.base, stated)
        if stated in PRESETS and not os.path.lexists(where):
            return LogMapping.from_table({"preset": stated}, "preset")
        if not is_url(where):
            return LogMapping.read(where)
        text = read_location(where, 1 << 20, LogError).decode("utf-8-sig", "replace")
        place = any_path(where)
        syntax = "toml" if place.suffix.lower() == ".toml" else "yaml"
        return LogMapping.from_table(parse_document(text, str(place), syntax, LogError), str(place))  # type: ignore[arg-type]

    def logs(
        self,
        robot: str,
        files: str,
        mapping: LogMapping,
        stated: Any = None,
        temperature: float | None = None,
        load: str | None = None,
    ) -> None:
        """More logs of one robot.

        Args:
            robot: whose they are.
            files: a path, a folder, a pattern or a URL.
            mapping: what their columns mean.
            stated: their date, as somebody wrote it; None: what the pattern or the names of the files say.
            temperature: °C.
            load: what the robot carried.
        """
        pattern = Pattern(location_in(self.base, files.replace("{robot}", robot)), self.builder.source)
        when = None if stated in (None, "") else self.moment(stated, robot)
        found = self._found(pattern)
        dates = [when if when is not None else pattern.date_of(url) for url in found]
        self.builder.add_logs(
            FleetLog(robot, url, mapping, moment if moment is not None else date_in_name(url), temperature, load)
            for url, moment in zip(found, dates, strict=True)
        )

    def discovered(self, model: str, files: str, mapping: LogMapping) -> None:
        """The robots of a `model` that a pattern `files`, with {robot} in it, finds, and their logs by `mapping`."""
        pattern = Pattern(location_in(self.base, files), self.builder.source)
        if "{robot}" not in files:
            raise self.fail(f"models: {model}: logs: '{files}' does not say whose they are; write {{robot}} in it.")
        for url in self._found(pattern):
            robot = pattern.robot_of(url) or ""
            self.builder.add_robot(robot, model)
            moment = pattern.date_of(url)
            self.builder.add_logs([FleetLog(robot, url, mapping, date_in_name(url) if moment is None else moment)])

    def _found(self, pattern: Pattern) -> list[str]:
        found = [url for url in files_at(pattern.wild) if pattern.fits(url)]
        if not found:
            raise self.fail(f"{shown_address(pattern.text)}: no log is called so; correct it, or leave it out.")
        return found

    def moment(self, stated: Any, robot: str) -> float:
        """Seconds since 1970 of a date, as `stated` of a log of `robot`: in UTC, if it does not say otherwise."""
        if isinstance(stated, np.datetime64):
            return float((stated - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
        try:
            if isinstance(stated, str):
                stated = datetime.fromisoformat(stated.strip())
            elif isinstance(stated, date) and not isinstance(stated, datetime):
                stated = datetime(stated.year, stated.month, stated.day)
            if not isinstance(stated, datetime):
                raise ValueError
        except ValueError:
            raise self.fail(
                f"robot '{robot}': the date {shown_value(stated)} is none; write it as 2026-03-01 or "
                "2026-03-01T06:30:00+02:00."
            ) from None
        return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
