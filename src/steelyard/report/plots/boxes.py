"""Boxes of errors, one row per estimator (or whatever is compared), one colour per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.report.palette import SERIES
from steelyard.report.plots.figure import arrange

_DIGITS = 4
# Below this ratio of the largest to the smallest value an axis has room for 1, 2, 5 and not only for powers of ten.
_WIDE = 1e3
# Pixels of one box, and between two rows of them.
_BOX, _GAP = 9, 10


def error_boxes(rows: Sequence[str], groups: Mapping[str, Mapping[str, Sequence[float]]], axis: str) -> Any:
    """Horizontal boxes on a logarithmic axis; `groups` has values by group and row, `rows` go from top to bottom."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for k, (name, values) in enumerate(groups.items()):
        pairs = [(row, float(f"{v:.{_DIGITS}g}")) for row in rows for v in values.get(row, ()) if v > 0.0]
        figure.add_box(
            x=[v for _, v in pairs],
            y=[row for row, _ in pairs],
            name=name,
            orientation="h",
            boxpoints="outliers",
            marker={"color": SERIES[k % len(SERIES)], "size": 3},
            line={"width": 1.2},
            hoverinfo="x+name",
        )
    arrange(figure, 130 + len(rows) * (_BOX * max(len(groups), 2) + _GAP))
    figure.update_layout(boxmode="group", boxgap=0.25, boxgroupgap=0.1, legend={"traceorder": "normal"})
    figure.update_yaxes(
        categoryorder="array", categoryarray=list(rows), autorange="reversed", dtick=1, ticklabelstandoff=6
    )
    shown = [v for values in groups.values() for row in values.values() for v in row if v > 0.0]
    narrow = bool(shown) and max(shown) < _WIDE * min(shown)
    figure.update_xaxes(
        type="log", title_text=axis, dtick="D2" if narrow else 1, exponentformat="power", showticklabels=True
    )
    return figure
