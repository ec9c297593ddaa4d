"""`as_logs`, `as_sources`: the logs that a caller means, whatever they are held in. Every function that takes logs asks
here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.remote import RemoteFile, any_path
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.read import AnyMapping, read_log
from steelyard.signals.source import LogFile, Source, open_log
from steelyard.signals.table import LogReader

# One log, and one or several; frames of other libraries have no type here, since those need not be installed.
LogLike = Log | LogFile | str | os.PathLike[str] | Mapping[str, Any] | Any
LogsLike = LogLike | Iterable[LogLike] | None


def as_sources(given: LogsLike, robot: Robot, mapping: AnyMapping = None) -> tuple[Source, ...]:
    """The logs, long files as files to go through.

    Args:
        given: a path, a URL, a `Log`, a frame (pandas, polars, xarray, Arrow), a dict of arrays, several of them, or
            None.
        robot: whose logs they are.
        mapping: what the columns of files and frames mean, as in `read_log`; a `Log` knows already.
    """
    return tuple(_source(one, robot, mapping) for one in _each(given))


def as_logs(given: LogsLike, robot: Robot, mapping: AnyMapping = None) -> list[Log]:
    """The logs as `as_sources` takes them (`given`, of `robot`, by `mapping`), all in memory."""
    return [one if isinstance(one, Log) else one.in_memory() for one in as_sources(given, robot, mapping)]


def as_log(given: LogLike, robot: Robot, mapping: AnyMapping = None) -> Log:
    """The one log that is `given`, of `robot`, by `mapping`, in memory."""
    one = as_source(given, robot, mapping)
    return one if isinstance(one, Log) else one.in_memory()


def as_source(given: LogLike, robot: Robot, mapping: AnyMapping = None) -> Source:
    """The one log that is `given`, of `robot`, by `mapping`; several are refused."""
    found = as_sources(given, robot, mapping)
    if len(found) != 1:
        raise LogError(f"One log is needed here, not {len(found)}; give them one by one.")
    return found[0]


def log_label(source: Source, otherwise: str) -> str:
    """What tables call the log `source`: the name of its file, or `otherwise` where it comes from none."""
    path = source.path if isinstance(source, LogFile) else any_path(str(source.meta.get("source", "")))
    return path.stem if path.suffix else otherwise


def is_one_log(given: Any) -> bool:
    """Whether `given` is a single log rather than several."""
    known = (Log, LogFile, LogReader, str, os.PathLike, RemoteFile, Mapping, np.ndarray)
    held = hasattr(given, "__arrow_c_stream__") or type(given).__module__.partition(".")[0] in ("xarray", "polars")
    return isinstance(given, known) or held


def _each(given: LogsLike) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, Iterable) and not is_one_log(given) else [given]


def _source(given: Any, robot: Robot, mapping: AnyMapping) -> Source:
    if isinstance(given, Log | LogFile):
        return given
    if isinstance(given, str | os.PathLike | RemoteFile):
        return open_log(any_path(given), robot, mapping)
    return read_log(given, robot, mapping)
