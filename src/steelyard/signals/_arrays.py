"""Selects the columns of a log among the named arrays of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, shortened
from steelyard.signals.log import Finding
from steelyard.signals.recognise import recognise_time
from steelyard.signals.table import MOST_COLUMNS, ColumnValues, TableBlock, numbered

ROWS = 1 << 16  # rows of a block
_KINDS = "biufM"  # NumPy kinds of arrays that can be signals


@dataclass(frozen=True)
class StoredArray:
    """An array in a file.

    Attributes:
        name: Name.
        shape: Shape.
        kind: NumPy kind of its numbers.
        data: Array-like object that reads when it is sliced.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    data: Any


class ArrayColumns:
    """The columns of a file with arrays: arrays of the same length as the time, along either axis.

    MATLAB and others write (samples, joints) or (joints, samples). Without a time array, the longest axis is that of
    the samples. Arrays of other lengths are omitted and listed in a finding.

    Args:
        path: Path of the file, for messages.
        arrays: Arrays of the file.
    """

    def __init__(self, path: Path, arrays: Sequence[StoredArray]) -> None:
        self._path = path
        fitting = [a for a in arrays if a.kind in _KINDS and 1 <= len(a.shape) <= 2 and max(a.shape) > 1]
        time = recognise_time([a.name for a in fitting])
        clock = next((a for a in fitting if a.name == time), None)
        self.row_count = max((max(a.shape) for a in ([clock] if clock else fitting)), default=0)
        if self.row_count < 2:
            names = shortened(", ".join(a.name for a in arrays) or "none", 200)
            raise LogError(f"{path}: holds no array with samples; its arrays: {names}.")
        self._arrays = [a for a in fitting if self.row_count in a.shape]
        self._columns = {a.name: self._names(a) for a in self._arrays}
        self.names = tuple(name for names in self._columns.values() for name in names)
        others = [a.name for a in arrays if a not in self._arrays and not a.name.startswith("__")]
        self.findings: tuple[Finding, ...] = ()
        if others:
            names = shortened(", ".join(others), 120)
            message = f"{len(others)} arrays do not have {self.row_count} samples: {names}; left out."
            self.findings = (Finding("remark", "note", message, count=len(others)),)

    def _names(self, array: StoredArray) -> tuple[str, ...]:
        width = 1 if len(array.shape) == 1 else array.shape[1 if array.shape[0] == self.row_count else 0]
        if width > MOST_COLUMNS:
            raise LogError(
                f"{self._path}: the array '{array.name}' has {width} columns; at most {MOST_COLUMNS} are read."
            )
        return (array.name,) if width == 1 else numbered(array.name, width)

    def blocks(self, columns: Sequence[str], start: int) -> Iterator[TableBlock]:
        """Read columns in blocks.

        Args:
            columns: Names of the columns.
            start: First row, from 0.
        """
        selected = [a for a in self._arrays if not set(self._columns[a.name]).isdisjoint(columns)]
        for row in range(start, self.row_count, ROWS):
            stop = min(row + ROWS, self.row_count)
            block: dict[str, ColumnValues] = {}
            for array in selected:
                x = self._rows(array, row, stop)
                block |= {name: x[:, k] for k, name in enumerate(self._columns[array.name]) if name in columns}
            yield block

    def _rows(self, array: StoredArray, start: int, stop: int) -> ColumnValues:
        if len(array.shape) == 1:
            x = array.data[start:stop][:, None]
        else:
            x = array.data[start:stop] if array.shape[0] == self.row_count else array.data[:, start:stop].T
        if len(x) != stop - start:
            raise LogError(f"{self._path}: is cut short ('{array.name}' ends in row {start + len(x) + 1}).")
        return x  # type: ignore[no-any-return]
