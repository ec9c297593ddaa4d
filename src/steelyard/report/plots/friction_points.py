"""Measured points of friction with error bars, and the law through them with its band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.friction.measure import JointFriction
from steelyard.report.palette import BLUE, VERMILLION
from steelyard.report.plots.figure import panels

_LINE = 200


def friction_points(joints: Sequence[JointFriction], units: Sequence[str]) -> Any:
    """One panel per joint; points are coloured by temperature where it was measured."""
    figure = panels([f"{j.joint}: {j.law.law.name}" for j in joints], shared=False, height=230)
    for k, (joint, unit) in enumerate(zip(joints, units, strict=True)):
        place = {"row": k + 1, "col": 1}
        warm = [p.temperature for p in joint.points]
        marker: dict[str, Any] = {"color": BLUE, "size": 7}
        if joint.law.slopes is not None:
            marker = {"color": warm, "colorscale": "Cividis", "size": 7, "colorbar": {"title": "°C"}}
        bars = {"type": "data", "array": 1.96 * joint.error, "thickness": 1, "color": BLUE}
        figure.add_scatter(
            x=joint.velocity, y=joint.torque, error_y=bars, mode="markers", name="measured, 95 %", marker=marker,
            legendgroup="points", showlegend=k == 0, **place,
        )  # fmt: skip
        for side in (-1.0, 1.0):
            _law(figure, joint, side, k == 0 and side > 0.0, place)
        speed = "m/s" if unit == "N" else "rad/s"
        figure.update_xaxes(title_text=f"velocity [{speed}]", **place)
        figure.update_yaxes(title_text=f"friction [{unit}]", **place)
    return figure


def _law(figure: Any, joint: JointFriction, side: float, named: bool, place: dict[str, int]) -> None:
    """The curve of one direction, so that no line is drawn across the jump at zero."""
    speeds = np.abs(joint.velocity[side * joint.velocity > 0.0])
    if not speeds.size:
        return
    v = side * np.geomspace(max(speeds.min() / 3.0, 1e-4), speeds.max(), _LINE)
    value, band = joint.law(v), 1.96 * joint.law.band(v)
    edge = np.concatenate([value + band, (value - band)[::-1]])
    figure.add_scatter(
        x=np.concatenate([v, v[::-1]]), y=edge, fill="toself", fillcolor="rgba(213,94,0,0.15)", line={"width": 0},
        hoverinfo="skip", showlegend=False, mode="lines", **place,
    )  # fmt: skip
    figure.add_scatter(
        x=v, y=value, mode="lines", name="law, 95 % band", line={"color": VERMILLION, "width": 2.0},
        legendgroup="law", showlegend=named, **place,
    )  # fmt: skip
