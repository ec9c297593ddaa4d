"""Parameters before and after, with the intervals in which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.palette import AFTER, BEFORE
from steelyard.report.plots.figure import arrange

_ROW = 22  # pixels per parameter
_HEAD = 84  # and around each panel
# Half the width of an interval that holds the truth in 95 of 100 cases, in standard errors.
_WIDTH = 1.96


def parameter_intervals(
    names: Sequence[str],
    unit: Sequence[str],
    after: ArrayLike,
    standard_error: ArrayLike,
    before: ArrayLike | None = None,
) -> Any:
    """One panel per unit, one row per parameter: value and 95 % interval, and the value before where it is known."""
    from plotly.subplots import make_subplots

    value, error = np.asarray(after, dtype=float), np.asarray(standard_error, dtype=float)
    old = np.full(len(names), np.nan) if before is None else np.asarray(before, dtype=float)
    groups = list(dict.fromkeys(unit))
    members = [[k for k, u in enumerate(unit) if u == group] for group in groups]
    heights = [_ROW * len(m) for m in members]
    inside = sum(heights) + _HEAD * (len(groups) - 1)
    figure = make_subplots(
        rows=len(groups),
        cols=1,
        row_heights=heights,
        vertical_spacing=_HEAD / inside if len(groups) > 1 else 0.0,
    )
    for row, (group, which) in enumerate(zip(groups, members, strict=True), start=1):
        labels, rows = [_short(names[k]) for k in which], np.arange(len(which))
        shown = {"row": row, "col": 1, "showlegend": row == 1}
        if before is not None:
            figure.add_scatter(
                x=old[which],
                y=rows,
                mode="markers",
                name="before",
                legendgroup="before",
                marker={"color": BEFORE, "symbol": "diamond-open", "size": 9},
                **shown,
            )
        figure.add_scatter(
            x=value[which],
            y=rows,
            customdata=[names[k] for k in which],
            mode="markers",
            name="identified, 95 % interval",
            legendgroup="after",
            marker={"color": AFTER, "size": 7},
            error_x={"type": "data", "array": _WIDTH * error[which], "color": AFTER, "thickness": 1.5, "width": 4},
            hovertemplate="%{customdata}: %{x:.5g} ± %{error_x.array:.2g} " + group,
            **shown,
        )
        figure.update_xaxes(title_text=f"value [{group}]", row=row, col=1)
        # The first parameter on top, half a row of air above and below.
        ends = [len(which) - 0.5, -0.5]
        figure.update_yaxes(tickvals=rows, ticktext=labels, range=ends, row=row, col=1)
    arrange(figure, inside + 120)
    figure.update_yaxes(zeroline=False)
    return figure


def _short(name: str, width: int = 26) -> str:
    """A label that leaves room for the plot on a phone; the whole name shows on hover."""
    return name if len(name) <= width else name[: width - 1] + "…"
