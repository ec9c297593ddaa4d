"""NumPy's .npz archives: 1-D arrays are columns, a 2-D array q is the columns q1, q2, …"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from steelyard.errors import LogError
from steelyard.signals.table import READERS, LogReader, TableBlock

ROWS = 1 << 16  # in a block
_SIGNAL_TYPES = "biufM"  # kinds of numbers that can be a signal; text is a remark


@dataclass(frozen=True)
class _Member:
    """An array of the archive, as its header tells."""

    name: str
    shape: tuple[int, ...]
    by_columns: bool  # Fortran's order
    dtype: np.dtype[Any]

    @property
    def columns(self) -> tuple[str, ...]:
        if len(self.shape) == 1:
            return (self.name,)
        return tuple(f"{self.name}{k + 1}" for k in range(self.shape[1]))


@READERS.register("npz")
class NpzReader(LogReader):
    """The arrays whose first axis is the samples, unpacked while they are read. `joints`, of text, names the joints."""

    suffixes = (".npz",)
    description = (
        "arrays `(samples,)`, or `(samples, joints)`: `q` becomes the columns `q1`, `q2`, …; an array of text `joints` "
        "names the joints; pickles are refused"
    )
    magic = b"PK\x03\x04"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with self._opened() as archive:
            members = [_member(archive, name) for name in archive.namelist() if name.endswith(".npy")]
            named = [member for member in members if member.name == "joints" and member.dtype.kind == "U"]
            if named:
                with archive.open("joints.npy") as file:
                    self.joints = tuple(str(name) for name in np.atleast_1d(np.lib.format.read_array(file)))
        signals = [member for member in members if member.shape and member.dtype.kind in _SIGNAL_TYPES]
        self.row_count = max((member.shape[0] for member in signals), default=0)
        if self.row_count == 0:
            there = ", ".join(member.name for member in members if member not in named)
            raise LogError(f"{path}: holds no array with samples; there are {there or 'none'}.")
        self._members = [member for member in signals if self._is_signal(member)]
        self.names = tuple(name for member in self._members for name in member.columns)

    def _is_signal(self, member: _Member) -> bool:
        if member.shape[0] != self.row_count:
            if member.name in ("segments", "gravity", "torque_constants"):
                return False
            raise LogError(
                f"{self.path}: the array '{member.name}' has {member.shape[0]} samples, another has {self.row_count}."
            )
        if len(member.shape) > 2:
            raise LogError(
                f"{self.path}: the array '{member.name}' has shape {member.shape}; write (samples,) or "
                "(samples, joints)."
            )
        return True

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError) as error:
            raise LogError(f"{self.path}: is not a readable .npz file, or is cut short ({error}).") from None

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        samples = self.row_count or 0
        with self._opened() as archive, ExitStack() as files:
            sources: list[tuple[tuple[str, ...], np.dtype[Any], IO[bytes]]] = []
            for member in self._members:
                # One that lies column by column is read at as many places at once as columns are wanted of it.
                runs = [(name,) for name in member.columns] if member.by_columns else [member.columns]
                for k, names in enumerate(runs):
                    if set(names).isdisjoint(columns):
                        continue
                    file = files.enter_context(archive.open(f"{member.name}.npy"))
                    _header(file)
                    file.seek(member.dtype.itemsize * (k * samples + start * len(names)), 1)
                    sources.append((names, member.dtype, file))
            for row in range(start, samples, ROWS):
                block: dict[str, Any] = {}
                for names, dtype, file in sources:
                    data = file.read(min(ROWS, samples - row) * len(names) * dtype.itemsize)
                    values = np.frombuffer(data, dtype).reshape(-1, len(names))
                    if len(values) != min(ROWS, samples - row):
                        raise EOFError(f"'{names[0]}' ends in row {row + len(values) + 1}")
                    block |= {name: values[:, k] for k, name in enumerate(names) if name in columns}
                yield block


def _member(archive: zipfile.ZipFile, file_name: str) -> _Member:
    with archive.open(file_name) as file:
        shape, by_columns, dtype = _header(file)
    if dtype.hasobject:
        raise ValueError(f"the array '{file_name.removesuffix('.npy')}' holds Python objects, which are never loaded")
    return _Member(file_name.removesuffix(".npy"), shape, by_columns and len(shape) == 2, dtype)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether column by column, and type; the file then stands where the numbers begin."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)
