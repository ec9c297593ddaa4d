"""Logs that fit into memory, and files that do not, behind one word: `pieces`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from steelyard.errors import LogError, ShapeError
from steelyard.robot.robot import Robot
from steelyard.signals.layout import find_layout
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping, as_mapping
from steelyard.signals.read import AnyMapping, assemble, clock_times, mapped_table, placed, read_log, row_range
from steelyard.signals.table import Table, column_names, count_rows

# `ahead`: make the next thing while this one is in use.


T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, each made by a second thread while the one before is worked on; never more than one ahead."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, source, end)
            held: Any = item
            del item  # or it would live on beside the next two
            yield held
            del held


# `log_chunks`: a log that is too long to hold, piece by piece.


def log_chunks(
    path: str | os.PathLike[str], robot: Robot, mapping: AnyMapping = None, size: int = 500_000, overlap: int = 1000
) -> Iterator[Log]:
    """The log in pieces of `size` rows (the last up to half as many more), with `overlap` more rows on either side.

    Parquet is streamed: little more than one piece is held, whatever the file's size. Each log's meta says which rows
    of the file it holds (`rows`, from 1, overlap included) and which of its samples are its own (`core`, half-open):
    these, one piece after the other, are the whole log. Every piece's clock is mended by itself: rows are not sorted
    from one piece to another, and times after a reset go on only within the piece.
    """
    known = as_mapping(mapping)
    if size < 100 or not 0 <= overlap <= size:
        raise LogError(f"Chunks need a size of at least 100 and an overlap of 0 to the size, not {size} and {overlap}.")
    try:
        yield from _chunks(Path(path), robot, known, size, overlap)
    except (LogError, ShapeError) as error:
        raise placed(error, path, known) from None


def _chunks(path: Path, robot: Robot, mapping: LogMapping, size: int, overlap: int) -> Iterator[Log]:
    names = column_names(path)
    if names is None:
        whole, layout = mapped_table(path, robot, mapping, None)
        cores = _cores(0, len(whole), size)
        tables: Iterator[Table] = (whole.rows(low, high) for low, high in _widened(cores, overlap))
    else:
        from steelyard.signals.readers.parquet import parquet_chunks

        layout = find_layout(names, (), robot, mapping)
        cores = _cores(*row_range(mapping.window_of(path), count_rows(path)), size)
        tables = parquet_chunks(path, _widened(cores, overlap), layout.names)
    origin: float | int | None = None
    for (low, _), (first, last), table in zip(_widened(cores, overlap), cores, tables, strict=True):
        t, origin = clock_times(table, layout, mapping, origin)
        yield assemble(table, layout, robot, mapping, t, origin, own=(first - low, last - low))


def _cores(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Ranges that share the rows out; a remainder of less than half a piece belongs to the last."""
    count = max(1, round((stop - start) / size))
    borders = [start + k * size for k in range(count)] + [stop]
    return list(itertools.pairwise(borders))


def _widened(cores: list[tuple[int, int]], overlap: int) -> list[tuple[int, int]]:
    start, stop = cores[0][0], cores[-1][1]
    return [(max(start, low - overlap), min(stop, high + overlap)) for low, high in cores]


# Files with more rows are gone through piece by piece. A piece of 200,000 rows of seven joints is about 40 MB, and
# what is computed from it at once a few times that.
ROWS_IN_MEMORY = 300_000
PIECE = 200_000


@dataclass(frozen=True, eq=False)
class LogFile:
    """A log too long to hold: read anew, piece by piece, on every pass."""

    path: Path
    robot: Robot
    mapping: AnyMapping = None

    def pieces(self) -> Iterator[Log]:
        # No overlap: each piece is trimmed at its ends like a log of its own, which costs a few rows in 200,000.
        yield from log_chunks(self.path, self.robot, self.mapping, size=PIECE, overlap=0)


Source = Log | LogFile


def open_log(path: Path, robot: Robot, mapping: AnyMapping = None) -> Source:
    """The log in memory, or as a file to go through where it is a long Parquet."""
    if path.suffix.lower() == ".parquet" and path.is_file() and count_rows(path) > ROWS_IN_MEMORY:
        return LogFile(path, robot, mapping)
    return read_log(path, robot, mapping)


def pieces_of(source: Source) -> Iterator[Log]:
    if isinstance(source, Log):
        yield source
    else:
        yield from source.pieces()


def first_piece(source: Source) -> Log:
    """The log, or the beginning of a long one: enough to choose settings by."""
    return next(pieces_of(source))
