"""Draws declared tables (`ground/result_tables.py`) on pages and on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.ground.numbers import Known, number
from steelyard.ground.result_tables import ResultTable, TableField, TableRow
from steelyard.report.elements import Html, TableCell, TableColumn, table_html

if TYPE_CHECKING:
    from rich.table import Table

# Functions that make the cells of some columns from a row, in place of the declared format; by the name of the column.
Cells = Mapping[str, Callable[[TableRow], TableCell]]


def table_cell(field: TableField, row: TableRow) -> TableCell:
    """Return the cell of a column: with an error bar only significant digits, a date without its time.

    Args:
        field: The column.
        row: Values by name.
    """
    value, factor = row[field.name], 100.0 if field.percent else 1.0
    if value is None or field.type in ("text", "count", "yes/no"):
        return value  # type: ignore[no-any-return]
    if field.type == "time":
        return str(value.strftime("%Y-%m-%d"))
    if field.error:
        return Known(factor * value, factor * (row[field.error] or 0.0))
    return float(factor * value)


def declared_html(
    table: ResultTable, rows: Sequence[TableRow], names: Sequence[str] = (), cells: Cells | None = None, **more: Any
) -> Html:
    """Build the HTML table of some rows.

    Args:
        table: Declaration of the table.
        rows: Values by name, row by row.
        names: Columns to show; default: all that have a heading.
        cells: Cells that are not as declared.
        **more: Further arguments of `table_html`: caption, dash, tall.
    """
    fields = [table[name] for name in names] or [f for f in table.fields if f.head]
    heads = [TableColumn((f.head or f.name).strip(), "%" if f.percent else f.unit, f.digits) for f in fields]
    own = cells or {}
    body = [[own[f.name](row) if f.name in own else table_cell(f, row) for f in fields] for row in rows]
    return table_html(heads, body, **more)


def declared_terminal(title: str, table: ResultTable, rows: Sequence[TableRow], names: Sequence[str]) -> Table:
    """Build the terminal's table of some rows.

    Args:
        title: Title above the table.
        table: Declaration of the table.
        rows: Values by name, row by row.
        names: Columns to show.
    """
    from steelyard.report.terminal import table as terminal_table

    fields = [table[name] for name in names]
    heads = [f.printed or f.head or f.name for f in fields]
    body = [[_printed(f, table_cell(f, row)) for f in fields] for row in rows]
    numeric = [head for head, f in zip(heads, fields, strict=True) if f.type in ("number", "count")]
    return terminal_table(title, heads, body, right=numeric)


def _printed(field: TableField, cell: TableCell) -> str:
    if cell is None:
        return "–"
    return number(cell, field.digits) if isinstance(cell, float) else str(cell)
