"""`ResultTable`: declares a table of results once, for JSON, Parquet, CSV, data frames, pages and the terminal.

The room of a result states the fields and makes the rows; `report/declared_tables.py` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steelyard.errors import UnknownNameError
from steelyard.ground.display import NamedColumns

TableRow = Mapping[str, Any]


@dataclass(frozen=True)
class TableField:
    """A column of a table.

    Attributes:
        name: Name of the column in files and data frames.
        type: "text", "number", "count", "yes/no" or "time".
        about: Meaning of the column.
        head: Heading on pages; "" if pages do not show it.
        unit: Unit of all its numbers.
        digits: Significant digits on pages and on the terminal.
        error: Field with the standard errors of the numbers; these limit the number of digits.
        percent: Whether pages show the numbers times 100.
        printed: Heading on the terminal; "": as on pages.
        in_files: Whether files contain the field; if not, only pages, data frames or the terminal show it.
        in_frames: Whether data frames contain the field.
    """

    name: str
    type: str
    about: str
    head: str = ""
    unit: str = ""
    digits: int = 4
    error: str = ""
    percent: bool = False
    printed: str = ""
    in_files: bool = True
    in_frames: bool = True


@dataclass(frozen=True)
class ResultTable:
    """A table of results.

    Attributes:
        name: Name of the table.
        row: Meaning of a row.
        fields: Columns of the table.
    """

    name: str
    row: str
    fields: tuple[TableField, ...]

    @cached_property
    def _by_name(self) -> dict[str, TableField]:
        return {f.name: f for f in self.fields}

    def __getitem__(self, name: str) -> TableField:
        if name not in self._by_name:
            raise UnknownNameError(f"column of {self.name}", name, self._by_name)
        return self._by_name[name]

    @property
    def in_files(self) -> tuple[TableField, ...]:
        """The columns of files."""
        return tuple(f for f in self.fields if f.in_files)

    def records(self, rows: Iterable[TableRow]) -> list[dict[str, Any]]:
        """Return the `rows` for JSON: columns of files, in their order."""
        return [{f.name: row[f.name] for f in self.in_files} for row in rows]

    def frame(self, rows: Sequence[TableRow]) -> NamedColumns:
        """Return the `rows` as the columns of a data frame."""
        return {f.name: [row[f.name] for row in rows] for f in self.fields if f.in_frames}

    def arrow(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """Return a `pyarrow` table with the meaning of its rows and columns; times are seconds since 1970 (UTC).

        Args:
            columns: Values by the name of the column.
        """
        import pyarrow as pa

        types = {
            "text": pa.string(), "number": pa.float64(), "count": pa.int64(), "yes/no": pa.bool_(),
            "time": pa.timestamp("us", tz="UTC"),
        }  # fmt: skip
        schema = pa.schema(
            [pa.field(f.name, types[f.type], metadata={"about": f.about}) for f in self.in_files],
            metadata={"a row is": self.row},
        )
        arrays = [
            pa.array([_moment(x) for x in columns[f.name]] if f.type == "time" else columns[f.name], types[f.type],
                     from_pandas=f.type == "number")
            for f in self.in_files
        ]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=schema)


def _moment(seconds: float | None) -> int | None:
    return None if seconds is None else round(1e6 * seconds)
