"""Figures of residuals: over time, velocity, position, both, or frequency, and their autocorrelation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.report.plots.figure import AROUND_ZERO, GREY, MEASURED, RESIDUAL, Figure
from steelyard.report.plots.series import by_joint, decimate, decimate_over, in_steps, position_unit, share, units

Over = Literal["time", "velocity", "position"]
# Cells of a map along each axis, and frequencies of a spectrum.
_CELLS, _LINES = 24, 256


def residuals(
    x: ArrayLike,
    residual: ArrayLike,
    joints: Sequence[str],
    over: Over = "time",
    unit: Sequence[str] | str = "N m",
    clock: str = "",
) -> Figure:
    """Draw the residual torque over time, velocity or position, one panel per joint.

    Args:
        x: Times [s], shape (samples,), or velocities or positions, shape (samples, joints).
        residual: Residual torques, shape (samples, joints).
        joints: Names of the joints.
        over: Meaning of `x`.
        unit: Unit of the torques, for all joints or for each: N m for a revolute, N for a prismatic joint.
        clock: Log whose time is the x axis; the page links it to the posture of the robot.
    """
    n, torque_units = len(joints), units(unit, len(joints))
    left = by_joint("residual", residual, n)
    across = np.asarray(x, dtype=float)
    across = np.repeat(across[:, None], n, axis=1) if across.ndim == 1 and over == "time" else by_joint("x", across, n)
    most = share(n)
    figure = Figure.by_joint(joints, shared=over == "time")
    figure.clock = clock
    for k in range(n):
        a, y = across[:, k], left[:, k]
        keep = decimate(y, most) if over == "time" else decimate_over(a, y, most)
        length = position_unit(torque_units[k])
        along = {"time": "s", "velocity": f"{length}/s", "position": length}[over]
        figure.add(
            "scatter",
            k + 1,
            x=in_steps(a[keep]),
            y=in_steps(y[keep]),
            mode="lines" if over == "time" else "markers",
            name="residual",
            line={"color": RESIDUAL, "width": 1.0},
            marker={"color": RESIDUAL, "size": 3, "opacity": 0.5},
            hovertemplate=f"%{{y:.4g}} {torque_units[k]} at %{{x:.4g}} {along}",
        )
        figure.y_axis(k + 1, f"residual [{torque_units[k]}]")
        if over != "time" or k == n - 1:
            figure.x_axis(k + 1, f"{over} [{along}]")
    return figure


def autocorrelation(residual: ArrayLike, lags: int) -> Array:
    """Compute ρ_k = Σ r_i r_{i+k} / Σ r_i² of each column after its mean is removed, shape (lags + 1, joints).

    Args:
        residual: Residuals, shape (samples, joints).
        lags: Largest k [samples].
    """
    r = np.asarray(residual, dtype=float)
    r = r - r.mean(axis=0)
    size = 1 << (2 * len(r) - 1).bit_length()  # a power of two for speed, long enough to avoid wrap-around
    spectrum = np.abs(np.fft.rfft(r, size, axis=0)) ** 2
    products = np.fft.irfft(spectrum, size, axis=0)[: lags + 1]
    rho: Array = products / np.where(products[:1] > 0.0, products[:1], 1.0)
    return rho


def residual_autocorrelation(residual: ArrayLike, rate: float, joints: Sequence[str], longest: float = 0.5) -> Figure:
    """Draw the autocorrelation of the residuals and the 95 % band of white noise, ±1.96/√N, one panel per joint.

    Args:
        residual: Residuals, shape (samples, joints).
        rate: Sampling rate [Hz].
        joints: Names of the joints.
        longest: Largest lag [s].
    """
    left = by_joint("residual", residual, len(joints))
    samples, n = left.shape
    lags = max(1, min(samples - 1, round(longest * rate)))
    rho = autocorrelation(left, lags)
    seconds = np.arange(lags + 1) / rate
    band = HALF_WIDTH_95 / np.sqrt(samples)
    figure = Figure.by_joint(joints, height=130)
    for k in range(n):
        keep = decimate(rho[:, k], share(2 * n))
        figure.band(k + 1, seconds[[0, -1]], [-band, -band], [band, band], "white noise, 95 %", GREY)
        hover = "%{y:.3f} at %{x:.4g} s"
        figure.line(k + 1, seconds[keep], rho[keep, k], "residual", RESIDUAL, 1.5, hovertemplate=hover)
        figure.y_axis(k + 1, "corr. [1]", range=[-1.05, 1.05])
    figure.x_axis(n, "lag [s]")
    return figure


def residual_map(
    position: ArrayLike,
    velocity: ArrayLike,
    residual: ArrayLike,
    joints: Sequence[str],
    unit: Sequence[str] | str = "N m",
) -> Figure:
    """Draw the mean residual over the position and velocity of a joint, one panel per joint.

    Noise gives random colours; areas of one colour show physics that the model lacks.

    Args:
        position: Positions, shape (samples, joints).
        velocity: Velocities, shape (samples, joints).
        residual: Residuals, shape (samples, joints).
        joints: Names of the joints.
        unit: Unit of the residuals, for all joints or for each.
    """
    n, torque_units = len(joints), units(unit, len(joints))
    q, dq, left = (
        by_joint(*series, n) for series in (("position", position), ("velocity", velocity), ("residual", residual))
    )
    figure = Figure.by_joint(joints, shared=False, height=210)
    for k in range(n):
        edges = [np.histogram_bin_edges(x[:, k], _CELLS) for x in (q, dq)]
        counts = np.histogram2d(q[:, k], dq[:, k], bins=edges)[0]
        sums = np.histogram2d(q[:, k], dq[:, k], bins=edges, weights=left[:, k])[0]
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        size = float(np.sqrt(np.mean(left[:, k] ** 2))) or 1.0
        x, y = (0.5 * (e[1:] + e[:-1]) for e in edges)
        length = position_unit(torque_units[k])
        figure.add(
            "heatmap",
            k + 1,
            x=in_steps(x),
            y=in_steps(y),
            z=[[None if np.isnan(v) else float(f"{v:.3g}") for v in row] for row in mean.T],
            zmin=-2.0 * size,
            zmax=2.0 * size,
            colorscale=AROUND_ZERO,
            showscale=False,
            hovertemplate=f"%{{z:.3g}} {torque_units[k]} at %{{x:.3g}} {length}, %{{y:.3g}} {length}/s<extra></extra>",
        )
        figure.x_axis(k + 1, f"position [{length}]")
        figure.y_axis(k + 1, f"velocity [{length}/s]")
    return figure


def residual_spectrum(
    residual: ArrayLike, measured: ArrayLike, rate: float, joints: Sequence[str], unit: Sequence[str] | str = "N m"
) -> Figure:
    """Draw the spectra of the residual and of the measured torque, one panel per joint.

    A peak of the residual shows an effect that the model lacks.

    Args:
        residual: Residuals, shape (samples, joints).
        measured: Measured torques, shape (samples, joints).
        rate: Sampling rate [Hz].
        joints: Names of the joints.
        unit: Unit of both, for all joints or for each.
    """
    n, torque_units = len(joints), units(unit, len(joints))
    series = {
        "measured": (by_joint("measured", measured, n), MEASURED, 0.9),
        "residual": (by_joint("residual", residual, n), RESIDUAL, 1.6),
    }
    figure = Figure.by_joint(joints, height=150)
    for k in range(n):
        for name, (values, colour, width) in series.items():
            hertz, size = _amplitudes(values[:, k], rate)
            hover = f"%{{y:.3g}} {torque_units[k]}/√Hz at %{{x:.3g}} Hz"
            line = {"color": colour, "width": width}
            figure.add(
                "scatter", k + 1, x=in_steps(hertz), y=size, mode="lines", name=name, line=line, hovertemplate=hover
            )
        figure.y_axis(k + 1, f"amplitude [{torque_units[k]}/√Hz]", type="log", exponentformat="power", dtick=1)
    figure.x_axis(n, "frequency [Hz]")
    return figure


def _amplitudes(values: Array, rate: float) -> tuple[Array, Array]:
    """Return frequencies [Hz] and root of the power density: mean of half-overlapping pieces (Welch 1967)."""
    length = min(len(values), 2 * _LINES)
    window = np.hanning(length + 2)[1:-1]
    starts = range(0, len(values) - length + 1, max(length // 2, 1))
    power = np.mean(
        [np.abs(np.fft.rfft(window * (part - part.mean()))) ** 2 for part in (values[s : s + length] for s in starts)],
        axis=0,
    )
    density = 2.0 * power / (rate * np.sum(window**2))
    # The mean is removed, so the value at 0 Hz has no meaning.
    hertz: Array = np.fft.rfftfreq(length, 1.0 / rate)[1:].astype(float)
    return hertz, np.maximum(np.sqrt(density[1:]), 1e-12)
