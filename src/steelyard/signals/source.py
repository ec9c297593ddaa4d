"""Logs that fit into memory, and files that do not, behind one word: `pieces`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import as_mapping
from steelyard.signals.read import AnyMapping, log_chunks, read_log
from steelyard.signals.table import LogReader, open_reader

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


# Files with more rows are gone through piece by piece. A piece of 200,000 rows of seven joints is about 40 MB, and
# what is computed from it at once a few times that.
ROWS_IN_MEMORY = 300_000
PIECE = 200_000


@dataclass(frozen=True, eq=False)
class LogFile:
    """A log too long to hold, of any format: read anew, piece by piece, on every pass.

    Args:
        path: the file.
        robot: whose log it is, as in `read_log`.
        mapping: what the columns mean, as in `read_log`.
    """

    path: Path
    robot: Robot
    mapping: AnyMapping = None

    @cached_property
    def reader(self) -> LogReader:
        """The file, opened once for all passes: some formats must be gone through to know their columns."""
        return open_reader(self.path, as_mapping(self.mapping).topic)

    def pieces(self) -> Iterator[Log]:
        # No overlap: each piece is trimmed at its ends like a log of its own, which costs a few rows in 200,000.
        yield from log_chunks(self.reader, self.robot, self.mapping, size=PIECE, overlap=0)


Source = Log | LogFile


def open_log(path: Path, robot: Robot, mapping: AnyMapping = None) -> Source:
    """The log in memory, or as a file to go through where it is long (by the size of the file where it does not say).

    Args:
        path: a file of any format.
        robot: whose log it is, as in `read_log`.
        mapping: what the columns mean, as in `read_log`.
    """
    long = LogFile(path, robot, mapping)
    return long if long.reader.estimated_rows() > ROWS_IN_MEMORY else read_log(long.reader, robot, mapping)


def pieces_of(source: Source) -> Iterator[Log]:
    if isinstance(source, Log):
        yield source
    else:
        yield from source.pieces()


def _first_piece(source: Source) -> Log:
    """The log, or the beginning of a long one: enough to choose settings by."""
    return next(pieces_of(source))
