"""`DisplayMixin`: shows a result in Python: text at the prompt, HTML in a notebook, data frames, figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError, shortened
from steelyard.ground.grades import TONE_COLOURS, Tone
from steelyard.ground.numbers import DASH, number

# Columns of one length, by name. A notebook shows the first table of a result.
NamedColumns = Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]
# Limits of the display in a notebook; `to_pandas` gives everything.
_MOST_ROWS, _MOST_COLUMNS, _MOST_POINTS = 20, 12, 6


@dataclass(frozen=True)
class Headline:
    """A result in one sentence.

    Args:
        kind: Rating, which selects the colour.
        sentence: The result.
        points: Reasons and remarks, one sentence each.
    """

    kind: Tone
    sentence: str
    points: tuple[str, ...] = ()


class Figures:
    """The figures of a result, with one method for each, such as `result.plot.torque()`.

    Args:
        methods: Functions that draw a figure, by name.
    """

    def __init__(self, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._methods = dict(methods)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name == "_methods":
            raise AttributeError(name)
        if name not in self._methods:
            raise AttributeError(str(UnknownNameError("figure", name, self._methods)))
        return self._methods[name]

    def __dir__(self) -> list[str]:
        return sorted(self._methods)

    def __repr__(self) -> str:
        return f"<figures: {', '.join(f'{name}()' for name in self._methods) or 'none'}>"


class DisplayMixin(ABC):
    """A result for the Python prompt and for notebooks.

    A subclass gives one sentence (`headline`), its tables (`tables`) and its figures (`figures`). This class displays
    them and converts tables to data frames.
    """

    @abstractmethod
    def headline(self) -> Headline:
        """Return the result in one sentence."""

    @abstractmethod
    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """Return functions that build the tables, by name; the main table is first."""

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """Return functions that draw the figures, by name."""
        return {}

    @property
    def plot(self) -> Figures:
        """The figures of the report; a notebook displays the return value of each method."""
        return Figures(self.figures())

    def to_arrow(self, table: str = "") -> Any:
        """Return a table as a `pyarrow.Table`, which polars and other libraries accept directly.

        Args:
            table: Name, as in `tables`; default: the main table.
        """
        import pyarrow as pa

        return pa.table({name: _listed(column) for name, column in self._columns(table).items()})

    def to_pandas(self, table: str = "") -> Any:
        """Return a table as a pandas data frame.

        Args:
            table: Name, as in `tables`; default: the main table.
        """
        try:
            import pandas as pd
        except ImportError:
            raise SteelyardError(
                "to_pandas needs pandas, which is not installed: pip install pandas, or use to_arrow()."
            ) from None
        return pd.DataFrame({name: _listed(column) for name, column in self._columns(table).items()})

    def _columns(self, table: str) -> NamedColumns:
        tables = self.tables()
        name = table or next(iter(tables))
        if name not in tables:
            raise UnknownNameError("table", name, tables)
        return tables[name]()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shortened(self.headline().sentence)}>"

    def _repr_html_(self) -> str:
        headline = self.headline()
        colour = TONE_COLOURS[headline.kind]
        points = "".join(f"<li>{escape(point)}</li>" for point in headline.points[:_MOST_POINTS])
        return (
            f'<div><p style="border-left:4px solid {colour};padding-left:8px">'
            f"<strong>{escape(headline.sentence)}</strong></p>"
            f"{f'<ul>{points}</ul>' if points else ''}{self._table_html()}</div>"
        )

    def _table_html(self) -> str:
        name = next(iter(self.tables()))
        columns = self._columns(name)
        heads = list(columns)[:_MOST_COLUMNS]
        rows = len(next(iter(columns.values()), ()))
        lines = ["<table><thead><tr>", *(f"<th>{escape(head)}</th>" for head in heads), "</tr></thead><tbody>"]
        for k in range(min(rows, _MOST_ROWS)):
            lines.append("<tr>" + "".join(f"<td>{_cell(columns[head][k])}</td>" for head in heads) + "</tr>")
        lines.append("</tbody></table>")
        left = f"{rows - _MOST_ROWS} more rows" if rows > _MOST_ROWS else ""
        wide = f"{len(columns) - len(heads)} more columns" if len(columns) > len(heads) else ""
        if left or wide:
            lines.append(f"<p><em>{' and '.join(filter(None, (left, wide)))}: .to_pandas({name!r})</em></p>")
        others = [f".to_pandas({other!r})" for other in list(self.tables())[1:]]
        figures = [f".plot.{figure}()" for figure in self.figures()]
        if more := [*others, *figures]:
            lines.append(f"<p><small>{escape(', '.join(more))}</small></p>")
        return "".join(lines)


def _listed(column: Sequence[Any] | np.ndarray[Any, Any]) -> Any:
    return column if isinstance(column, np.ndarray) else list(column)


def _cell(value: Any) -> str:
    """The HTML text of a value."""
    if value is None:
        return DASH
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number(float(value))
    return escape(str(value))


def by_columns(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> NamedColumns:
    """Convert a list of rows to columns.

    Args:
        heads: Names of the columns.
        rows: Rows with one value for each name.
    """
    return {head: [row[k] for row in rows] for k, head in enumerate(heads)}


def wide_columns(t: Any, signals: Mapping[str, Any], joints: Sequence[str]) -> dict[str, Any]:
    """Build a table of signals over time with a column for each joint, such as "q_elbow".

    Args:
        t: Time [s].
        signals: Signals by name, shape (samples, joints).
        joints: Names of the joints.
    """
    each = {f"{name}_{joint}": np.asarray(x)[:, k] for name, x in signals.items() for k, joint in enumerate(joints)}
    return {"t": np.asarray(t), **each}
