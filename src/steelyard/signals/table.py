"""`Table`: the raw columns of a log file, before they are assigned to signals; `LogReader`: a format of log files."""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LONGEST_NAME, LogError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.decompress import DECOMPRESSORS, is_compressed
from steelyard.ground.registry import Registry
from steelyard.ground.remote import AnyPath, RemoteFile, any_path
from steelyard.ground.untrusted_files import refuse_kernel_file, regular_file
from steelyard.signals.log import Finding

# Complete logs of humanoids have about a thousand columns.
MOST_COLUMNS = 4096
# Largest temporary copy of a remote log in a format that is not read by pieces [bytes].
LARGEST_COPY = 2 << 30
NAMELESS = "column "  # name of a column without a name, followed by its number from 1

ColumnValues = NDArray[Any]
TableBlock = Mapping[str, ColumnValues]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: numbers, text, or time stamps (datetime64).

    The rows are stored in blocks; columns are joined on demand, to save memory.

    Args:
        path, names: Path of the file, for messages, and names of the columns.
        blocks: Consecutive blocks of rows, with arrays of equal length by name.
        first_row, joints: First row in the file, from 1, without the header; joint names of its numbered columns.
        sparse: A row may have values in some columns only, NaN in the others: messages about a part of the robot.
        findings: Messages from reading the file.
        row_indices: Index from 0 of each row among those read, if some were omitted; None: all rows.
        part: Name of the parts whose clocks begin anew on purpose: "episode"; "" if the clock must go on.
    """

    path: str
    names: tuple[str, ...]
    blocks: tuple[TableBlock, ...]
    first_row: int = 1
    joints: tuple[str, ...] = ()
    sparse: bool = False
    findings: tuple[Finding, ...] = ()
    row_indices: NDArray[np.intp] | None = None
    part: str = ""

    @property
    def row_numbers(self) -> range | NDArray[np.intp]:
        """Number of every row in the file, from 1."""
        if self.row_indices is None:
            return range(self.first_row, self.first_row + len(self))
        return self.first_row + self.row_indices

    def without(self, omitted: NDArray[np.bool_], finding: Finding) -> Table:
        """Omit rows and add a finding.

        Args:
            omitted, finding: Whether to omit each row, and the finding that reports it.
        """
        rows = np.flatnonzero(~omitted)
        blocks = ({name: self.column(name)[rows] for name in self.names},)
        indices = rows if self.row_indices is None else self.row_indices[rows]
        return replace(self, blocks=blocks, sparse=False, findings=(*self.findings, finding), row_indices=indices)

    def __len__(self) -> int:
        return sum(block_length(block) for block in self.blocks)

    def column(self, name: str) -> ColumnValues:
        """Return the column `name` as it is in the file."""
        if name not in self.names:
            raise LogError(f"{self.path}: {UnknownNameError('column', name, self.names)}")
        parts = [block[name] for block in self.blocks]
        kinds = {part.dtype.kind for part in parts}
        if kinds == {"M", "f"} and all(np.isnan(part).all() for part in parts if part.dtype.kind == "f"):
            # Blocks without any time stamp are all NaN.
            parts = [np.full(len(part), "NaT", "M8[ns]") if part.dtype.kind == "f" else part for part in parts]
        elif "M" in kinds and len(kinds) > 1:
            parts = [part.astype(object) for part in parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)

    def numbers(self, name: str) -> Array:
        """Return the column `name` as finite numbers; any other value is an error with the number of the row."""
        column = self.column(name)
        if column.dtype.kind in "biuf":
            numbers: Array = column.astype(np.float64, copy=False)
        else:
            numbers = self._parsed(name, column)
        finite = np.isfinite(numbers)
        if not finite.all():
            row = int(np.argmin(finite))
            raise LogError(
                f"{self.path}: row {self.row_numbers[row]}, column '{name}': {_shown(column[row])} is not a finite "
                f"number; fix the file, exclude the row with a window, or drop such rows with nan_rows."
            )
        return numbers

    def _parsed(self, name: str, column: ColumnValues) -> Array:
        numbers = np.full(len(column), np.nan)
        for row, value in enumerate(column):
            if value is None:  # an empty cell
                continue
            try:
                numbers[row] = float(value)
            except (TypeError, ValueError):
                raise LogError(
                    f"{self.path}: row {self.row_numbers[row]}, column '{name}': {_shown(value)} is not a number."
                ) from None
        return numbers

    def rows(self, start: int, stop: int) -> Table:
        """Select a range of rows.

        Args:
            start, stop: First row, and row after the last one, from 0.
        """
        return replace(self, blocks=tuple(cut_blocks(self.blocks, start, stop)), first_row=self.first_row + start)


class LogReader(ABC):
    """An open log file.

    A format is a subclass under `signals/readers` with `@READERS.register("name")`; other packages register theirs as
    entry points of the group `steelyard.readers`. `__init__` reads only the head of the file and sets `names`; each
    call of `blocks` reads the rows again. Errors are a `LogError` of one sentence with the path and the row.

    Args:
        path: File or folder; a remote file for formats `by_pieces`.
        topic: Part of the file, for formats with topics, episodes or groups; others ignore it.
    """

    suffixes: ClassVar[tuple[str, ...]]  # suffixes of its files, in lower case, with the dot
    description: ClassVar[str]  # one line for the table of formats
    magic: ClassVar[bytes] = b""  # first bytes of its files, to recognise files with another suffix
    folders: ClassVar[bool] = False  # a folder may be such a log
    packed: ClassVar[bool] = False  # files may be compressed: .csv.gz
    by_pieces: ClassVar[bool] = False  # reads a `RemoteFile` directly; other formats get a copy
    extra: ClassVar[str] = ""  # extra of pyproject.toml that it needs
    part: ClassVar[str] = ""  # as in `Table`

    names: tuple[str, ...]  # names of the columns
    joints: tuple[str, ...] = ()  # as in `Table`
    sparse: bool = False
    findings: tuple[Finding, ...] = ()
    row_count: int | None = None  # number of rows, if the file states it

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        self.path, self.topic = path, topic

    @classmethod
    def claims(cls, path: Path) -> bool:
        """Whether the folder at `path` looks like such a log."""
        return cls.folders

    @abstractmethod
    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        """Read columns in blocks of some thousand rows, to the end of the file.

        Args:
            columns, start: Names of the columns, and first row, from 0.
        """

    def estimated_rows(self) -> int:
        """Estimate the number of rows without reading them; decides whether the log is read into memory."""
        return self.row_count if self.row_count is not None else self.path.stat().st_size // (8 * len(self.names))

    def counted_rows(self) -> int:
        """Count the rows; in text files the lines, which is fast and only differs by empty lines."""
        if self.row_count is not None:
            return self.row_count
        return sum(block_length(block) for block in self.blocks(self.names[:1]))

    def table(self, columns: Sequence[str], blocks: Iterable[TableBlock], start: int) -> Table:
        """Make a table of blocks of this file.

        Args:
            columns, blocks: Names of the columns, and blocks of rows.
            start: First row of the blocks in the file, from 0.
        """
        read = tuple(columns), tuple(blocks), start + 1, self.joints, self.sparse, self.findings
        return Table(str(self.path), *read, part=self.part)


READERS: Registry[type[LogReader]] = Registry("log format", ("steelyard.signals.readers",), group="steelyard.readers")


def open_reader(path: str | os.PathLike[str] | RemoteFile, topic: str | None = None) -> LogReader:
    """Open a log file; its name or else its first bytes select the reader.

    Args:
        path: File of any format in `READERS`, a folder, or a URL.
        topic: Part of the file, such as a topic of joint states in a bag.
    """
    source = any_path(path)
    if isinstance(source, RemoteFile):
        return _open_remote(source, topic)
    if named_files(source):
        from steelyard.signals.readers.folder import FolderReader

        return FolderReader(source, topic)
    folder = os.path.isdir(source)
    if folder:
        fitting = [kind for kind in READERS.values() if kind.folders and kind.claims(source)]
    else:
        if regular_file(source, LogError) == 0:
            refuse_kernel_file(source, LogError)
        fitting = _by_name(source) or _by_start(source)
    if not fitting:
        raise LogError(
            f"{source}: is a folder, but none of {known_formats(folders=True)}; name the log file."
            if folder
            else f"{source}: is not a readable log; known formats are {known_formats()}."
        )
    reader = fitting[0](source, topic)
    _check_names(source, reader.names)
    return reader


def _open_remote(source: RemoteFile, topic: str | None) -> LogReader:
    """Open a remote file by pieces, or as a copy that is deleted with the reader."""
    regular_file(source, LogError)
    fitting = _by_name(source) or _by_start(source)
    if not fitting:
        raise LogError(f"{source}: is not a readable log; known formats are {known_formats()}.")
    if fitting[0].by_pieces:
        reader = fitting[0](source, topic)
    else:
        folder = tempfile.TemporaryDirectory(prefix="steelyard-")
        copy = Path(folder.name) / source.name
        try:
            source.copy_to(copy, LARGEST_COPY)
            reader = fitting[0](copy, topic)
        except LogError as why:
            folder.cleanup()
            raise type(why)(str(why).replace(str(copy), str(source))) from None
        except OSError as why:
            folder.cleanup()
            raise LogError(f"{source}: a copy cannot be made in {tempfile.gettempdir()} ({why.strerror}).") from None
        weakref.finalize(reader, folder.cleanup)
    _check_names(source, reader.names)
    return reader


def has_reader(path: AnyPath) -> bool:
    """Whether the file name of `path` is that of a log."""
    return bool(_by_name(path))


def _by_name(path: AnyPath) -> list[type[LogReader]]:
    packed = is_compressed(path)
    suffix = Path(path.stem if packed else path.name).suffix.lower()
    return [kind for kind in READERS.values() if suffix in kind.suffixes and (kind.packed or not packed)]


def _by_start(path: AnyPath) -> list[type[LogReader]]:
    with path.open("rb") as file:
        start = file.read(64)
    return [kind for kind in READERS.values() if kind.magic and start.startswith(kind.magic)]


def named_files(path: Path) -> dict[str, Path]:
    """Parse `path` as a list NAME=FILE,NAME=FILE; empty if it is a path."""
    text = str(path)
    if "=" not in text or os.path.lexists(path):
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (name.strip() and file.strip()) for name, _, file in pairs):
        return {}
    return {name.strip(): Path(file.strip()) for name, _, file in pairs}


def numbered(name: str, width: int) -> tuple[str, ...]:
    """Return numbered column names: q1, q2, …; of q_1: q_1_1, q_1_2, …

    Args:
        name, width: Common name, and number of columns.
    """
    gap = "_" if name[-1:].isdigit() else ""
    return tuple(f"{name}{gap}{k + 1}" for k in range(width))


def _check_names(path: AnyPath, names: Sequence[str]) -> None:
    if not names:
        raise LogError(f"{path}: has no column; a log needs columns of the time, positions and torques.")
    if len(names) > MOST_COLUMNS:
        raise LogError(f"{path}: has {len(names)} columns, more than the {MOST_COLUMNS} that are read; remove some.")
    known: set[str] = set()
    for name in names:
        if name in known:
            raise LogError(f"{path}: column '{name}' appears twice; give every column a different name.")
        if len(name) > LONGEST_NAME:
            raise LogError(f"{path}: the name of a column has {len(name)} characters; at most {LONGEST_NAME} are read.")
        known.add(name)


def known_formats(folders: bool = False) -> str:
    """List all suffixes of logs, or with `folders` the formats that are folders, as text."""
    if folders:
        return ", ".join(name for name, kind in READERS.items() if kind.folders)
    suffixes = [suffix for kind in READERS.values() for suffix in kind.suffixes]
    packed = [suffix for kind in READERS.values() if kind.packed for suffix in kind.suffixes]
    return f"{', '.join(suffixes)}; of these {', '.join(packed)} also compressed ({', '.join(DECOMPRESSORS)})"


def read_table(
    path: str | os.PathLike[str] | RemoteFile,
    columns: Sequence[str] | None = None,
    start: int | None = None,
    stop: int | None = None,
    *,
    topic: str | None = None,
) -> Table:
    """Read columns and rows of a log file.

    Args:
        path: File of any format in `READERS`.
        columns: Names of the columns; None for all.
        start, stop: First row, and row after the last one, from 0; negative: from the end.
        topic: Part of the file, such as a topic of joint states in a bag.
    """
    reader = open_reader(path, topic)
    names = reader.names if columns is None else tuple(columns)
    for name in names:
        if name not in reader.names:
            raise LogError(f"{path}: {UnknownNameError('column', name, reader.names)}")
    if (start or 0) < 0 or (stop or 0) < 0:
        start, stop, _ = slice(start, stop).indices(count_rows(path, topic=topic))
    first = start or 0
    return reader.table(names, first_rows(reader.blocks(names, first), None if stop is None else stop - first), first)


def count_rows(path: str | os.PathLike[str] | RemoteFile, *, topic: str | None = None) -> int:
    """Count the rows of a log file, from its meta data if possible.

    Args:
        path, topic: As for `open_reader`.
    """
    return LogReader.counted_rows(open_reader(path, topic))  # the base method counts rows, not lines of text


def first_rows(blocks: Iterable[TableBlock], count: int | None) -> Iterator[TableBlock]:
    """Limit blocks to a number of rows, without reading further blocks.

    Args:
        blocks, count: Blocks of rows, and number of rows; None: all.
    """
    if count is not None and count <= 0:
        return
    for block in blocks:
        if count is not None and block_length(block) >= count:
            yield {name: column[:count] for name, column in block.items()}
            return
        yield block
        count = None if count is None else count - block_length(block)


def later_rows(blocks: Iterable[TableBlock], start: int) -> Iterator[TableBlock]:
    """Skip rows, for readers that cannot begin inside a file.

    Args:
        blocks, start: Blocks of rows, and number of rows to skip.
    """
    for block in blocks:
        if start < block_length(block):
            yield {name: column[start:] for name, column in block.items()} if start else block
        start = max(0, start - block_length(block))


def cut_blocks(blocks: Iterable[TableBlock], start: int, stop: int) -> Iterator[TableBlock]:
    """Select a range of rows from blocks.

    Args:
        blocks, start, stop: Blocks of rows, first row, and row after the last one, from 0.
    """
    return first_rows(later_rows(blocks, start), stop - start)


def block_length(block: TableBlock) -> int:
    """Return the number of rows of `block`."""
    return len(next(iter(block.values()), ()))


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return "an empty cell or NaN"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
