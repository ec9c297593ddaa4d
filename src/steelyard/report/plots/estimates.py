"""Figures of estimates: parameters with intervals, identifiability, and errors of many estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.report.plots.figure import AFTER, AROUND_ZERO, BEFORE, BLUE, SERIES, Figure, Words
from steelyard.report.plots.series import rounded

_ROW = 22  # pixels per parameter
# Below this ratio of the largest to the smallest value an axis has ticks at 1, 2, 5, else at powers of ten.
_WIDE = 1e3
# Pixels of one box, and between two rows of boxes.
_BOX, _GAP = 9, 10


def parameter_intervals(
    names: Sequence[str],
    unit: Sequence[str],
    after: ArrayLike,
    standard_error: ArrayLike,
    before: ArrayLike | None = None,
    before_is: str = "before",
) -> Figure:
    """Draw one row per parameter: its value and 95 % interval, each on a separate scale.

    Zero is in the middle of each row. The scale is such that the interval and the earlier value just fit into the row.

    Args:
        names: Names of the parameters.
        unit: Unit of each parameter.
        after: Values.
        standard_error: Standard errors of the values.
        before: Earlier values to compare with; None omits them.
        before_is: Legend entry of the earlier values.
    """
    value, error = np.asarray(after, dtype=float), HALF_WIDTH_95 * np.asarray(standard_error, dtype=float)
    old = np.full(len(names), np.nan) if before is None else np.asarray(before, dtype=float)
    scale = np.fmax(np.abs(value) + np.where(np.isfinite(error), error, 0.0), np.abs(np.nan_to_num(old)))
    scale = np.where(scale > 0.0, scale, 1.0)
    rows = np.arange(len(names))
    figure = Figure(_ROW * len(names) + 120)
    if before is not None:
        marker = {"color": BEFORE, "symbol": "diamond-open", "size": 9}
        labels = [f"{name}: {x:.5g} {u}" for name, x, u in zip(names, old, unit, strict=True)]
        figure.add(
            "scatter", x=old / scale, y=rows, mode="markers", name=before_is, marker=marker, customdata=labels,
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    labels = [f"{n}: {x:.5g} ± {e:.2g} {u}" for n, x, e, u in zip(names, value, error, unit, strict=True)]
    figure.add(
        "scatter",
        x=value / scale,
        y=rows,
        customdata=labels,
        mode="markers",
        name="identified, 95 % interval",
        marker={"color": AFTER, "size": 7},
        error_x={"type": "data", "array": error / scale, "color": AFTER, "thickness": 1.5, "width": 4},
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.x_axis(title="value, each on its own scale [1]", range=[-1.08, 1.08], zeroline=True)
    # The first parameter is on top, with half a row of space above and below.
    ticks = [_short(f"{name} [{u}]") for name, u in zip(names, unit, strict=True)]
    figure.y_axis(tickvals=rows, ticktext=ticks, range=[len(names) - 0.5, -0.5], zeroline=False)
    return figure


def correlations(names: Sequence[str], covariance: ArrayLike) -> Figure:
    """Draw the correlation of every pair of parameter errors as a coloured square.

    A correlation near ±1 means that the motion only identifies the sum or difference of the two parameters.

    Args:
        names: Names of the parameters.
        covariance: Covariance of the parameters.
    """
    C = np.asarray(covariance, dtype=float)
    sigma = np.sqrt(np.maximum(np.diag(C), 0.0))
    scale = np.where(sigma > 0.0, sigma, np.inf)
    rho = np.clip(C / np.outer(scale, scale), -1.0, 1.0)
    figure = Figure(min(620, 160 + 12 * len(names)))
    labels = [_short(name, 14) for name in names]
    figure.add(
        "heatmap",
        z=[[round(float(x), 2) for x in row] for row in rho],
        zmin=-1.0,
        zmax=1.0,
        colorscale=AROUND_ZERO,
        colorbar={"title": {"text": "correlation [1]", "side": "right"}, "thickness": 12, "outlinewidth": 0},
        customdata=[list(names)] * len(names),
        text=[[name] * len(names) for name in names],
        hovertemplate="%{text} with %{customdata}: %{z:.2f}<extra></extra>",
    )
    ticks: Words = {"tickvals": np.arange(len(names)), "ticktext": labels, "showgrid": False, "zeroline": False}
    figure.x_axis(**ticks, tickangle=-90, tickfont={"size": 9})
    figure.y_axis(**ticks, autorange="reversed", tickfont={"size": 9})
    return figure


def _short(name: str, width: int = 26) -> str:
    """Shorten a label to leave room for the plot on a phone; the full name is shown on hover."""
    return name if len(name) <= width else name[: width - 1] + "…"


def singular_values(values: ArrayLike, unit: str = "N m per unit") -> Figure:
    """Draw singular values as bars on a logarithmic axis, the largest first, with the condition number.

    Args:
        values: Singular values.
        unit: Unit of the values.
    """
    sigma = np.sort(np.asarray(values, dtype=float))[::-1]
    figure = Figure(360)
    figure.add(
        "bar",
        x=np.arange(1, len(sigma) + 1),
        y=sigma,
        marker={"color": BLUE},
        name="singular values",
        hovertemplate="number %{x}: %{y:.4g}",
    )
    positive = sigma[sigma > 0.0]
    decades = np.log10(positive[0] / positive[-1]) if len(positive) else 0.0
    figure.y_axis(title=f"singular value [{unit}]", type="log", exponentformat="power", dtick=1)
    if len(positive) and decades <= 3.0:  # ticks at powers of ten alone would be too few
        low, high = np.floor(np.log10(positive[-1])), np.ceil(np.log10(positive[0]))
        ticks = [float(k * 10.0**e) for e in np.arange(low, high + 1.0) for k in (1.0, 2.0, 5.0)]
        figure.y_axis(tickmode="array", tickvals=ticks, ticktext=[f"{v:g}" for v in ticks])
    condition = f"{sigma[0] / sigma[-1]:.4g}" if len(sigma) and sigma[-1] > 0.0 else "infinite"
    figure.x_axis(title=f"number of the singular value (condition {condition})")
    return figure


def error_boxes(rows: Sequence[str], groups: Mapping[str, Mapping[str, Sequence[float]]], axis: str) -> Figure:
    """Draw horizontal box plots on a logarithmic axis.

    Args:
        rows: Names of the rows, from top to bottom.
        groups: Values by group and row.
        axis: Title of the axis, with its unit.
    """
    figure = Figure(130 + len(rows) * (_BOX * max(len(groups), 2) + _GAP))
    for k, (name, values) in enumerate(groups.items()):
        pairs = [(row, v) for row in rows for v in values.get(row, ()) if v > 0.0]
        figure.add(
            "box",
            x=rounded([v for _, v in pairs]),
            y=[row for row, _ in pairs],
            name=name,
            orientation="h",
            boxpoints="outliers",
            marker={"color": SERIES[k % len(SERIES)], "size": 3},
            line={"width": 1.2},
            hoverinfo="x+name",
        )
    figure.layout |= {"boxmode": "group", "boxgap": 0.25, "boxgroupgap": 0.1}
    figure.layout["legend"]["traceorder"] = "normal"
    figure.y_axis(categoryorder="array", categoryarray=list(rows), autorange="reversed", dtick=1, ticklabelstandoff=6)
    shown = [v for values in groups.values() for row in values.values() for v in row if v > 0.0]
    narrow = bool(shown) and max(shown) < _WIDE * min(shown)
    figure.x_axis(title=axis, type="log", dtick="D2" if narrow else 1, exponentformat="power", showticklabels=True)
    return figure


# Height of the initial view around the final values, relative to the larger of their span and size.
_MARGIN = 1.0


def parameter_histories(
    names: Sequence[str],
    unit: Sequence[str],
    at: ArrayLike,
    values: ArrayLike,
    standard_error: ArrayLike | None = None,
    axis: str = "time [s]",
) -> Figure:
    """Draw parameters over time: one panel per unit, one line per parameter, the last 95 % interval at its end.

    The initial view shows the range around the final values; zooming out shows the rest.

    Args:
        names: Names of the parameters.
        unit: Unit of each parameter.
        at: Positions along the axis.
        values: Values, shape (positions, parameters); NaN before the first estimate.
        standard_error: Standard errors of the last values.
        axis: Title of the axis, with its unit.
    """
    x, y = np.asarray(at, dtype=float), np.asarray(values, dtype=float)
    groups = list(dict.fromkeys(unit))
    figure = Figure.panels([f"[{group}]" for group in groups], height=220)
    for row, group in enumerate(groups, start=1):
        which = [k for k, u in enumerate(unit) if u == group]
        for k in which:
            figure.add(
                "scatter",
                row,
                x=rounded(x),
                y=rounded(y[:, k]),
                mode="lines",
                name=names[k],
                showlegend=False,
                line={"color": SERIES[k % len(SERIES)], "width": 1.3},
                hovertemplate=f"{names[k]}: %{{y:.4g}} at %{{x:.4g}}<extra></extra>",
            )
        ends = y[-1, which]
        if standard_error is not None:
            error = HALF_WIDTH_95 * np.asarray(standard_error, dtype=float)[which]
            figure.add(
                "scatter",
                row,
                x=np.full(len(which), x[-1]),
                y=ends,
                mode="markers",
                name="the end, 95 % interval",
                marker={"color": AFTER, "size": 4},
                error_y={"type": "data", "array": error, "color": AFTER, "thickness": 1.2, "width": 3},
                hoverinfo="skip",
            )
        low, high = float(np.min(ends)), float(np.max(ends))
        margin = _MARGIN * max(high - low, abs(high), abs(low)) or 1.0
        figure.y_axis(row, f"[{group}]", range=(low - 0.5 * margin, high + 0.5 * margin))
    figure.x_axis(len(groups), axis)
    return figure


def eigenvalue_histories(at: ArrayLike, values: ArrayLike, axis: str = "time [s]") -> Figure:
    """Draw the eigenvalues of a covariance over time.

    Args:
        at: Positions along the axis.
        values: Eigenvalues, shape (positions, eigenvalues), the largest first.
        axis: Title of the axis, with its unit.
    """
    x, y = np.asarray(at, dtype=float), np.asarray(values, dtype=float)
    figure = Figure(320)
    for k in range(y.shape[1]):
        figure.add(
            "scatter",
            x=rounded(x),
            y=rounded(y[:, k]),
            mode="lines",
            name=f"eigenvalue {k + 1}",
            showlegend=False,
            line={"color": SERIES[k % len(SERIES)], "width": 1.3},
            hovertemplate=f"eigenvalue {k + 1}: %{{y:.3g}} at %{{x:.4g}}<extra></extra>",
        )
    figure.y_axis(title="eigenvalue of P", type="log", exponentformat="power")
    figure.x_axis(title=axis)
    return figure
