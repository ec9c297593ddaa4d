"""Read a table of text: values parted by commas, semicolons or tabs under one line of names."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from steelyard.errors import LogError
from steelyard.signals.table import Column, Table

# Turn an Arrow column into a NumPy one: numbers, text or time stamps.


def numpy_column(column: Any) -> Column:
    """Empty cells become NaN in numbers, NaT in time stamps and None elsewhere."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if pa.types.is_timestamp(kind):
        return np.asarray(column.cast(pa.timestamp(kind.unit)).to_numpy().astype(f"datetime64[{kind.unit}]"))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if (pa.types.is_integer(kind) or pa.types.is_boolean(kind)) and column.null_count:
        column = column.cast(pa.float64())
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count == 0 and len(column):
        # Arrow's own way to NumPy loads Pandas where it is installed, which takes half a second.
        return np.concatenate([np.from_dlpack(part) for part in getattr(column, "chunks", [column]) if len(part)])
    return np.asarray(column.to_numpy())


def read_csv(path: Path) -> Table:
    """The table of a text file.

    Lines before the data that begin with # are comments; if no other header follows, the last of them holds the
    names. With semicolons (or tabs) a comma may stand for the decimal point.
    """
    names, delimiter, skip, sample = _header(path)
    decimal = "," if delimiter != "," and "," in sample and "." not in sample else "."
    try:
        table = pacsv.read_csv(
            path,
            # One thread: errors then know their row, and the other threads have better to do.
            read_options=pacsv.ReadOptions(column_names=names, skip_rows=skip, use_threads=False),
            parse_options=pacsv.ParseOptions(delimiter=delimiter),
            convert_options=pacsv.ConvertOptions(decimal_point=decimal, strings_can_be_null=True),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise LogError(f"{path}: cannot be read as a table ({_reason(error, skip)}).") from None
    columns = {name: numpy_column(table.column(name)) for name in names}
    if table.num_rows == 0:
        raise LogError(f"{path}: has names of columns but no rows.")
    return Table(str(path), columns)


def _header(path: Path) -> tuple[list[str], str, int, str]:
    """Names, delimiter, lines to skip before the first row, and a few rows as text."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            lines = [line.rstrip("\n") for line in itertools.islice(file, 1000)]
    except UnicodeDecodeError:
        raise LogError(f"{path}: is not text in UTF-8; save it as UTF-8.") from None
    at, comment = 0, ""
    while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith("#")):
        comment = lines[at].lstrip().lstrip("#").strip() or comment
        at += 1
    if at == len(lines):
        raise LogError(f"{path}: is empty; a log needs a line with the names of its columns, and rows under it.")
    # A comma may be a decimal point where there is another delimiter.
    delimiter = next((d for d in ";\t" if d in lines[at]), ",")
    if _numeric(lines[at], delimiter):  # no header of its own: the comment above may be it
        if comment.count(delimiter) != lines[at].count(delimiter) or _numeric(comment, delimiter):
            raise LogError(f"{path}: the first line holds numbers; put a line with the columns' names above it.")
        names, skip = _split(comment, delimiter), at
    else:
        names, skip = _split(lines[at], delimiter), at + 1
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise LogError(f"{path}: column '{repeated}' appears twice; give every column its own name.")
    return names, delimiter, skip, "\n".join(lines[skip : skip + 50])


def _split(line: str, delimiter: str) -> list[str]:
    return [name.strip().strip('"').strip() or f"column {k + 1}" for k, name in enumerate(line.split(delimiter))]


def _numeric(line: str, delimiter: str) -> bool:
    cells = [cell.strip() for cell in line.split(delimiter)]
    try:
        [float(cell.replace(",", ".")) for cell in cells if cell]
    except ValueError:
        return False
    return any(cells)


def _reason(error: Exception, skip: int) -> str:
    """What Arrow says, with its row counted from the first row of data."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    text = text.removeprefix("CSV parse error: ")
    if text.startswith("Row #"):
        number, _, rest = text.removeprefix("Row #").partition(":")
        return f"row {int(number) - skip}:{rest}"
    return text
