"""Files that hold named arrays, in which somebody may have put anything: which of them are a log's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, shortened
from steelyard.signals.log import Finding
from steelyard.signals.recognise import recognise_time
from steelyard.signals.table import MOST_COLUMNS, ColumnValues, TableBlock, numbered

ROWS = 1 << 16  # in a block
_KINDS = "biufM"  # of numbers that can be a signal


@dataclass(frozen=True)
class StoredArray:
    """An array of a file: its `name`, `shape`, the `kind` of its numbers, and the `data`, read when it is sliced."""

    name: str
    shape: tuple[int, ...]
    kind: str
    data: Any


class ArrayColumns:
    """The columns among the `arrays` of the file at `path`: those that are as long as the time, along either axis.

    MATLAB and others write (samples, joints) or (joints, samples). Where no array is called a time, the samples are the
    longest axis there is. Arrays of other lengths are left out, and a finding says which.
    """

    def __init__(self, path: Path, arrays: Sequence[StoredArray]) -> None:
        self._path = path
        fitting = [a for a in arrays if a.kind in _KINDS and 1 <= len(a.shape) <= 2 and max(a.shape) > 1]
        time = recognise_time([a.name for a in fitting])
        clock = next((a for a in fitting if a.name == time), None)
        self.row_count = max((max(a.shape) for a in ([clock] if clock else fitting)), default=0)
        if self.row_count < 2:
            there = shortened(", ".join(a.name for a in arrays) or "none", 200)
            raise LogError(f"{path}: holds no array with samples; there are {there}.")
        self._arrays = [a for a in fitting if self.row_count in a.shape]
        self._columns = {a.name: self._names(a) for a in self._arrays}
        self.names = tuple(name for names in self._columns.values() for name in names)
        left = [a.name for a in arrays if a not in self._arrays and not a.name.startswith("__")]
        self.findings: tuple[Finding, ...] = ()
        if left:
            message = f"{len(left)} arrays do not have {self.row_count} samples: {shortened(', '.join(left), 120)}."
            self.findings = (Finding("remark", "note", f"{message[:-1]}; left out.", count=len(left)),)

    def _names(self, array: StoredArray) -> tuple[str, ...]:
        width = 1 if len(array.shape) == 1 else array.shape[1 if array.shape[0] == self.row_count else 0]
        if width > MOST_COLUMNS:
            raise LogError(f"{self._path}: the array '{array.name}' has {width} columns; {MOST_COLUMNS} are the most.")
        return (array.name,) if width == 1 else numbered(array.name, width)

    def blocks(self, columns: Sequence[str], start: int) -> Iterator[TableBlock]:
        """The named `columns` from row `start`, from 0, on."""
        wanted = [a for a in self._arrays if not set(self._columns[a.name]).isdisjoint(columns)]
        for row in range(start, self.row_count, ROWS):
            stop = min(row + ROWS, self.row_count)
            block: dict[str, ColumnValues] = {}
            for array in wanted:
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
