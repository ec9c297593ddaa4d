"""Figures of torque: measured and predicted over time, and the shares of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.plots.figure import GREY, MEASURED, PREDICTED, SERIES, Figure
from steelyard.report.plots.series import by_joint, decimate, share, units

# Largest number of pauses that are shaded in one panel.
_MOST_PAUSES = 80


def torque_measured_predicted(
    t: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
    band: ArrayLike | None = None,
    standing: ArrayLike | None = None,
    clock: str = "",
) -> Figure:
    """Draw measured and predicted torque over time, one panel per joint.

    Args:
        t: Times [s].
        measured: Measured torques, shape (samples, joints).
        predicted: Predicted torques, shape (samples, joints).
        joints: Names of the joints.
        unit: Unit of the torques, for all joints or for each.
        band: Half the width of the prediction interval, shape (samples, joints); None omits it.
        standing: Whether a joint stands still, shape (samples, joints); None omits the shading.
        clock: Name of the log; the page links its time to the posture of the robot.
    """
    time, n = np.asarray(t, dtype=float), len(joints)
    series = {"predicted": by_joint("predicted", predicted, n), "measured": by_joint("measured", measured, n)}
    torque_units, most = units(unit, n), share(3 * n)
    figure = Figure.by_joint(joints)
    figure.clock = clock
    for k in range(n):
        if standing is not None:
            both = np.concatenate([y[:, k] for y in series.values()])
            shade_standing(figure, k + 1, time, np.asarray(standing)[:, k], (float(both.min()), float(both.max())))
        if band is not None:
            y, wide = series["predicted"][:, k], np.asarray(band, dtype=float)[:, k]
            keep = decimate(y, most // 2)
            figure.band(k + 1, time[keep], (y - wide)[keep], (y + wide)[keep], "95 % band", PREDICTED)
        hover = f"%{{y:.4g}} {torque_units[k]} at %{{x:.3f}} s"
        for name, colour, width in (("predicted", PREDICTED, 2.4), ("measured", MEASURED, 0.9)):
            y = series[name][:, k]
            keep = decimate(y, most)
            figure.line(k + 1, time[keep], y[keep], name, colour, width, hovertemplate=hover)
        figure.y_axis(k + 1, f"torque [{torque_units[k]}]")
    figure.x_axis(n, "time [s]")
    return figure


def shade_standing(figure: Figure, row: int, t: Array, standing: Array, ends: tuple[float, float]) -> None:
    """Shade the longest pauses of a joint.

    Args:
        figure: Figure to draw in.
        row: Row of the panel.
        t: Times [s].
        standing: Whether the joint stands still, by sample.
        ends: Lower and upper edge of the shading.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.asarray(standing, dtype=bool), [False]]).astype(int)))
    spans = sorted(zip(edges[::2], edges[1::2] - 1, strict=True), key=lambda span: t[span[0]] - t[span[1]])
    spans = sorted(span for span in spans[:_MOST_PAUSES] if span[1] > span[0])
    if not spans:
        return
    low, high = ends
    x = np.concatenate([[t[a], t[a], t[b], t[b], np.nan] for a, b in spans])
    figure.area(row, x, np.tile([low, high, high, low, np.nan], len(spans)), "standing", GREY, 0.25)


def torque_shares(parts: Mapping[str, ArrayLike], joints: Sequence[str], unit: Sequence[str] | str = "N m") -> Figure:
    """Draw the share of each part in the torque of a joint [%], one bar per joint.

    Parts may oppose each other, so a share is the mean absolute value relative to the sum over all parts.

    Args:
        parts: Torques by name of the part, shape (samples, joints).
        joints: Names of the joints.
        unit: Unit of the torques, for all joints or for each.
    """
    n, torque_units = len(joints), units(unit, len(joints))
    sizes = {name: np.mean(np.abs(by_joint(name, values, n)), axis=0) for name, values in parts.items()}
    whole = np.maximum(np.sum(list(sizes.values()), axis=0), 1e-300)
    figure = Figure(130 + 26 * n)
    for k, (name, every) in enumerate(sizes.items()):
        size = np.where(every > 1e-9 * whole, every, 0.0)  # rounding errors differ from run to run
        figure.add(
            "bar",
            x=np.round(100.0 * size / whole, 2),
            y=list(joints),
            orientation="h",
            name=name,
            marker={"color": SERIES[k % len(SERIES)]},
            customdata=[f"{value:.3g} {u}" for value, u in zip(size, torque_units, strict=True)],
            hovertemplate=f"{name}: %{{x:.3g}} % (mean %{{customdata}})<extra></extra>",
        )
    figure.layout |= {"barmode": "stack", "bargap": 0.3}
    figure.layout["legend"]["traceorder"] = "normal"
    figure.x_axis(title="share of the torque [%]", range=[0.0, 100.0])
    figure.y_axis(autorange="reversed", ticklabelstandoff=6)
    return figure
