"""Measured and predicted torque over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.decimate import decimate, share
from steelyard.report.palette import MEASURED, PREDICTED
from steelyard.report.plots.figure import by_joint, panels, units


def torque_measured_predicted(
    t: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
) -> Any:
    """One panel per joint, `(samples, joints)`, time in s."""
    time, n = np.asarray(t, dtype=float), len(joints)
    series = {"measured": by_joint("measured", measured, n), "predicted": by_joint("predicted", predicted, n)}
    named, most = units(unit, n), share(2 * n)
    figure = panels(joints)
    for k in range(n):
        for name, colour, width in (("measured", MEASURED, 1.0), ("predicted", PREDICTED, 1.4)):
            y = series[name][:, k]
            keep = decimate(y, most)
            figure.add_scatter(
                x=time[keep],
                y=y[keep],
                mode="lines",
                name=name,
                legendgroup=name,
                showlegend=k == 0,
                line={"color": colour, "width": width},
                hovertemplate=f"%{{y:.4g}} {named[k]} at %{{x:.3f}} s",
                row=k + 1,
                col=1,
            )
        figure.update_yaxes(title_text=f"torque [{named[k]}]", row=k + 1, col=1)
    figure.update_xaxes(title_text="time [s]", row=n, col=1)
    return figure
