"""Logs that fit into memory, and files that do not, behind one word: `pieces`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.robot.robot import Robot
from steelyard.signals.chunks import log_chunks
from steelyard.signals.log import Log
from steelyard.signals.read import AnyMapping, read_log
from steelyard.signals.table import count_rows

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
