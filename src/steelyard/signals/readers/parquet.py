"""Read a Parquet file: all of it, a range of rows, or in chunks, without ever holding more than is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import LogError, UnknownNameError
from steelyard.signals.readers.csv import numpy_column
from steelyard.signals.table import Table

BATCH = 65536


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, start: int | None = None, stop: int | None = None
) -> Table:
    with _opened(path) as file:
        first, last, _ = slice(start, stop).indices(file.metadata.num_rows)
        pieces = [batch for _, batch in _batches(file, path, columns, first, max(first, last))]
        names = _names(file, path, columns)
        return _table(path, names, pieces, first)


def parquet_names(path: Path) -> tuple[str, ...]:
    with _opened(path) as file:
        return tuple(str(name) for name in file.schema_arrow.names)


def count_parquet_rows(path: Path) -> int:
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def parquet_chunks(path: Path, ranges: Sequence[tuple[int, int]], columns: Sequence[str]) -> Iterator[Table]:
    """Ranges of rows (half-open, each beginning and ending later than the one before) in one pass over the file."""
    with _opened(path) as file:
        stream = _batches(file, path, columns, ranges[0][0], ranges[-1][1])
        held: list[pa.RecordBatch] = []
        held_from = held_to = ranges[0][0]
        for low, high in ranges:
            while held_to < high:
                position, batch = next(stream)
                held.append(batch)
                held_to = position + len(batch)
            while held and held_from + len(held[0]) <= low:
                held_from += len(held.pop(0))
            yield _table(path, columns, _cut(held, low - held_from, high - held_from), low)


def _opened(path: Path) -> Any:
    try:
        # Unbuffered ahead of time: a file with one huge group of rows is then read page by page.
        return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> LogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LogError(f"{path}: is not a readable Parquet file, or is cut short ({reason}); write or copy it again.")


def _names(file: Any, path: Path, columns: Sequence[str] | None) -> list[str]:
    known = list(file.schema_arrow.names)
    for name in columns or ():
        if name not in known:
            raise LogError(f"{path}: {UnknownNameError('column', name, known)}")
    return known if columns is None else list(columns)


def _batches(
    file: Any, path: Path, columns: Sequence[str] | None, start: int, stop: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches that cover rows start to stop, with the row each begins at; groups of rows outside are not touched."""
    names = _names(file, path, columns)
    groups: list[int] = []
    position, skipped = 0, 0
    for group in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        if position + count > start and position < stop:
            if not groups:
                skipped = position
            groups.append(group)
        position += count
    if not groups or start >= stop:
        return
    row = skipped
    try:
        for batch in file.iter_batches(batch_size=BATCH, row_groups=groups, columns=names, use_threads=False):
            low, high = max(start - row, 0), min(stop - row, len(batch))
            if low < high:
                yield row + low, batch.slice(low, high - low)
            row += len(batch)
            if row >= stop:
                return
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from None


def _cut(batches: Sequence[pa.RecordBatch], low: int, high: int) -> list[pa.RecordBatch]:
    pieces, row = [], 0
    for batch in batches:
        first, last = max(low - row, 0), min(high - row, len(batch))
        if first < last:
            pieces.append(batch.slice(first, last - first))
        row += len(batch)
    return pieces


def _table(path: Path, names: Sequence[str], pieces: Sequence[pa.RecordBatch], start: int) -> Table:
    columns = {}
    for name in names:
        if pieces:
            columns[name] = numpy_column(pa.chunked_array([piece.column(name) for piece in pieces]))
        else:
            columns[name] = np.empty(0)
    return Table(str(path), columns, first_row=start + 1)
