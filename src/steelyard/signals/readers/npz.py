"""NumPy's .npz archives: a 1-D array is a column, a 2-D array q becomes the columns q1, q2, …"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from steelyard.errors import LogError, shortened
from steelyard.ground.archives import Member, opened_archive
from steelyard.signals.table import MOST_COLUMNS, READERS, LogReader, TableBlock, numbered

ROWS = 1 << 16  # rows of a block
_SIGNAL_TYPES = "biufM"  # NumPy kinds of arrays that can be signals; text is meta data


@READERS.register("npz")
class NpzReader(LogReader):
    """Reads arrays with samples along the first axis, unpacked in pieces. The array `joints` has joint names."""

    path: Path
    suffixes = (".npz",)
    description = (
        "arrays `(samples,)`, or `(samples, joints)`: `q` becomes the columns `q1`, `q2`, …; an array of text `joints` "
        "names the joints; pickles are refused"
    )
    magic = b"PK\x03\x04"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with opened_archive(path, LogError) as archive:
            members = list(archive.members.values())
            named = [member for member in members if member.name == "joints" and member.dtype.kind == "U"]
            if named and int(np.prod(named[0].shape)) <= MOST_COLUMNS:
                self.joints = tuple(str(name) for name in archive.array("joints").ravel())
        signals = [member for member in members if member.shape and member.dtype.kind in _SIGNAL_TYPES]
        self.row_count = max((member.shape[0] for member in signals), default=0)
        if self.row_count == 0:
            arrays = ", ".join(member.name for member in members if member not in named)
            raise LogError(f"{path}: holds no array with samples; its arrays: {arrays or 'none'}.")
        self._members = [member for member in signals if self._is_signal(member)]
        self.names = tuple(name for member in self._members for name in _columns(member))

    def _is_signal(self, member: Member) -> bool:
        name = shortened(member.name, 60)
        if member.shape[0] != self.row_count:
            if member.name in ("segments", "gravity", "torque_constants"):
                return False
            raise LogError(
                f"{self.path}: the array '{name}' has {member.shape[0]} samples, another one has {self.row_count}."
            )
        if len(member.shape) > 2:
            raise LogError(
                f"{self.path}: the array '{name}' has shape {member.shape}; write (samples,) or (samples, joints)."
            )
        if len(member.shape) == 2 and member.shape[1] > MOST_COLUMNS:
            raise LogError(
                f"{self.path}: the array '{name}' has {member.shape[1]} columns; at most {MOST_COLUMNS} are read."
            )
        return True

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        samples = self.row_count or 0
        with opened_archive(self.path, LogError) as archive, ExitStack() as files:
            sources: list[tuple[tuple[str, ...], np.dtype[Any], IO[bytes]]] = []
            for member in self._members:
                # An array in column order is read at several places at once, one for each of its columns.
                every = _columns(member)
                runs = [(name,) for name in every] if member.by_columns else [every]
                for k, names in enumerate(runs):
                    if set(names).isdisjoint(columns):
                        continue
                    file = files.enter_context(archive.opened(member.name))
                    file.seek(member.dtype.itemsize * (k * samples + start * len(names)), 1)
                    sources.append((names, member.dtype, file))
            for row in range(start, samples, ROWS):
                block: dict[str, Any] = {}
                for names, dtype, file in sources:
                    data = file.read(min(ROWS, samples - row) * len(names) * dtype.itemsize)
                    values = np.frombuffer(data, dtype).reshape(-1, len(names))
                    if len(values) != min(ROWS, samples - row):
                        raise LogError(f"{self.path}: is cut short ('{names[0]}' ends in row {row + len(values) + 1}).")
                    block |= {name: values[:, k] for k, name in enumerate(names) if name in columns}
                yield block


def _columns(member: Member) -> tuple[str, ...]:
    if len(member.shape) == 1:
        return (member.name,)
    return numbered(member.name, member.shape[1])
