"""Logs that fit into memory, and files that do not, behind one word: `pieces`.

A log has the same pieces wherever it is held: what is computed of it does not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from steelyard.errors import LogError, SteelyardError
from steelyard.ground.remote import AnyPath
from steelyard.robot.robot import Robot
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log
from steelyard.signals.mapping import as_mapping
from steelyard.signals.read import AnyMapping, RowRange, is_last, log_chunks, read_log
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


# Logs are gone through in pieces of so many rows; a piece of 150,000 rows of seven joints is about 30 MB, and what is
# computed from it at once a few times that. Files that are more than one piece are read anew on every pass.
PIECE_ROWS = 150_000
ROWS_IN_MEMORY = 225_000


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
        after: the part of the same log before this one, if it was split: its clock goes on.
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
        """The file, opened once for all passes: some formats must be gone through to know their columns."""
        return self.opened or open_reader(self.path, as_mapping(self.mapping).part)

    @cached_property
    def start_time(self) -> float | int:
        """What the file's clock shows at t = 0, in the file's unit."""
        return self.after.start_time if self.after is not None else next(self.pieces()).meta["start_time"]

    @property
    def is_long(self) -> bool:
        """Whether it is more than is read at once, by the size of the file where that does not say."""
        return self.row_count(self.reader.estimated_rows()) > ROWS_IN_MEMORY

    def row_count(self, in_file: int | None = None) -> int:
        """How many rows there are, of so many `in_file`; None: counted."""
        first, last = self._window
        return (last or (self.reader.counted_rows() if in_file is None else in_file)) - first + 1

    @property
    def _window(self) -> RowRange:
        return self.rows or as_mapping(self.mapping).window_of(self.path) or (1, None)

    @property
    def _origin(self) -> float | int | None:
        return None if self.after is None else self.after.start_time

    def in_memory(self) -> Log:
        """All of it at once, whatever its length."""
        log = read_log(self.reader, self.robot, self.mapping, self.rows, self._origin)
        vars(self).setdefault("start_time", log.meta["start_time"])
        return log

    def pieces(self) -> Iterator[Log]:
        """A pass over the log, of which little more than one piece is held."""
        # No overlap: each piece is trimmed at its ends like a log of its own, which costs a few rows in 150,000.
        start, empty = None, True
        for piece in log_chunks(
            self.reader, self.robot, self.mapping, size=PIECE_ROWS, overlap=0, rows=self.rows, start_time=self._origin
        ):
            vars(self).setdefault("start_time", piece.meta["start_time"])
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
        count, (first, last) = self.row_count(), self._window
        border = first - 1 + border_of(count, share)
        opened = _Relay(self.reader, border)
        before = replace(self, rows=(first, border), opened=opened)
        return before, replace(self, rows=(border + 1, last), opened=opened, after=before)


def border_of(count: int, share: float) -> int:
    """How many of `count` rows come before the last `share` of them; both sides have some."""
    border = round((1.0 - share) * count)
    if not 0 < border < count:
        raise SteelyardError("The hold-out leaves one side empty; the log is too short for it.")
    return border


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


def open_log(path: AnyPath, robot: Robot, mapping: AnyMapping = None) -> Source:
    """The log in memory, or as a file to go through where it is long.

    Args:
        path: a file of any format, here or elsewhere.
        robot: whose log it is, as in `read_log`.
        mapping: what the columns mean, as in `read_log`.
    """
    file = LogFile(path, robot, mapping)
    return file if file.is_long else file.in_memory()


def pieces_of(source: Source) -> Iterator[Log]:
    """`source` as logs of some 150,000 rows, one after the other, be it in memory or not; a short one is one piece."""
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
    """Whether `log` is worked on as a whole."""
    return is_last(len(log), PIECE_ROWS)


def read_beginnings(logs: Sequence[Source]) -> tuple[tuple[Source, ...], tuple[Log, ...], dict[int, Iterator[Log]]]:
    """Of `logs`: themselves, first pieces, what is still to come of them; a file of one piece is a log in memory."""
    coming = {k: pieces_of(source) for k, source in enumerate(logs)}
    beginnings = tuple(next(pieces) for pieces in coming.values())
    sources = tuple(b if b.meta.get("last") else one for one, b in zip(logs, beginnings, strict=True))
    return sources, beginnings, coming
