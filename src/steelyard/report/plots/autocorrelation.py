"""Whether residuals are noise: their correlation with themselves a moment later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array
from steelyard.report.decimate import decimate, share
from steelyard.report.palette import GREY, RESIDUAL
from steelyard.report.plots.figure import by_joint, panels


def autocorrelation(residual: ArrayLike, lags: int) -> Array:
    """ρ_k = Σ r_i r_{i+k} / Σ r_i² of every column, mean removed, for k = 0 … lags: `(lags + 1, joints)`."""
    r = np.asarray(residual, dtype=float)
    r = r - r.mean(axis=0)
    size = 2 * len(r)
    spectrum = np.abs(np.fft.rfft(r, size, axis=0)) ** 2
    products = np.fft.irfft(spectrum, size, axis=0)[: lags + 1]
    rho: Array = products / np.where(products[:1] > 0.0, products[:1], 1.0)
    return rho


def residual_autocorrelation(residual: ArrayLike, rate: float, joints: Sequence[str], longest: float = 0.5) -> Any:
    """One panel per joint, up to `longest` seconds at `rate` Hz, with the 95 % band of white noise, ±1.96/√N."""
    left = by_joint("residual", residual, len(joints))
    samples, n = left.shape
    lags = max(1, min(samples - 1, round(longest * rate)))
    rho = autocorrelation(left, lags)
    seconds = np.arange(lags + 1) / rate
    band = 1.96 / np.sqrt(samples)
    figure = panels(joints, height=130)
    for k in range(n):
        keep = decimate(rho[:, k], share(2 * n))
        place = {"row": k + 1, "col": 1, "showlegend": k == 0}
        edge = np.array([band, band, -band, -band])
        figure.add_scatter(
            x=np.array([0.0, seconds[-1], seconds[-1], 0.0]),
            y=edge,
            mode="lines",
            fill="toself",
            fillcolor="rgba(140,140,140,0.25)",
            line={"color": GREY, "width": 0.5},
            hoverinfo="skip",
            name="white noise, 95 %",
            legendgroup="band",
            **place,
        )
        figure.add_scatter(
            x=seconds[keep],
            y=rho[keep, k],
            mode="lines",
            line={"color": RESIDUAL, "width": 1.5},
            name="residual",
            legendgroup="residual",
            hovertemplate="%{y:.3f} at %{x:.4g} s",
            **place,
        )
        figure.update_yaxes(title_text="corr. [1]", range=[-1.05, 1.05], row=k + 1, col=1)
    figure.update_xaxes(title_text="lag [s]", row=n, col=1)
    return figure
