"""Figures of a fleet: maps of robots and joints, series of days with error bars, own against pooled estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.report.plots.figure import AROUND_ZERO, BLUE, GREY, VERMILLION, Figure
from steelyard.report.plots.series import rounded

_CELL, _MARGIN = 30, 150  # pixels of a joint in a map, and of its margins
_ROW = 24  # pixels of a parameter


def fleet_map(
    robots: Sequence[str],
    joints: Sequence[str],
    values: ArrayLike,
    hover_texts: Sequence[Sequence[str]],
    legend: str,
    end: float,
    ticks: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Draw a map with a column per robot and a row per joint; usual values are uncoloured.

    Args:
        robots: Names, in order.
        joints: Names.
        values: Values around 0, shape (joints, robots); NaN if unknown.
        hover_texts: Text of each cell.
        legend: Meaning of the colours, with the unit.
        end: Value at which the colours end, on both sides.
        ticks: Values and labels of the colour bar; default: those of plotly.
    """
    figure = Figure(_MARGIN + _CELL * len(joints))
    names = [_short(robot) for robot in robots]
    if len(set(names)) < len(names):
        names = [f"{k} {name}" for k, name in enumerate(names, start=1)]
    bar: dict[str, Any] = {  # above the map, since a bar at the side would fill the width of a phone
        "title": {"text": legend, "side": "top"}, "orientation": "h", "x": 0.0, "xanchor": "left", "y": 1.0,
        "yanchor": "bottom", "thickness": 10, "len": 0.6, "outlinewidth": 0,
    }  # fmt: skip
    if ticks:
        bar |= {"tickmode": "array", "tickvals": [x for x, _ in ticks], "ticktext": [word for _, word in ticks]}
    z = [[None if not np.isfinite(x) else float(f"{x:.3g}") for x in row] for row in np.asarray(values, dtype=float)]
    figure.add(
        "heatmap", x=names, y=list(range(len(joints))), z=z, zmin=-end, zmax=end,
        colorscale=AROUND_ZERO, colorbar=bar, text=[list(row) for row in hover_texts],
        xgap=1 if len(robots) <= 80 else 0, ygap=1, hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    # Plotly shows as many names of a category axis as fit.
    figure.x_axis(type="category", showgrid=False, tickangle=-60 if len(robots) > 8 else 0, tickfont={"size": 10})
    figure.y_axis(
        tickmode="array", tickvals=list(range(len(joints))), ticktext=[_short(j) for j in joints], showgrid=False,
        zeroline=False, range=[len(joints) - 0.5, -0.5],
    )  # fmt: skip
    return figure


def _short(name: str, width: int = 18) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"


@dataclass(frozen=True, eq=False)
class DatedPoints:
    """Points over dates.

    Attributes:
        title: Title of the panel.
        y: Quantity with its unit.
        dates: Dates, seconds since 1970.
        values: Values.
        errors: Standard errors.
        since: Dates of changes.
        level: Mean of all robots of the type; None: not drawn.
    """

    title: str
    y: str
    dates: Sequence[float]
    values: Sequence[float]
    errors: Sequence[float]
    since: Sequence[float] = ()
    level: float | None = None


def date_curves(curves: Sequence[DatedPoints], name: str = "a day, 95 % interval", joints: bool = False) -> Figure:
    """Draw a panel for each curve over one axis of dates.

    Args:
        curves: The curves.
        name: Name of a point in the legend.
        joints: Draw small panels next to each other, one per joint.
    """
    made = Figure.by_joint if joints else Figure.panels
    figure = made([curve.title for curve in curves], height=190 if len(curves) > 1 else 300)
    for row, curve in enumerate(curves, start=1):
        days = [moment(t) for t in curve.dates]
        half = rounded(HALF_WIDTH_95 * np.asarray(curve.errors, dtype=float)) if len(curve.errors) else None
        figure.add(
            "scatter", row, x=days, y=rounded(curve.values), mode="markers", name=name,
            marker={"color": BLUE, "size": 6},
            error_y=None if half is None else {"type": "data", "array": half, "thickness": 1, "color": BLUE},
            hovertemplate="%{x|%Y-%m-%d}: %{y:.4g}<extra></extra>",
        )  # fmt: skip
        if curve.level is not None and days:
            line = {"color": GREY, "width": 1.5, "dash": "dot"}
            ends = [days[0], days[-1]]
            figure.add("scatter", row, x=ends, y=[curve.level] * 2, mode="lines", name="mean of the type", line=line)
        low, high = _span(curve)
        for since in curve.since:
            line = {"color": VERMILLION, "width": 1.6, "dash": "dash"}
            figure.add(
                "scatter", row, x=[moment(since)] * 2, y=[low, high], mode="lines", name="change", line=line,
                hovertemplate="change: %{x|%Y-%m-%d}<extra></extra>",
            )  # fmt: skip
        figure.y_axis(row, curve.y, zeroline=False)
        figure.x_axis(row, type="date")
    return figure


def _span(curve: DatedPoints) -> tuple[float, float]:
    half = HALF_WIDTH_95 * np.asarray(curve.errors if len(curve.errors) else np.zeros(len(curve.values)), dtype=float)
    values = np.asarray(curve.values, dtype=float)
    return float(np.min(values - half, initial=np.inf)), float(np.max(values + half, initial=-np.inf))


def moment(seconds: float) -> str:
    """Format a date in `seconds` since 1970 for plotly."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True)
class OwnAndPooled:
    """A parameter of a robot, estimated from its own logs and pooled.

    Attributes:
        name: Name of the parameter.
        unit: Unit of the parameter.
        own: Estimate from the robot's own logs.
        own_error: Standard error of `own`.
        pooled: Estimate from all robots of the type.
        error: Standard error of `pooled`.
        mean: Mean of all robots of the type.
    """

    name: str
    unit: str
    own: float
    own_error: float
    pooled: float
    error: float
    mean: float


def own_and_pooled(parameters: Sequence[OwnAndPooled]) -> Figure:
    """Draw own and pooled 95 % intervals of `parameters`, each in a row with its own scale around the type's mean."""
    rows = np.arange(len(parameters), dtype=float)
    own, pooled = (np.array([getattr(p, name) for p in parameters], dtype=float) for name in ("own", "pooled"))
    errors = [
        HALF_WIDTH_95 * np.array([getattr(p, n) for p in parameters], dtype=float) for n in ("own_error", "error")
    ]
    mean = np.array([p.mean for p in parameters], dtype=float)
    away = [np.abs(v - mean) + np.nan_to_num(e) for v, e in ((own, errors[0]), (pooled, errors[1]))]
    scale = np.fmax(np.nan_to_num(away[0]), np.nan_to_num(away[1]))
    scale = np.where(scale > 0.0, scale, 1.0)
    figure = Figure(_ROW * len(parameters) + 130)
    traces = ((own, errors[0], "own logs alone", GREY, -0.17), (pooled, errors[1], "pooled", BLUE, 0.17))
    for values, half, name, colour, shift in traces:
        known = np.isfinite(values)
        texts = [
            f"{p.name}, {name}: {v:.5g} ± {h:.2g} {p.unit}" for p, v, h in zip(parameters, values, half, strict=True)
        ]
        figure.add(
            "scatter", x=rounded(((values - mean) / scale)[known]), y=rounded((rows + shift)[known]), mode="markers",
            name=f"{name}, 95 % interval", marker={"color": colour, "size": 6},
            error_x={
                "type": "data", "array": rounded((half / scale)[known]), "color": colour, "thickness": 1.4, "width": 3,
            },
            customdata=[t for t, k in zip(texts, known, strict=True) if k],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    figure.x_axis(title="deviation from the type's mean, each on its own scale [1]", range=[-1.08, 1.08], zeroline=True)
    labels = [_short(f"{p.name} [{p.unit}]", 26) for p in parameters]
    figure.y_axis(tickvals=rows, ticktext=labels, range=[len(parameters) - 0.5, -0.5], zeroline=False)
    return figure
