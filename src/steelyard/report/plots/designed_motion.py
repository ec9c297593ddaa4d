"""A designed motion: joints over time beside their limits, torques beside theirs, and where the tool goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.decimate import decimate, share
from steelyard.report.palette import BLUE, GREEN, ORANGE, VERMILLION
from steelyard.report.plots.figure import arrange, by_joint, panels, units


def joint_motion(t: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, limits: Any, joints: Sequence[str]) -> Any:
    """One panel per joint: position, velocity and acceleration as shares of their limits, so that one scale serves."""
    time, n = np.asarray(t, dtype=float), len(joints)
    half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
    scaled = {
        "position": ((by_joint("q", q, n) - middle) / half, BLUE),
        "velocity": (by_joint("dq", dq, n) / limits.dq, VERMILLION),
        "acceleration": (by_joint("ddq", ddq, n) / limits.ddq, GREEN),
    }
    figure = panels(joints, height=150)
    for k in range(n):
        for name, (table, colour) in scaled.items():
            _line(figure, time, 100.0 * np.nan_to_num(table[:, k]), name, colour, k, share(3 * n), "%")
        _bounds(figure, k, 100.0)
        figure.update_yaxes(title_text="% of limit", row=k + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=n, col=1)
    return figure


def torque_limits(t: ArrayLike, tau: ArrayLike, limits: Array, joints: Sequence[str], unit: Sequence[str] | str) -> Any:
    """One panel per joint: the torque that the nominal model needs, and what the drive allows."""
    time, n = np.asarray(t, dtype=float), len(joints)
    table, named = by_joint("tau", tau, n), units(unit, n)
    figure = panels(joints, height=150)
    for k in range(n):
        _line(figure, time, table[:, k], "torque", BLUE, k, share(n), named[k])
        if np.isfinite(limits[k]):
            _bounds(figure, k, float(limits[k]))
        figure.update_yaxes(title_text=f"torque [{named[k]}]", row=k + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=n, col=1)
    return figure


def workspace_coverage(places: ArrayLike) -> Any:
    """The way of the last joint's origin `(samples, 3)`, from above and from the side."""
    p = np.asarray(places, dtype=float)
    figure = panels(["from above", "from the side"], shared=False, height=320)
    for row, (a, b) in enumerate(((0, 1), (0, 2)), start=1):
        figure.add_scatter(
            x=p[:, a], y=p[:, b], mode="lines", line={"color": BLUE, "width": 1.2}, name="way of the last link",
            legendgroup="way", showlegend=row == 1, row=row, col=1, hovertemplate="%{x:.3f}, %{y:.3f} m",
        )  # fmt: skip
        figure.add_scatter(
            x=[p[0, a]], y=[p[0, b]], mode="markers", marker={"color": ORANGE, "size": 9}, name="start",
            legendgroup="start", showlegend=row == 1, row=row, col=1,
        )  # fmt: skip
        figure.update_xaxes(title_text="x [m]", row=row, col=1)
        anchor = "x" if row == 1 else f"x{row}"
        figure.update_yaxes(title_text=f"{'xyz'[b]} [m]", scaleanchor=anchor, row=row, col=1)
    return figure


def search_history(history: Sequence[tuple[int, float]], label: str) -> Any:
    """The best value so far over the evaluations that it took."""
    from plotly.graph_objects import Figure

    figure = Figure()
    n, value = [h[0] for h in history], [h[1] for h in history]
    figure.add_scatter(x=n, y=value, mode="lines+markers", line={"color": BLUE, "shape": "hv"}, name="best so far")
    arrange(figure, 320)
    if min(value) > 0.0 and max(value) > 5.0 * min(value):
        figure.update_yaxes(type="log")
    figure.update_yaxes(title_text=label)
    figure.update_xaxes(title_text="evaluations")
    return figure


def _line(figure: Any, t: Array, y: Array, name: str, colour: str, k: int, most: int, unit: str) -> None:
    keep = decimate(y, most)
    figure.add_scatter(
        x=np.round(t[keep], 4),
        y=np.round(y[keep], 4),
        mode="lines",
        name=name,
        legendgroup=name,
        showlegend=k == 0,
        line={"color": colour, "width": 1.3},
        hovertemplate=f"%{{y:.4g}} {unit} at %{{x:.3f}} s",
        row=k + 1,
        col=1,
    )


def _bounds(figure: Any, k: int, size: float) -> None:
    for sign in (-1.0, 1.0):
        figure.add_hline(y=sign * size, line={"color": ORANGE, "width": 1.2, "dash": "dash"}, row=k + 1, col=1)
