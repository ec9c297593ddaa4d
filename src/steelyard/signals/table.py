"""`Table`: the raw columns of a log file, before anyone says what they mean; `LogReader`: a format of such files."""

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
from steelyard.ground.untrusted import refuse_kernel_file, regular_file
from steelyard.signals.log import Finding

# A log of a humanoid with everything that its controller knows has some thousand.
MOST_COLUMNS = 4096
# Bytes of the copy that is made for a while of a log elsewhere, of a format that is not read by pieces.
LARGEST_COPY = 2 << 30
NAMELESS = "column "  # and its number, from 1: how a column without a name is called

ColumnValues = NDArray[Any]
TableBlock = Mapping[str, ColumnValues]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: numbers, text where the file has text, or time stamps (datetime64).

    The rows lie in blocks, as they were read; a column is joined when it is asked for, so that a table is never held
    twice. In a `sparse` table a row may concern some of the columns only, the others being NaN: messages that report a
    part of the robot each.

    Args:
        path: the file, for messages.
        names: of the columns.
        blocks: rows after rows, each a mapping from all the names to arrays of one length.
        first_row: the number of the first row in the file, from 1 (a header does not count).
        joints: those that the file itself names, in the order of its numbered columns.
        sparse: whether rows may concern some of the columns only.
        findings: what reading brought to light.
        kept: which of the rows read these are, from 0, where some were left out; None: all.
    """

    path: str
    names: tuple[str, ...]
    blocks: tuple[TableBlock, ...]
    first_row: int = 1
    joints: tuple[str, ...] = ()
    sparse: bool = False
    findings: tuple[Finding, ...] = ()
    kept: NDArray[np.intp] | None = None

    @property
    def row_numbers(self) -> range | NDArray[np.intp]:
        """Of every row, in the file, from 1."""
        return range(self.first_row, self.first_row + len(self)) if self.kept is None else self.first_row + self.kept

    def without(self, left_out: NDArray[np.bool_], finding: Finding) -> Table:
        """The table without the rows that are `left_out`, of which a `finding` tells."""
        kept = np.flatnonzero(~left_out)
        blocks = ({name: self.column(name)[kept] for name in self.names},)
        places = kept if self.kept is None else self.kept[kept]
        return replace(self, blocks=blocks, sparse=False, findings=(*self.findings, finding), kept=places)

    def __len__(self) -> int:
        return sum(block_length(block) for block in self.blocks)

    def column(self, name: str) -> ColumnValues:
        """All rows of the column `name`, as the file has them."""
        if name not in self.names:
            raise LogError(f"{self.path}: {UnknownNameError('column', name, self.names)}")
        parts = [block[name] for block in self.blocks]
        kinds = {part.dtype.kind for part in parts}
        if kinds == {"M", "f"} and all(np.isnan(part).all() for part in parts if part.dtype.kind == "f"):
            # Time stamps, and blocks in which there is none.
            parts = [np.full(len(part), "NaT", "M8[ns]") if part.dtype.kind == "f" else part for part in parts]
        elif "M" in kinds and len(kinds) > 1:
            parts = [part.astype(object) for part in parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0)

    def numbers(self, name: str) -> Array:
        """The column `name` as finite numbers; anything else is an error that names the row."""
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
                f"number; mend the file, keep the row out with a window, or leave such rows out with nan_rows."
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
        """Rows `start` to `stop` (half-open, counted from 0 in this table)."""
        return replace(self, blocks=tuple(cut_blocks(self.blocks, start, stop)), first_row=self.first_row + start)


class LogReader(ABC):
    """A log file, opened: it knows its columns, and hands out its rows in blocks.

    A format is a subclass in a file of its own under `signals/readers`, entered with `@READERS.register("name")`; other
    packages announce theirs as entry points of the group `steelyard.readers`. The subclass says on itself which files
    are its own. Its `__init__` looks at the head of the file only and sets `names`; the rows are read by `blocks`, anew
    on each call. What cannot be read is a `LogError` of one sentence that begins with the path and names the row.

    Args:
        path: the file, or the folder; of formats `by_pieces` a file elsewhere, too.
        topic: which part of it, for formats that have such: a topic, episodes, a group; others ignore it.
    """

    suffixes: ClassVar[tuple[str, ...]]  # of its files, in lower case, with the dot
    description: ClassVar[str]  # how it is read, in one line, for the table of formats
    magic: ClassVar[bytes] = b""  # the first bytes of such a file, by which one with another suffix is known
    folders: ClassVar[bool] = False  # whether a folder may be such a log
    packed: ClassVar[bool] = False  # whether its files may be compressed: .csv.gz
    by_pieces: ClassVar[bool] = False  # whether it reads a `RemoteFile` as it lies; of other formats it gets a copy
    extra: ClassVar[str] = ""  # what must be installed beside Steelyard: an extra of pyproject.toml

    names: tuple[str, ...]  # of the columns
    joints: tuple[str, ...] = ()  # as in `Table`
    sparse: bool = False
    findings: tuple[Finding, ...] = ()
    row_count: int | None = None  # how many rows, where the file tells without being read through

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        self.path, self.topic = path, topic

    @classmethod
    def claims(cls, path: Path) -> bool:
        """Whether the folder at `path` looks like such a log; asked of formats that may be folders."""
        return cls.folders

    @abstractmethod
    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        """The named `columns` in blocks of some thousand rows, from row `start` (from 0) to the end of the file."""

    def estimated_rows(self) -> int:
        """About how many rows there are, without reading them: it decides whether the log is read at once."""
        return self.row_count if self.row_count is not None else self.path.stat().st_size // (8 * len(self.names))

    def counted_rows(self) -> int:
        """How many rows there are; of a text, how many lines, quickly counted and the same but for empty ones."""
        if self.row_count is not None:
            return self.row_count
        return sum(block_length(block) for block in self.blocks(self.names[:1]))

    def table(self, columns: Sequence[str], blocks: Iterable[TableBlock], start: int) -> Table:
        """`blocks` of the `columns` of this file, which begin at row `start` (from 0), as a table."""
        return Table(str(self.path), tuple(columns), tuple(blocks), start + 1, self.joints, self.sparse, self.findings)


READERS: Registry[type[LogReader]] = Registry("log format", ("steelyard.signals.readers",), group="steelyard.readers")


def open_reader(path: str | os.PathLike[str] | RemoteFile, topic: str | None = None) -> LogReader:
    """The reader of a log file, chosen by the file's name, else by its first bytes.

    Args:
        path: a file of any format in `READERS`, or a folder; or the URL of a file that lies elsewhere.
        topic: which topic of joint states, in a bag that has several.
    """
    source = any_path(path)
    if isinstance(source, RemoteFile):
        return _elsewhere(source, topic)
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
            f"{source}: is a folder, but none of {known_formats(folders=True)}; name the log file itself."
            if folder
            else f"{source}: is not a log that can be read; known are {known_formats()}."
        )
    reader = fitting[0](source, topic)
    _check_names(source, reader.names)
    return reader


def _elsewhere(source: RemoteFile, topic: str | None) -> LogReader:
    """The reader of a file that lies elsewhere: by pieces, or of a copy that goes when the reader goes."""
    regular_file(source, LogError)
    fitting = _by_name(source) or _by_start(source)
    if not fitting:
        raise LogError(f"{source}: is not a log that can be read; known are {known_formats()}.")
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
    """Whether the name of the file at `path` is that of a log."""
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
    """What NAME=FILE,NAME=FILE says, by name, if `path` is not a path but such a list."""
    text = str(path)
    if "=" not in text or os.path.lexists(path):
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (name.strip() and file.strip()) for name, _, file in pairs):
        return {}
    return {name.strip(): Path(file.strip()) for name, _, file in pairs}


def numbered(name: str, width: int) -> tuple[str, ...]:
    """The names of the columns of `name`, which has `width` of them: q1, q2, …; of q_1: q_1_1, q_1_2, …"""
    gap = "_" if name[-1:].isdigit() else ""
    return tuple(f"{name}{gap}{k + 1}" for k in range(width))


def _check_names(path: AnyPath, names: Sequence[str]) -> None:
    if not names:
        raise LogError(f"{path}: has no column; a log has the time, positions and torques.")
    if len(names) > MOST_COLUMNS:
        raise LogError(f"{path}: has {len(names)} columns, more than the {MOST_COLUMNS} that are read; leave some out.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LogError(f"{path}: column '{name}' appears twice; give every column its own name.")
        if len(name) > LONGEST_NAME:
            raise LogError(f"{path}: the name of a column has {len(name)} characters; {LONGEST_NAME} are the most.")
        seen.add(name)


def known_formats(folders: bool = False) -> str:
    """All suffixes of logs, or (`folders`) the formats that are folders, as a list for people."""
    if folders:
        return ", ".join(name for name, kind in READERS.items() if kind.folders)
    suffixes = [suffix for kind in READERS.values() for suffix in kind.suffixes]
    packed = [suffix for kind in READERS.values() if kind.packed for suffix in kind.suffixes]
    return f"{', '.join(suffixes)}; of these {', '.join(packed)} also packed ({', '.join(DECOMPRESSORS)})"


def read_table(
    path: str | os.PathLike[str] | RemoteFile,
    columns: Sequence[str] | None = None,
    start: int | None = None,
    stop: int | None = None,
    *,
    topic: str | None = None,
) -> Table:
    """The columns of a log file, all or those named, and its rows `start` to `stop` (half-open, from 0).

    Args:
        path: a file of any format in `READERS`.
        columns: their names; None for all.
        start: the first row, from 0; negative from the end.
        stop: the row after the last.
        topic: which topic of joint states, in a bag that has several.
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
    """How many rows the log file at `path` has (`topic`: of a bag); read through only where the file does not tell."""
    return LogReader.counted_rows(open_reader(path, topic))  # rows of a text, too, not lines


def first_rows(blocks: Iterable[TableBlock], count: int | None) -> Iterator[TableBlock]:
    """`blocks` up to `count` rows (None: all); no block after that is asked for."""
    left = count
    if left is not None and left <= 0:
        return
    for block in blocks:
        if left is not None and block_length(block) >= left:
            yield {name: column[:left] for name, column in block.items()}
            return
        yield block
        left = None if left is None else left - block_length(block)


def later_rows(blocks: Iterable[TableBlock], start: int) -> Iterator[TableBlock]:
    """`blocks` without their first `start` rows: for readers that cannot begin in the middle of a file."""
    for block in blocks:
        if start < block_length(block):
            yield {name: column[start:] for name, column in block.items()} if start else block
        start = max(0, start - block_length(block))


def cut_blocks(blocks: Iterable[TableBlock], start: int, stop: int) -> Iterator[TableBlock]:
    """Rows `start` to `stop` (half-open, from 0) of `blocks`."""
    return first_rows(later_rows(blocks, start), stop - start)


def block_length(block: TableBlock) -> int:
    """How many rows `block` has."""
    return len(next(iter(block.values()), ()))


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return "an empty cell or NaN"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
