"""Logs in memory and long files with one interface: `pieces`. Results do not depend on where a log is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from steelyard.errors import LogError, SteelyardError
from steelyard.ground.remote import AnyPath
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log
from steelyard.signals.mapping import as_mapping
from steelyard.signals.read import AnyMapping, RowRange, is_last, log_chunks, read_log
from steelyard.signals.table import LogReader, Table, TableBlock, block_length, cut_blocks, open_reader

_T = TypeVar("_T")


def ahead(items: Iterable[_T]) -> Iterator[_T]:
    """Compute the next of `items` in a second thread while the caller uses the current one."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(next, source, end)
        while (item := future.result()) is not end:
            future = pool.submit(next, source, end)
            current: Any = item
            del item  # keeps at most two items in memory
            yield current
            del current


# Rows of a piece: 150,000 rows of seven joints are about 30 MB, and intermediate results a few times that. Longer files
# are read again in every pass.
PIECE_ROWS = 150_000
ROWS_IN_MEMORY = 225_000


@short_repr
@dataclass(frozen=True, eq=False)
class LogFile:
    """A long log in a file of any format, which is read in pieces in every pass.

    Args:
        path: Path of the file.
        robot: Robot, as in `read_log`.
        mapping: Meaning of the columns, as in `read_log`.
        rows: First and last row (None: to the end), from 1; default: the mapping's window, else all.
        cut: Function of a piece and the start time of the file [s]; returns the part of the piece in this log, or None.
        opened: Reader of the file, if it is open.
        after: Previous part of a log that was split; its clock continues.
    """

    path: AnyPath
    robot: Robot
    mapping: AnyMapping = None
    rows: RowRange | None = None
    cut: Callable[[Log, float], Log | None] | None = None
    opened: LogReader | None = None
    after: LogFile | None = None

    @cached_property
    def reader(self) -> LogReader:
        """Reader of the file for all passes; some formats must be read to the end to find their columns."""
        return self.opened or open_reader(self.path, as_mapping(self.mapping).of_file(self.path).part)

    @cached_property
    def start_time(self) -> float | int:
        """The file's clock at t = 0, in the file's unit."""
        return self.after.start_time if self.after is not None else next(self.pieces()).meta["start_time"]

    @property
    def is_long(self) -> bool:
        """Whether the log is too long for memory; estimated from the size of the file if necessary."""
        return self.row_count(self.reader.estimated_rows()) > ROWS_IN_MEMORY

    def row_count(self, in_file: int | None = None) -> int:
        """Return the number of rows of the log, from the number of rows `in_file`; None: count them."""
        first, last = self._window
        return (last or (self.reader.counted_rows() if in_file is None else in_file)) - first + 1

    @property
    def _window(self) -> RowRange:
        return self.rows or as_mapping(self.mapping).of_file(self.path).window_of(self.path) or (1, None)

    @property
    def _origin(self) -> float | int | None:
        return None if self.after is None else self.after.start_time

    def in_memory(self) -> Log:
        """Read the whole log into memory."""
        log = read_log(self.reader, self.robot, self.mapping, self.rows, self._origin)
        vars(self).setdefault("start_time", log.meta["start_time"])
        return log

    def pieces(self) -> Iterator[Log]:
        """Yield the log in pieces, with little more than one in memory."""
        # Without overlap: each piece is trimmed like a separate log, which costs a few of 150,000 rows.
        start, empty = None, True
        for piece in log_chunks(
            self.reader, self.robot, self.mapping, size=PIECE_ROWS, overlap=0, rows=self.rows, start_time=self._origin
        ):
            vars(self).setdefault("start_time", piece.meta["start_time"])
            start = float(piece.t[0]) if start is None else start
            part = piece if self.cut is None else self.cut(piece, start)
            del piece  # frees its memory before the next one
            if part is not None:
                empty = False
                yield part
            del part
        if empty:
            raise LogError(f"{self.path}: the selected part is empty; the log is too short for it.")

    def split(self, share: float) -> tuple[LogFile, LogFile]:
        """Split the log in two. Reading both in order parses the file only once.

        Args:
            share: Share of the rows in the second part, from 0 to 1.
        """
        count, (first, last) = self.row_count(), self._window
        border = first - 1 + border_of(count, share)
        opened = _Relay(self.reader, border)
        before = replace(self, rows=(first, border), opened=opened)
        return before, replace(self, rows=(border + 1, last), opened=opened, after=before)


def border_of(count: int, share: float) -> int:
    """Return the number of rows before a hold-out at the end; neither side may be empty.

    Args:
        count: Number of rows.
        share: Share of the hold-out, from 0 to 1.
    """
    border = round((1.0 - share) * count)
    if not 0 < border < count:
        raise SteelyardError("One side of the hold-out is empty; the log is too short for it.")
    return border


class _Relay(LogReader):
    """A reader for two passes, before and after a border row. The second continues the first: no row is read twice."""

    def __init__(self, reader: LogReader, border: int) -> None:
        super().__init__(reader.path, reader.topic)
        self.names, self.joints, self.row_count = reader.names, reader.joints, reader.row_count
        self._reader, self._border = reader, border
        self._continuation: tuple[tuple[str, ...], Iterator[TableBlock]] | None = None

    def table(self, columns: Sequence[str], blocks: Iterable[TableBlock], start: int) -> Table:
        return self._reader.table(columns, blocks, start)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        rest = self._continuation
        if start == self._border and rest is not None and rest[0] == tuple(columns):
            self._continuation = None  # an iterator can be used once
            return rest[1]
        return self._to_the_border(columns, start) if start < self._border else self._reader.blocks(columns, start)

    def _to_the_border(self, columns: Sequence[str], start: int) -> Iterator[TableBlock]:
        stream, left = iter(self._reader.blocks(columns, start)), self._border - start
        for block in stream:
            length = block_length(block)
            if length >= left:
                self._continuation = tuple(columns), chain(cut_blocks([block], left, length), stream)
                yield from cut_blocks([block], 0, left)
                return
            left -= length
            yield block


Source = Log | LogFile


def open_log(path: AnyPath, robot: Robot, mapping: AnyMapping = None) -> Source:
    """Open a log: in memory, or as a `LogFile` if it is long.

    Args:
        path: File of any format, local or remote.
        robot: Robot, as in `read_log`.
        mapping: Meaning of the columns, as in `read_log`.
    """
    file = LogFile(path, robot, mapping)
    return file if file.is_long else file.in_memory()


def pieces_of(source: Source) -> Iterator[Log]:
    """Yield `source` in pieces of about 150,000 rows."""
    if not isinstance(source, Log):
        yield from source.pieces()
    elif is_one_piece(source):
        yield source
    else:
        start, last = 0, False
        while not last:
            last = is_last(len(source) - start, PIECE_ROWS)
            stop = len(source) if last else start + PIECE_ROWS
            if (part := part_of(source, [(start, stop)])) is not None:
                yield replace(part, meta={**part.meta, "last": last})
            start = stop


def is_one_piece(log: Log) -> bool:
    """Whether `log` is a single piece."""
    return is_last(len(log), PIECE_ROWS)


def read_beginnings(logs: Sequence[Source]) -> tuple[tuple[Source, ...], tuple[Log, ...], dict[int, Iterator[Log]]]:
    """Read the first piece of `logs`; return logs (in memory if they are one piece), first pieces, and rests."""
    rests = {k: pieces_of(source) for k, source in enumerate(logs)}
    beginnings = tuple(next(pieces) for pieces in rests.values())
    sources = tuple(b if b.meta.get("last") else one for one, b in zip(logs, beginnings, strict=True))
    return sources, beginnings, rests
