"""`Displayed`: a result as Python shows it: a line at the prompt, verdict and table in a notebook, frames, figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.numbers import DASH, number

# A table by its columns, all of one length; the first of a result's tables is what a notebook shows.
NamedColumns = Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]
# Rows, columns and reasons that a notebook shows; the rest is for `to_pandas`.
_MOST_ROWS, _MOST_COLUMNS, _MOST_POINTS = 20, 12, 6
_COLOURS = {"good": "#009E73", "note": "#0072B2", "warning": "#E69F00", "bad": "#D55E00"}


@dataclass(frozen=True)
class Glance:
    """What a result is, in one sentence.

    Args:
        kind: how good that is.
        sentence: what was found.
        points: reasons and remarks, a sentence each.
    """

    kind: Literal["good", "note", "warning", "bad"]
    sentence: str
    points: tuple[str, ...] = ()


class Figures:
    """The figures of a result, each a method that draws one: `found.plot.torque()`.

    Args:
        drawn: what draws each of them, by name.
    """

    def __init__(self, drawn: Mapping[str, Callable[..., Any]]) -> None:
        self._drawn = dict(drawn)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name == "_drawn":
            raise AttributeError(name)
        if name not in self._drawn:
            raise AttributeError(str(UnknownNameError("figure", name, self._drawn)))
        return self._drawn[name]

    def __dir__(self) -> list[str]:
        return sorted(self._drawn)

    def __repr__(self) -> str:
        return f"<figures: {', '.join(f'{name}()' for name in self._drawn) or 'none'}>"


class Displayed(ABC):
    """A result that a person at a prompt or in a notebook can look at.

    A class says in a sentence what it is (`glance`), which tables it holds (`tables`) and which figures (`figures`);
    how these are shown, and become frames of other libraries, stands here.
    """

    @abstractmethod
    def glance(self) -> Glance:
        """What it is, in one sentence."""

    @abstractmethod
    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        """What makes each of its tables, by name; the main one first."""

    def figures(self) -> Mapping[str, Callable[..., Any]]:
        """What draws each of its figures, by name."""
        return {}

    @property
    def plot(self) -> Figures:
        """Its figures, those of the report: a notebook draws what a method of this returns."""
        return Figures(self.figures())

    def to_arrow(self, table: str = "") -> Any:
        """One of its tables as a `pyarrow.Table`, which polars and others take as it is.

        Args:
            table: its name, as in `tables`; default: the main one.
        """
        import pyarrow as pa

        return pa.table({name: _listed(column) for name, column in self._columns(table).items()})

    def to_pandas(self, table: str = "") -> Any:
        """One of its tables as a pandas frame.

        Args:
            table: its name, as in `tables`; default: the main one.
        """
        try:
            import pandas as pd
        except ImportError:
            raise SteelyardError(
                "to_pandas needs pandas, which is not installed: pip install pandas; to_arrow() needs nothing more."
            ) from None
        return pd.DataFrame({name: _listed(column) for name, column in self._columns(table).items()})

    def _columns(self, table: str) -> NamedColumns:
        made = self.tables()
        name = table or next(iter(made))
        if name not in made:
            raise UnknownNameError("table", name, made)
        return made[name]()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.glance().sentence}>"

    def _repr_html_(self) -> str:
        seen = self.glance()
        colour = _COLOURS[seen.kind]
        points = "".join(f"<li>{escape(point)}</li>" for point in seen.points[:_MOST_POINTS])
        return (
            f'<div><p style="border-left:4px solid {colour};padding-left:8px"><strong>{escape(seen.sentence)}</strong>'
            f"</p>{f'<ul>{points}</ul>' if points else ''}{self._table_html()}</div>"
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
        drawn = [f".plot.{figure}()" for figure in self.figures()]
        if more := [*others, *drawn]:
            lines.append(f"<p><small>{escape(', '.join(more))}</small></p>")
        return "".join(lines)


def _listed(column: Sequence[Any] | np.ndarray[Any, Any]) -> Any:
    return column if isinstance(column, np.ndarray) else list(column)


def _cell(value: Any) -> str:
    """A value in few digits."""
    if value is None:
        return DASH
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number(float(value))
    return escape(str(value))


def by_columns(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> NamedColumns:
    """A table that was made row by row: `rows` of as many values as there are `heads`."""
    return {head: [row[k] for row in rows] for k, head in enumerate(heads)}


def wide_columns(t: Any, signals: Mapping[str, Any], joints: Sequence[str]) -> dict[str, Any]:
    """Signals over time, a column for each of `joints`: `t` (s), then "q_elbow" of `signals`["q"] (samples, joints)."""
    each = {f"{name}_{joint}": np.asarray(x)[:, k] for name, x in signals.items() for k, joint in enumerate(joints)}
    return {"t": np.asarray(t), **each}
