"""Logs with one file per signal: a folder with q.csv, tau.csv, …, or NAME=FILE,NAME=FILE."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from steelyard.errors import LogError
from steelyard.signals.recognise import SIGNAL_WORDS, recognise_time
from steelyard.signals.table import (
    NAMELESS,
    READERS,
    ColumnValues,
    LogReader,
    TableBlock,
    block_length,
    has_reader,
    named_files,
    numbered,
    open_reader,
)

_MOST_FILES = 1000
TIME = "t"


@READERS.register("signals")
class FolderReader(LogReader):
    """Reads several files of any format with the same rows; the clock is that of the first file with a time.

    Columns without names, or with numbers as names, are named by their file: tau.txt has tau1, tau2, … Other columns
    get the name of the file as prefix (tau/elbow), unless they begin with it.
    """

    suffixes = ()
    description = (
        "one file per signal, each of any format of this table: a folder with `q.csv`, `tau.csv`, …, or instead of a "
        "path `position=q.txt,torque=tau.txt,time=t.txt`; all with the same rows"
    )
    folders = True

    @classmethod
    def claims(cls, path: Path) -> bool:
        return any(name.lower() in SIGNAL_WORDS["position"] for name in _files(path))

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        files = named_files(path) or _files(path)
        if len(files) > _MOST_FILES:
            raise LogError(f"{path}: has {len(files)} files, more than the {_MOST_FILES} that are read.")
        self._parts = [_Part(name, open_reader(file)) for name, file in files.items()]
        clocks = [part for part in self._parts if part.time is not None]
        self._clock = clocks[0] if clocks else None
        if self._clock is not None:
            self._clock.columns[TIME] = str(self._clock.time)
        self.names = tuple(name for part in self._parts for name in part.columns)
        self.joints = next((part.reader.joints for part in self._parts if part.reader.joints), ())
        counts = {part.reader.row_count for part in self._parts}
        self.row_count = counts.pop() if len(counts) == 1 else None

    def estimated_rows(self) -> int:
        return self._parts[0].reader.estimated_rows()

    def counted_rows(self) -> int:
        return self._parts[0].reader.counted_rows()

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        parts = [part for part in self._parts if not set(part.columns).isdisjoint(columns)]
        timed = self._clock is not None and TIME in columns
        with contextlib.ExitStack() as stack:
            streams = [_Rows(part, stack.enter_context(_closing(part.blocks(columns, timed, start)))) for part in parts]
            row = start
            while all([rows.fill() for rows in streams]):
                count = min(rows.length for rows in streams)
                taken = [rows.take(count) for rows in streams]
                block: dict[str, ColumnValues] = {}
                for part, some in zip(parts, taken, strict=True):
                    if timed and part.time is not None and part is not self._clock:
                        self._compare(part, taken[parts.index(self._clock)][TIME], some.pop(_OWN), row)  # type: ignore[arg-type]
                    block |= some
                row += count
                yield {name: block[name] for name in columns}
            longer = [rows.part for rows in streams if rows.length]
            if longer:
                shorter = next(rows.part for rows in streams if not rows.length)
                raise LogError(
                    f"{self.path}: {shorter.reader.path.name} ends after {row} rows, {longer[0].reader.path.name} has "
                    "more; record them together, or resample them to one clock."
                )

    def _compare(self, part: _Part, clock: ColumnValues, own: ColumnValues, row: int) -> None:
        """Refuse rows of two files whose times differ by more than half a step."""
        if "O" in (clock.dtype.kind, own.dtype.kind) or len(clock) < 2:
            return
        step = np.median(np.diff(clock))
        odd = np.abs(own - clock) > step / 2
        if odd.any():
            assert self._clock is not None
            raise LogError(
                f"{self.path}: {part.reader.path.name} and {self._clock.reader.path.name} show different times in row "
                f"{row + int(np.argmax(odd)) + 1}; resample them to one clock."
            )


_OWN = "\0own time"


class _Part:
    """A file of one signal; `columns` maps the names in the log to those in the file."""

    def __init__(self, name: str, reader: LogReader) -> None:
        self.name, self.reader = name, reader
        self.time = recognise_time(reader.names)
        if name.lower() in SIGNAL_WORDS["time"] and len(reader.names) == 1:
            self.time = reader.names[0]
        signals = [column for column in reader.names if column != self.time]
        plain = all(column.startswith(NAMELESS) or column.strip().isdigit() for column in signals)
        if plain and len(signals) > 1:
            names = numbered(name, len(signals))
        else:
            names = tuple(
                name if plain else column if column.lower().startswith(name.lower()) else f"{name}/{column}"
                for column in signals
            )
        self.columns = dict(zip(names, signals, strict=True))

    def blocks(self, columns: Sequence[str], timed: bool, start: int) -> Iterator[TableBlock]:
        wanted = {name: column for name, column in self.columns.items() if name in columns}
        if timed and self.time is not None and TIME not in wanted:
            wanted[_OWN] = self.time
        for block in self.reader.blocks(list(dict.fromkeys(wanted.values())), start):
            yield {name: block[column] for name, column in wanted.items()}


class _Rows:
    """Buffer for the rows of a part that are read but not used yet."""

    def __init__(self, part: _Part, stream: Iterator[TableBlock]) -> None:
        self.part, self._stream = part, stream
        self._buffer: TableBlock = {}

    @property
    def length(self) -> int:
        return block_length(self._buffer)

    def fill(self) -> bool:
        while not self.length:
            block = next(self._stream, None)
            if block is None:
                return False
            self._buffer = block
        return True

    def take(self, count: int) -> dict[str, ColumnValues]:
        rows = {name: column[:count] for name, column in self._buffer.items()}
        self._buffer = {name: column[count:] for name, column in self._buffer.items()}
        return rows


@contextlib.contextmanager
def _closing(stream: Iterator[TableBlock]) -> Iterator[Iterator[TableBlock]]:
    try:
        yield stream
    finally:
        stream.close()  # type: ignore[attr-defined]


def _files(path: Path) -> dict[str, Path]:
    files = sorted(file for file in path.iterdir() if not file.name.startswith(".") and file.is_file())
    return {_stem(file): file for file in files if has_reader(file)}


def _stem(path: Path) -> str:
    return path.name.split(".", 1)[0]
