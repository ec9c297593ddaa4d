"""`Table`: the raw columns of a log file, before anyone says what they mean."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.arrays import Array

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: numbers, text where the file has text, or time stamps (datetime64).

    `first_row` is the number of the first row in the file, from 1 (a header does not count). `joints` are the
    joints that the file itself names, in the order of its numbered columns. In a `sparse` table a row may concern
    some of the columns only, the others being NaN: messages that report a part of the robot each.
    """

    path: str
    columns: Mapping[str, Column]
    first_row: int = 1
    joints: tuple[str, ...] = ()
    sparse: bool = False
    remarks: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def column(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            raise LogError(f"{self.path}: {UnknownNameError('column', name, self.names)}") from None

    def numbers(self, name: str) -> Array:
        """A column as finite numbers; anything else is an error that names the row."""
        column = self.column(name)
        if column.dtype.kind in "biuf":
            numbers: Array = column.astype(np.float64, copy=False)
        else:
            numbers = self._parsed(name, column)
        finite = np.isfinite(numbers)
        if not finite.all():
            row = int(np.argmin(finite))
            raise LogError(
                f"{self.path}: row {self.first_row + row}, column '{name}': {_shown(column[row])} is not a finite "
                f"number; mend the file, or keep the row out with a window."
            )
        return numbers

    def _parsed(self, name: str, column: Column) -> Array:
        numbers = np.full(len(column), np.nan)
        for row, value in enumerate(column):
            if value is None:  # an empty cell
                continue
            try:
                numbers[row] = float(value)
            except (TypeError, ValueError):
                raise LogError(
                    f"{self.path}: row {self.first_row + row}, column '{name}': {_shown(value)} is not a number."
                ) from None
        return numbers

    def rows(self, start: int, stop: int) -> Table:
        """Rows start to stop (half-open, counted from 0 in this table)."""
        return replace(
            self,
            columns={name: column[start:stop] for name, column in self.columns.items()},
            first_row=self.first_row + start,
        )


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    start: int | None = None,
    stop: int | None = None,
    *,
    topic: str | None = None,
) -> Table:
    """The columns of a log file, all or those named, and its rows `start` to `stop` (half-open, from 0).

    .csv .tsv .txt, .parquet, .npz, .mcap, and rosbag2 (a folder or .db3); a file with another name is recognised by
    its first bytes. Only Parquet reads less than the file when less is asked for. `topic` chooses among several
    topics of joint states in a bag.
    """
    source = Path(path)
    kind = file_kind(source)
    if kind == "parquet":
        from steelyard.signals.readers.parquet import read_parquet

        return read_parquet(source, columns, start, stop)
    table = _read_whole(source, kind, topic)
    if columns is not None:
        table = replace(table, columns={name: table.column(name) for name in columns})
    if start is None and stop is None:
        return table
    first, last, _ = slice(start, stop).indices(len(table))
    return table.rows(first, max(first, last))


def column_names(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """The names of the columns where they can be known without reading the file (Parquet), else None."""
    source = Path(path)
    if file_kind(source) != "parquet":
        return None
    from steelyard.signals.readers.parquet import parquet_names

    return parquet_names(source)


def count_rows(path: str | os.PathLike[str], *, topic: str | None = None) -> int:
    """How many rows a log file has; from the footer alone for Parquet."""
    source = Path(path)
    if file_kind(source) == "parquet":
        from steelyard.signals.readers.parquet import count_parquet_rows

        return count_parquet_rows(source)
    return len(read_table(source, topic=topic))


SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".mcap": "mcap",
    ".db3": "rosbag2",
}
MAGIC = ((b"PAR1", "parquet"), (b"PK\x03\x04", "npz"), (b"\x89MCAP0", "mcap"), (b"SQLite format 3", "rosbag2"))


def file_kind(path: Path) -> str:
    """Which reader a file needs: by its name, else by its first bytes."""
    if path.is_dir():
        return "rosbag2"
    if not path.exists():
        raise LogError(f"{path}: there is no such file; check the path.")
    if (kind := SUFFIXES.get(path.suffix.lower())) is not None:
        return kind
    with path.open("rb") as file:
        start = file.read(16)
    for magic, kind in MAGIC:
        if start.startswith(magic):
            return kind
    raise LogError(f"{path}: is not a log that can be read; known are {', '.join(SUFFIXES)} and rosbag2 folders.")


def _read_whole(path: Path, kind: str, topic: str | None) -> Table:
    if kind == "csv":
        from steelyard.signals.readers.csv import read_csv

        return read_csv(path)
    if kind == "npz":
        from steelyard.signals.readers.npz import read_npz

        return read_npz(path)
    if kind == "mcap":
        from steelyard.signals.readers.bags import read_mcap

        return read_mcap(path, topic)
    from steelyard.signals.readers.bags import read_rosbag2

    return read_rosbag2(path, topic)


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return "an empty cell or NaN"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
