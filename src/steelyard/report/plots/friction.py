"""Friction over velocity: the points that were measured and the curve that was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.decimate import decimate_over, share
from steelyard.report.palette import MEASURED, PREDICTED
from steelyard.report.plots.figure import by_joint, panels, units


def friction_curve(
    velocity: ArrayLike,
    friction: ArrayLike,
    curve_velocity: ArrayLike,
    curve: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
) -> Any:
    """One panel per joint: points `(samples, joints)`, and the model's curve `(points, joints)`."""
    n, named = len(joints), units(unit, len(joints))
    v, f = by_joint("velocity", velocity, n), by_joint("friction", friction, n)
    cv, c = by_joint("curve_velocity", curve_velocity, n), by_joint("curve", curve, n)
    figure = panels(joints, shared=False, height=210)
    for k in range(n):
        keep = decimate_over(v[:, k], f[:, k], share(2 * n))
        order = np.argsort(cv[:, k], kind="stable")
        shown = {"legendgroup": "measured", "showlegend": k == 0, "row": k + 1, "col": 1}
        marker = {"color": MEASURED, "size": 4, "opacity": 0.6}
        figure.add_scatter(x=v[keep, k], y=f[keep, k], mode="markers", name="measured", marker=marker, **shown)
        shown["legendgroup"] = "model"
        line = {"color": PREDICTED, "width": 2.0}
        figure.add_scatter(x=cv[order, k], y=c[order, k], mode="lines", name="model", line=line, **shown)
        speed = "m/s" if named[k] == "N" else "rad/s"
        figure.update_xaxes(title_text=f"velocity [{speed}]", row=k + 1, col=1)
        figure.update_yaxes(title_text=f"friction [{named[k]}]", row=k + 1, col=1)
    return figure
