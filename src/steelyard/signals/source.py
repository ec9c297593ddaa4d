"""Logs that fit into memory, and files that do not, behind one word: `pieces`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from steelyard.errors import LogError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import as_mapping
from steelyard.signals.read import AnyMapping, RowRange, log_chunks, read_log
from steelyard.signals.table import LogReader, Table, TableBlock, block_length, cut_blocks, open_reader

_T = TypeVar("_T")


def ahead(items: Iterable[_T]) -> Iterator[_T]:
    """The `items`, each made by a second thread while the one before is worked on; never more than one ahead."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, source, end)
            held: Any = item
            del item  # or it would live on beside the next two
            yield held
            del held


# Files with more rows are gone through piece by piece. A piece of 150,000 rows of seven joints is about 30 MB, and
# what is computed from it at once a few times that.
ROWS_IN_MEMORY = 300_000
PIECE_ROWS = 150_000


@dataclass(frozen=True, eq=False)
class LogFile:
    """A log too long to hold, of any format: read anew, piece by piece, on every pass.

    Args:
        path: the file.
        robot: whose log it is, as in `read_log`.
        mapping: what the columns mean, as in `read_log`.
        rows: first and last row (None: to the end), from 1; default: the mapping's window, else all.
        cut: what of a piece belongs to this log, if anything, given the time at which the file begins (s).
        opened: the reader of the file, if it is open already.
    """

    path: Path
    robot: Robot
    mapping: AnyMapping = None
    rows: RowRange | None = None
    cut: Callable[[Log, float], Log | None] | None = None
    opened: LogReader | None = None

    @cached_property
    def reader(self) -> LogReader:
        """The file, opened once for all passes: some formats must be gone through to know their columns."""
        return self.opened or open_reader(self.path, as_mapping(self.mapping).topic)

    def pieces(self) -> Iterator[Log]:
        """A pass over the log, of which little more than one piece is held."""
        # No overlap: each piece is trimmed at its ends like a log of its own, which costs a few rows in 150,000.
        start, empty = None, True
        for piece in log_chunks(self.reader, self.robot, self.mapping, size=PIECE_ROWS, overlap=0, rows=self.rows):
            start = float(piece.t[0]) if start is None else start
            part = piece if self.cut is None else self.cut(piece, start)
            del piece  # or it would live on beside the next
            if part is not None:
                empty = False
                yield part
            del part
        if empty:
            raise LogError(f"{self.path}: nothing is left of the part asked for; the log is too short for it.")

    def split(self, share: float) -> tuple[LogFile, LogFile]:
        """The log without its last rows, and these. Gone through one after the other, they are parsed once.

        Args:
            share: of the rows, from 0 to 1, that the second has.
        """
        first, last = self.rows or as_mapping(self.mapping).window_of(self.path) or (1, None)
        end = last or self.reader.counted_rows()
        border = first - 1 + round((1.0 - share) * (end - first + 1))
        opened = _Relay(self.reader, border)
        return replace(self, rows=(first, border), opened=opened), replace(self, rows=(border + 1, last), opened=opened)


class _Relay(LogReader):
    """A reader on whose pass up to a border a pass from there goes on, so that nothing is parsed twice.

    Args:
        reader: of the file.
        border: number of rows before it.
    """

    def __init__(self, reader: LogReader, border: int) -> None:
        super().__init__(reader.path, reader.topic)
        self.names, self.joints, self.row_count = reader.names, reader.joints, reader.row_count
        self._reader, self._border = reader, border
        self._coming: tuple[tuple[str, ...], Iterator[TableBlock]] | None = None

    def table(self, columns: Sequence[str], blocks: Iterable[TableBlock], start: int) -> Table:
        return self._reader.table(columns, blocks, start)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        coming = self._coming
        if start == self._border and coming is not None and coming[0] == tuple(columns):
            self._coming = None  # it can be gone through once
            return coming[1]
        return self._to_the_border(columns, start) if start < self._border else self._reader.blocks(columns, start)

    def _to_the_border(self, columns: Sequence[str], start: int) -> Iterator[TableBlock]:
        stream, left = iter(self._reader.blocks(columns, start)), self._border - start
        for block in stream:
            length = block_length(block)
            if length >= left:
                self._coming = tuple(columns), chain(cut_blocks([block], left, length), stream)
                yield from cut_blocks([block], 0, left)
                return
            left -= length
            yield block


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
    """`source` as logs that fit into memory, one after the other; a log in memory is one piece."""
    if isinstance(source, Log):
        yield source
    else:
        yield from source.pieces()
