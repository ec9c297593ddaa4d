"""Figures of a fleet: robots by joints in colours, days with error bars, a robot between its own logs and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.plots.figure import AROUND_ZERO, BLUE, GREY, VERMILLION, Figure
from steelyard.report.plots.series import rounded

_CELL, _AROUND = 30, 150  # pixels of a joint in a map, and around all of them
_ROW = 24  # pixels of a parameter
_WIDTH = 1.96  # half of a 95 % interval, in standard errors


def fleet_map(
    robots: Sequence[str],
    joints: Sequence[str],
    values: ArrayLike,
    said: Sequence[Sequence[str]],
    legend: str,
    end: float,
    ticks: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Robots across, joints down; what is nothing special has no colour.

    Args:
        robots: names, in order.
        joints: names.
        values: by joint and robot, around 0; not a number where nothing is known.
        said: what each cell says when it is pointed at.
        legend: what the colours mean, with the unit.
        end: the value at which colours end, on both sides.
        ticks: values and words beside the colours; none: plotly's own.
    """
    figure = Figure(_AROUND + _CELL * len(joints))
    names = [_short(robot) for robot in robots]
    if len(set(names)) < len(names):
        names = [f"{k} {name}" for k, name in enumerate(names, start=1)]
    bar: dict[str, Any] = {  # above the map: beside it, it would take a phone's whole width
        "title": {"text": legend, "side": "top"}, "orientation": "h", "x": 0.0, "xanchor": "left", "y": 1.0,
        "yanchor": "bottom", "thickness": 10, "len": 0.6, "outlinewidth": 0,
    }  # fmt: skip
    if ticks:
        bar |= {"tickmode": "array", "tickvals": [x for x, _ in ticks], "ticktext": [word for _, word in ticks]}
    z = [[None if not np.isfinite(x) else float(f"{x:.3g}") for x in row] for row in np.asarray(values, dtype=float)]
    figure.add(
        "heatmap", x=names, y=list(range(len(joints))), z=z, zmin=-end, zmax=end,
        colorscale=AROUND_ZERO, colorbar=bar, text=[list(row) for row in said], xgap=1 if len(robots) <= 80 else 0,
        ygap=1, hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    # Of a category's names plotly writes as many as there is room for.
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
    """Points over dates: a `title` and what `y` is with its unit; `dates` in seconds since 1970, `values` with standard
    `errors`; `since` are dates of changes, and `level` the mean of the kin (None: none is drawn)."""

    title: str
    y: str
    dates: Sequence[float]
    values: Sequence[float]
    errors: Sequence[float]
    since: Sequence[float] = ()
    level: float | None = None


def date_curves(curves: Sequence[DatedPoints], name: str = "a day, 95 % interval", joints: bool = False) -> Figure:
    """A panel for each of `curves`, over one axis of dates; the legend calls a point `name`. Those of `joints` stand
    small and beside each other."""
    made = Figure.by_joint if joints else Figure.panels
    figure = made([curve.title for curve in curves], height=190 if len(curves) > 1 else 300)
    for row, curve in enumerate(curves, start=1):
        days = [moment(t) for t in curve.dates]
        half = rounded(_WIDTH * np.asarray(curve.errors, dtype=float)) if len(curve.errors) else None
        figure.add(
            "scatter", row, x=days, y=rounded(curve.values), mode="markers", name=name,
            marker={"color": BLUE, "size": 6},
            error_y=None if half is None else {"type": "data", "array": half, "thickness": 1, "color": BLUE},
            hovertemplate="%{x|%Y-%m-%d}: %{y:.4g}<extra></extra>",
        )  # fmt: skip
        if curve.level is not None and days:
            line = {"color": GREY, "width": 1.5, "dash": "dot"}
            ends = [days[0], days[-1]]
            figure.add("scatter", row, x=ends, y=[curve.level] * 2, mode="lines", name="mean of its kin", line=line)
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
    half = _WIDTH * np.asarray(curve.errors if len(curve.errors) else np.zeros(len(curve.values)), dtype=float)
    values = np.asarray(curve.values, dtype=float)
    return float(np.min(values - half, initial=np.inf)), float(np.max(values + half, initial=-np.inf))


def moment(seconds: float) -> str:
    """A date in `seconds` since 1970 as plotly reads it."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M")


@dataclass(frozen=True)
class Between:
    """A parameter of a robot: its `name` and `unit`, what the robot's `own` logs say of it, what it is `pooled`, each
    with its standard error, and the `mean` of its kin."""

    name: str
    unit: str
    own: float
    own_error: float
    pooled: float
    error: float
    mean: float


def own_and_pooled(parameters: Sequence[Between]) -> Figure:
    """One row for each of `parameters`, on a scale of its own around the mean of its kin: 95 % intervals of the robot's
    own logs and of all together."""
    rows = np.arange(len(parameters), dtype=float)
    own, pooled = (np.array([getattr(p, name) for p in parameters], dtype=float) for name in ("own", "pooled"))
    errors = [_WIDTH * np.array([getattr(p, n) for p in parameters], dtype=float) for n in ("own_error", "error")]
    mean = np.array([p.mean for p in parameters], dtype=float)
    away = [np.abs(v - mean) + np.nan_to_num(e) for v, e in ((own, errors[0]), (pooled, errors[1]))]
    scale = np.fmax(np.nan_to_num(away[0]), np.nan_to_num(away[1]))
    scale = np.where(scale > 0.0, scale, 1.0)
    figure = Figure(_ROW * len(parameters) + 130)
    traces = ((own, errors[0], "own logs alone", GREY, -0.17), (pooled, errors[1], "with its kin", BLUE, 0.17))
    for values, half, name, colour, shift in traces:
        known = np.isfinite(values)
        words = [
            f"{p.name}, {name}: {v:.5g} ± {h:.2g} {p.unit}" for p, v, h in zip(parameters, values, half, strict=True)
        ]
        figure.add(
            "scatter", x=rounded(((values - mean) / scale)[known]), y=rounded((rows + shift)[known]), mode="markers",
            name=f"{name}, 95 % interval", marker={"color": colour, "size": 6},
            error_x={
                "type": "data", "array": rounded((half / scale)[known]), "color": colour, "thickness": 1.4, "width": 3,
            },
            customdata=[w for w, k in zip(words, known, strict=True) if k],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    figure.x_axis(title="from the mean of its kin, each on its own scale [1]", range=[-1.08, 1.08], zeroline=True)
    labels = [_short(f"{p.name} [{p.unit}]", 26) for p in parameters]
    figure.y_axis(tickvals=rows, ticktext=labels, range=[len(parameters) - 0.5, -0.5], zeroline=False)
    return figure
