"""What is left of the torque when the prediction is taken away, over time, velocity or position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.decimate import decimate, decimate_over, share
from steelyard.report.palette import RESIDUAL
from steelyard.report.plots.figure import by_joint, panels, units

Over = Literal["time", "velocity", "position"]
_UNITS = {"time": {"rad": "s", "m": "s"}, "velocity": {"rad": "rad/s", "m": "m/s"}}


def residuals(
    x: ArrayLike,
    residual: ArrayLike,
    joints: Sequence[str],
    over: Over = "time",
    unit: Sequence[str] | str = "N m",
) -> Any:
    """One panel per joint. `x` is the time `(samples,)`, or the joints' velocities or positions `(samples, joints)`.

    `unit` is that of the torque, by joint: N m for a joint that turns, N for one that slides.
    """
    n, named = len(joints), units(unit, len(joints))
    left = by_joint("residual", residual, n)
    across = np.asarray(x, dtype=float)
    across = np.repeat(across[:, None], n, axis=1) if across.ndim == 1 and over == "time" else by_joint("x", across, n)
    most = share(n)
    figure = panels(joints, shared=over == "time")
    for k in range(n):
        a, y = across[:, k], left[:, k]
        keep = decimate(y, most) if over == "time" else decimate_over(a, y, most)
        along = _UNITS.get(over, {}).get("m" if named[k] == "N" else "rad", "m" if named[k] == "N" else "rad")
        figure.add_scatter(
            x=a[keep],
            y=y[keep],
            mode="lines" if over == "time" else "markers",
            name="residual",
            legendgroup="residual",
            showlegend=k == 0,
            line={"color": RESIDUAL, "width": 1.0},
            marker={"color": RESIDUAL, "size": 3, "opacity": 0.5},
            hovertemplate=f"%{{y:.4g}} {named[k]} at %{{x:.4g}} {along}",
            row=k + 1,
            col=1,
        )
        figure.update_yaxes(title_text=f"residual [{named[k]}]", row=k + 1, col=1)
        if over != "time" or k == n - 1:
            figure.update_xaxes(title_text=f"{over} [{along}]", row=k + 1, col=1)
    return figure
