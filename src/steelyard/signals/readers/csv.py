"""Text tables: values separated by commas, semicolons, tabs or spaces, with or without a line of names."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.decompress import decompression_ratio, open_decompressed
from steelyard.ground.remote import AnyPath
from steelyard.signals._arrow import numpy_column
from steelyard.signals.table import NAMELESS, READERS, LogReader, TableBlock, later_rows

# Text is parsed in pieces of this size, which fit into the cache. Sixteen times larger pieces take a third more CPU
# time and eight times the memory.
PIECE_BYTES = 1 << 22
LONGEST_LINE = 1 << 22
_LONGEST_START = 16 * LONGEST_LINE  # largest size of comments and empty lines before the first row
_PRINT = re.compile(rb"\S")
_QUOTED = re.compile('"[^"]*"')


@READERS.register("csv")
class CsvReader(LogReader):
    """Reads a text file.

    Lines before the data that begin with # or % are comments; without another header, the last of them may have the
    names. Columns without names are called "column 1", …, and a mapping selects them by number. A decimal comma is
    possible with other delimiters. In PlotJuggler's tables, which begin with `__time`, rows may have empty cells.
    """

    suffixes = (".csv", ".tsv", ".txt", ".dat", ".asc")
    packed = True
    by_pieces = True
    description = (
        "commas, semicolons, tabs or spaces; one line of names; lines that begin with `#` or `%` before it are "
        "comments, and the last of them may have the names; without names, columns by number; a decimal comma is "
        "possible unless commas separate the columns; PlotJuggler's export (`__time`) with its empty cells"
    )

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        super().__init__(path, topic)
        names, self._delimiter, self._skip, rows = _header(path)
        self.names = tuple(names)
        self.sparse = "__time" in self.names
        self._decimal = "," if self._delimiter != "," and "," in rows and "." not in rows else "."
        self._row_bytes = (
            len(rows.encode()) / max(1, rows.count("\n")) / decompression_ratio(path, LogError, LONGEST_LINE)
        )

    def estimated_rows(self) -> int:
        return round(self.path.stat().st_size / max(0.01, self._row_bytes))

    def counted_rows(self) -> int:
        part, lines = np.empty(1 << 20, np.uint8), 0
        with open_decompressed(self.path, LogError) as file:
            while count := file.readinto(part.data):  # type: ignore[attr-defined]
                lines += int(np.count_nonzero(part[:count] == ord("\n")))  # three times as fast as bytes.count
        return lines - self._skip

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        return later_rows(self._all_blocks(columns), start)

    def _all_blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        row, schema = 0, None
        for k, text in enumerate(self._texts()):
            if k and not _PRINT.search(text):
                continue
            table = self._parsed(text, columns, row, self._skip if k == 0 else 0, schema)
            row, schema = row + table.num_rows, table.schema
            for batch in table.to_batches():  # without copies
                yield {name: numpy_column(batch.column(name)) for name in columns}
        if row == 0:
            raise LogError(f"{self.path}: has column names but no rows.")

    def _texts(self) -> Iterator[memoryview]:
        """Yield pieces of whole lines, the first with the header; each is valid until the next one is read."""
        with open_decompressed(self.path, LogError) as file:
            buffer, filled, lines = bytearray(PIECE_BYTES), 0, self._skip + 1
            while count := file.readinto(memoryview(buffer)[filled:]):  # type: ignore[attr-defined]
                filled += count
                end = buffer.rfind(b"\n", 0, filled) + 1
                if end == 0 or (lines and buffer.count(b"\n", 0, filled) < lines):
                    if filled > _LONGEST_START:
                        raise LogError(f"{self.path}: has a line longer than {LONGEST_LINE / 1e6:.3g} MB; fix it.")
                    buffer = buffer + bytes(PIECE_BYTES) if filled == len(buffer) else buffer
                    continue
                yield memoryview(buffer)[:end]
                buffer[: filled - end] = buffer[end:filled]
                filled, lines = filled - end, 0
            if filled or lines:
                yield memoryview(buffer)[:filled]

    def _parsed(self, text: memoryview | bytes, columns: Sequence[str], row: int, skip: int, schema: Any) -> Any:
        """Parse a piece to an Arrow table; `schema` is that of the previous piece and probably the same."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        if self._delimiter == " ":
            text, skip = _single_spaced(text, skip), 0

        # Types are inferred per piece, so an invalid number makes only that piece text. With one thread an error has
        # its row; a second thread would not help, since the caller works on the previous piece meanwhile.
        def parsed(**known: Any) -> Any:
            return arrow.read_csv(
                pa.BufferReader(text),
                read_options=arrow.ReadOptions(column_names=self.names, skip_rows=skip, use_threads=False),
                parse_options=arrow.ParseOptions(delimiter=self._delimiter),
                convert_options=arrow.ConvertOptions(
                    decimal_point=self._decimal, strings_can_be_null=True, include_columns=list(columns), **known
                ),
            )

        if schema is not None and all(kind in (pa.float64(), pa.int64()) for kind in schema.types):
            # With a known schema, without other types and words for empty cells, parsing is 20 % faster.
            with suppress(pa.ArrowInvalid):
                return parsed(column_types=schema, null_values=[""])
        try:
            return parsed()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise LogError(f"{self.path}: cannot be read as a table ({_reason(error, row - skip)}).") from None


def _single_spaced(text: memoryview | bytes, skip: int) -> bytes:
    """Normalise spaces in the lines after the first `skip`: one between two numbers, none at the ends."""
    lines = bytes(text).splitlines()[skip:]
    return b"".join(b" ".join(line.split()) + b"\n" for line in lines)


def _header(path: AnyPath) -> tuple[list[str], str, int, str]:
    """Return names, delimiter, lines to skip before the first row, and a few rows as text."""
    with open_decompressed(path, LogError) as file:
        start = file.read(LONGEST_LINE)
    if len(start) == LONGEST_LINE:
        start = start[: max(start.rfind(b"\n"), start.rfind(b"\r")) + 1]
        if not start:
            raise LogError(f"{path}: its first line is longer than {LONGEST_LINE / 1e6:.3g} MB, too long for a log.")
    try:
        text = io.StringIO(start.decode("utf-8-sig"), newline=None)
    except UnicodeDecodeError:
        raise LogError(f"{path}: is not text in UTF-8; save it as UTF-8.") from None
    lines = [line.rstrip("\n") for line in itertools.islice(text, 1000)]
    at, comment = 0, ""
    while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith(("#", "%"))):
        comment = lines[at].lstrip().lstrip("#%").strip() or comment
        at += 1
    if at == len(lines):
        raise LogError(f"{path}: is empty; a log needs a line with the names of its columns, and rows below it.")
    delimiter = _delimiter(lines[at], next(filter(str.strip, lines[at + 1 :]), ""))
    if _numeric(lines[at], delimiter):  # without a header, the last comment may have the names
        count, names, skip = len(_split(lines[at], delimiter)), _split(comment, delimiter), at
        if len(names) != count or _numeric(comment, delimiter):
            names = [f"{NAMELESS}{k + 1}" for k in range(count)]
    else:
        names, skip = _split(lines[at], delimiter), at + 1
    return names, delimiter, skip, "\n".join([*lines[skip : skip + 50], ""])


def _delimiter(head: str, row: str) -> str:
    """Find the delimiter: it occurs equally often in the line of names `head` and in the `row` below it."""
    # A comma may be a decimal point if there is another delimiter; quoted text is part of a name.
    names = _QUOTED.sub("", head)
    cells = _QUOTED.sub("", row)
    alike = [d for d in ";\t," if 0 < names.count(d) == cells.count(d)]
    if alike == [","] and _numeric(cells, " ") and not _numeric(cells, ","):
        return " "
    if not alike and len(names.split()) > 1 and (len(names.split()) == len(cells.split()) or not cells):
        alike = [" "] if not any(d in names for d in ";\t,") or _numeric(names, " ") else []
    return next(iter(alike), next((d for d in ";\t" if d in names), ","))


def _split(line: str, delimiter: str) -> list[str]:
    try:
        line = " ".join(line.split()) if delimiter == " " else line
        names = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a field that is too long
        names = line.split(delimiter)
    return [name.strip() or f"{NAMELESS}{k + 1}" for k, name in enumerate(names)]


def _numeric(line: str, delimiter: str) -> bool:
    cells = line.split() if delimiter == " " else [cell.strip() for cell in line.split(delimiter)]
    try:
        [float(cell.replace(",", ".")) for cell in cells if cell]
    except ValueError:
        return False
    return any(cells)


def _reason(error: Exception, before: int) -> str:
    """Return Arrow's message, with its row counted from the first row of data; `before` rows precede the piece."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    text = text.removeprefix("CSV parse error: ")
    if text.startswith("Row #"):
        number, _, rest = text.removeprefix("Row #").partition(":")
        return f"row {int(number) + before}:{rest}"
    return text
