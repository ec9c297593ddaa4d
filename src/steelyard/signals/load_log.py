"""`load_log`: reads a log that `Log.save` wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, ShapeError, UnreachableError
from steelyard.ground.archives import opened_archive
from steelyard.ground.field import Field
from steelyard.ground.remote import RemoteFile
from steelyard.ground.untrusted_files import parse_json
from steelyard.signals._convert import side_by_side
from steelyard.signals.log import CHANNEL, SIGNALS, Log, saved_kind
from steelyard.signals.table import open_reader, read_table


def with_path(error: Exception, path: str | os.PathLike[str] | RemoteFile, mapping: str = "mapping") -> LogError:
    """Prefix an error with the path of the file, unless it has a prefix.

    Args:
        error: Error.
        path: Path of the file.
        mapping: Source of the mapping, which may be the prefix as well.
    """
    text = str(error)
    plain = path if isinstance(path, RemoteFile) else Path(path)
    has_prefix = text.startswith((f"{path}: ", f"{plain}: ", f"{mapping}: "))
    kind = UnreachableError if isinstance(error, UnreachableError) else LogError
    return kind(text if has_prefix else f"{path}: {text}")


def load_log(path: str | os.PathLike[str], joints: Sequence[str] | None = None) -> Log:
    """Read a log that `Log.save` wrote, without a robot; `read_log` reads other files.

    Args:
        path: Path of the .csv or .npz file.
        joints: Names of the joints, which a .csv lacks; default: joint1, joint2, …
    """
    source = Path(path)
    kind = saved_kind(source)
    try:
        log = _saved_npz(source) if kind == ".npz" else _saved_csv(source, joints)
    except (LogError, ShapeError) as error:
        raise with_path(error, source) from None
    if joints is not None and log.joints != tuple(joints):
        raise LogError(f"{source}: its joints are {', '.join(log.joints)}, not {', '.join(joints)}.")
    return log


def _saved_csv(path: Path, joints: Sequence[str] | None) -> Log:
    table = read_table(path)
    places: dict[str, list[str]] = {}
    for name in table.names:
        match = re.fullmatch(r"(t)|(q|dq|ddq|tau)([1-9]\d*)", name)
        if match is None:
            raise LogError(f"column '{name}' is not one of t, q1…, dq1…, ddq1…, tau1….")
        signal = match[1] or match[2]
        if int(match[3] or 1) != len(places.setdefault(signal, [])) + 1:
            raise LogError(f"column '{name}' is out of order; joints count from 1 in every signal.")
        places[signal].append(name)
    for needed, column in (("t", "t"), ("q", "q1")):
        if needed not in places:
            raise LogError(f"the column '{column}' is missing.")
    t = table.numbers(places.pop("t")[0])
    names = tuple(joints) if joints is not None else tuple(f"joint{k + 1}" for k in range(len(places["q"])))
    signals: dict[str, Any] = {signal: side_by_side(table, columns) for signal, columns in places.items()}
    return Log(names, t, **signals)


def _numbers_of(path: Path, name: str, array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise LogError(f"{path}: the array '{name}' does not hold numbers.")
    return array


def _meta_of(path: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    if "meta" not in arrays:
        return {}
    meta = parse_json(str(arrays["meta"]), f"{path}: meta", LogError)
    return {name: entry.value for name, entry in Field(meta, f"{path}: meta", error=LogError).entries().items()}


def _segments_of(path: Path, arrays: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    if "segments" not in arrays:
        return ()
    segments = arrays["segments"]
    if segments.ndim != 2 or segments.shape[1] != 2 or segments.dtype.kind not in "iu":
        raise LogError(f"{path}: segments must be pairs of whole numbers.")
    return tuple((int(start), int(stop)) for start, stop in segments)


def _saved_npz(path: Path) -> Log:
    reader = open_reader(path)
    with opened_archive(path, LogError) as archive:
        arrays = archive.arrays()
    missing = [name for name in ("t", "q", "joints") if name not in arrays]
    if missing:
        raise LogError(f"the array '{missing[0]}' is missing; the file has {', '.join(arrays) or 'none'}.")
    return Log(
        reader.joints,
        _numbers_of(path, "t", arrays["t"]),
        **{name: _numbers_of(path, name, arrays[name]) for name in SIGNALS if name in arrays},
        meta=_meta_of(path, arrays),
        segments=_segments_of(path, arrays),
        channels={
            name.removeprefix(CHANNEL): _numbers_of(path, name, x)
            for name, x in arrays.items()
            if name.startswith(CHANNEL)
        },
    )
