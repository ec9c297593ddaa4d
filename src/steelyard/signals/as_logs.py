"""`as_logs`, `as_sources`: convert the argument of a caller (paths, frames, arrays, …) to logs."""

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

# One log, and one or several. Frames of other libraries are `Any`, since these libraries are optional.
LogLike = Log | LogFile | str | os.PathLike[str] | Mapping[str, Any] | Any
LogsLike = LogLike | Iterable[LogLike] | None


def as_sources(logs: LogsLike, robot: Robot, mapping: AnyMapping = None) -> tuple[Source, ...]:
    """Convert an argument to logs; long files become `LogFile`s.

    Args:
        logs: A path, a URL, a `Log`, a frame (pandas, polars, xarray, Arrow), a dict of arrays, several of these, or
            None.
        robot: Robot of the logs.
        mapping: Meaning of the columns of files and frames, as in `read_log`.
    """
    return tuple(_source(one, robot, mapping) for one in _each(logs))


def as_logs(logs: LogsLike, robot: Robot, mapping: AnyMapping = None) -> list[Log]:
    """Convert an argument to logs in memory.

    Args:
        logs: As for `as_sources`.
        robot: As for `as_sources`.
        mapping: As for `as_sources`.
    """
    return [one if isinstance(one, Log) else one.in_memory() for one in as_sources(logs, robot, mapping)]


def as_log(log: LogLike, robot: Robot, mapping: AnyMapping = None) -> Log:
    """Convert an argument to one log in memory.

    Args:
        log: One log, as for `as_sources`.
        robot: As for `as_sources`.
        mapping: As for `as_sources`.
    """
    one = as_source(log, robot, mapping)
    return one if isinstance(one, Log) else one.in_memory()


def as_source(log: LogLike, robot: Robot, mapping: AnyMapping = None) -> Source:
    """Convert an argument to one log; several are refused.

    Args:
        log: One log, as for `as_sources`.
        robot: As for `as_sources`.
        mapping: As for `as_sources`.
    """
    sources = as_sources(log, robot, mapping)
    if len(sources) != 1:
        raise LogError(f"One log is needed here, not {len(sources)}; give them one by one.")
    return sources[0]


def log_label(source: Source, otherwise: str) -> str:
    """Return the name of a log for tables.

    Args:
        source: Log.
        otherwise: Name of a log without a file.
    """
    path = source.path if isinstance(source, LogFile) else any_path(str(source.meta.get("source", "")))
    return path.stem if path.suffix else otherwise


def is_one_log(logs: Any) -> bool:
    """Whether `logs` is a single log rather than several."""
    known = (Log, LogFile, LogReader, str, os.PathLike, RemoteFile, Mapping, np.ndarray)
    frame = hasattr(logs, "__arrow_c_stream__") or type(logs).__module__.partition(".")[0] in ("xarray", "polars")
    return isinstance(logs, known) or frame


def _each(logs: LogsLike) -> list[Any]:
    if logs is None:
        return []
    return list(logs) if isinstance(logs, Iterable) and not is_one_log(logs) else [logs]


def _source(log: Any, robot: Robot, mapping: AnyMapping) -> Source:
    if isinstance(log, Log | LogFile):
        return log
    if isinstance(log, str | os.PathLike | RemoteFile):
        return open_log(any_path(log), robot, mapping)
    return read_log(log, robot, mapping)
