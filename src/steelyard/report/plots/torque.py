"""Measured and predicted torque, and what is left: over time, velocity or position, and whether it is noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.plots.figure import GREY, MEASURED, PREDICTED, RESIDUAL, Figure
from steelyard.report.plots.series import by_joint, decimate, decimate_over, in_steps, position_unit, share, units

Over = Literal["time", "velocity", "position"]


def torque_measured_predicted(
    t: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
) -> Figure:
    """A panel for each of `joints`: `measured` and `predicted` torque `(samples, joints)` in `unit`, over `t` (s)."""
    time, n = np.asarray(t, dtype=float), len(joints)
    series = {"measured": by_joint("measured", measured, n), "predicted": by_joint("predicted", predicted, n)}
    named, most = units(unit, n), share(2 * n)
    figure = Figure.panels(joints)
    for k in range(n):
        hover = f"%{{y:.4g}} {named[k]} at %{{x:.3f}} s"
        for name, colour, width in (("measured", MEASURED, 1.0), ("predicted", PREDICTED, 1.4)):
            y = series[name][:, k]
            keep = decimate(y, most)
            figure.line(k + 1, time[keep], y[keep], name, colour, width, hovertemplate=hover)
        figure.y_axis(k + 1, f"torque [{named[k]}]")
    figure.x_axis(n, "time [s]")
    return figure


def residuals(
    x: ArrayLike,
    residual: ArrayLike,
    joints: Sequence[str],
    over: Over = "time",
    unit: Sequence[str] | str = "N m",
) -> Figure:
    """One panel for each of `joints`: `residual` torque `(samples, joints)` `over` time, velocity or position.

    `x` is the time `(samples,)`, or the joints' velocities or positions `(samples, joints)`. `unit` is that of the
    torque, by joint: N m for a joint that turns, N for one that slides.
    """
    n, named = len(joints), units(unit, len(joints))
    left = by_joint("residual", residual, n)
    across = np.asarray(x, dtype=float)
    across = np.repeat(across[:, None], n, axis=1) if across.ndim == 1 and over == "time" else by_joint("x", across, n)
    most = share(n)
    figure = Figure.panels(joints, shared=over == "time")
    for k in range(n):
        a, y = across[:, k], left[:, k]
        keep = decimate(y, most) if over == "time" else decimate_over(a, y, most)
        place = position_unit(named[k])
        along = {"time": "s", "velocity": f"{place}/s", "position": place}[over]
        figure.add(
            "scatter",
            k + 1,
            x=in_steps(a[keep]),
            y=in_steps(y[keep]),
            mode="lines" if over == "time" else "markers",
            name="residual",
            line={"color": RESIDUAL, "width": 1.0},
            marker={"color": RESIDUAL, "size": 3, "opacity": 0.5},
            hovertemplate=f"%{{y:.4g}} {named[k]} at %{{x:.4g}} {along}",
        )
        figure.y_axis(k + 1, f"residual [{named[k]}]")
        if over != "time" or k == n - 1:
            figure.x_axis(k + 1, f"{over} [{along}]")
    return figure


def autocorrelation(residual: ArrayLike, lags: int) -> Array:
    """ρ_k = Σ r_i r_{i+k} / Σ r_i² of the columns of `residual`, mean removed, k = 0 … `lags`: `(lags + 1, joints)`."""
    r = np.asarray(residual, dtype=float)
    r = r - r.mean(axis=0)
    size = 1 << (2 * len(r) - 1).bit_length()  # quick to transform, and long enough that nothing wraps around
    spectrum = np.abs(np.fft.rfft(r, size, axis=0)) ** 2
    products = np.fft.irfft(spectrum, size, axis=0)[: lags + 1]
    rho: Array = products / np.where(products[:1] > 0.0, products[:1], 1.0)
    return rho


def residual_autocorrelation(residual: ArrayLike, rate: float, joints: Sequence[str], longest: float = 0.5) -> Figure:
    """One panel for each of `joints`, of `residual` `(samples, joints)`, with the 95 % band of white noise, ±1.96/√N.
    Up to `longest` seconds at `rate` Hz."""
    left = by_joint("residual", residual, len(joints))
    samples, n = left.shape
    lags = max(1, min(samples - 1, round(longest * rate)))
    rho = autocorrelation(left, lags)
    seconds = np.arange(lags + 1) / rate
    band = 1.96 / np.sqrt(samples)
    ends, edge = np.array([0.0, seconds[-1], seconds[-1], 0.0]), np.array([band, band, -band, -band])
    filled = {"fill": "toself", "fillcolor": "rgba(140,140,140,0.25)", "hoverinfo": "skip"}
    figure = Figure.panels(joints, height=130)
    for k in range(n):
        keep = decimate(rho[:, k], share(2 * n))
        figure.line(k + 1, ends, edge, "white noise, 95 %", GREY, 0.5, **filled)
        hover = "%{y:.3f} at %{x:.4g} s"
        figure.line(k + 1, seconds[keep], rho[keep, k], "residual", RESIDUAL, 1.5, hovertemplate=hover)
        figure.y_axis(k + 1, "corr. [1]", range=[-1.05, 1.05])
    figure.x_axis(n, "lag [s]")
    return figure
