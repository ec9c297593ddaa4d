"""Least squares of one right side on a few columns, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients, their standard errors, and the share of the variance that is left."""

    values: Array
    errors: Array
    left: float
    residual: Array


def fit(columns: Array, y: Array) -> Fit:
    """Columns are scaled first; what they do not show gets the value zero and an infinite error.

    Residuals of filtered signals follow one another; errors are as of the number of independent ones.
    """
    lengths = np.linalg.norm(columns, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    U, s, V = np.linalg.svd(columns / scale, full_matrices=False)
    seen = s > 1e-8 * s[0] if len(s) else s > 0.0
    inverse = np.where(seen, 1.0 / np.where(seen, s, 1.0), 0.0)
    values = (V.T * inverse) @ (U.T @ y)
    residual = y - (columns / scale) @ values
    freedom = max(len(y) / memory(residual) - float(np.sum(seen)), 1.0)
    noise = float(residual @ residual) / freedom
    spread = np.sqrt(noise * np.sum((V.T * inverse) ** 2, axis=1))
    hidden = np.sum(V[~seen] ** 2, axis=0) > 1e-3
    total = float(np.sum((y - y.mean()) ** 2))
    left = float(residual @ residual) / total if total > 0.0 else 1.0
    return Fit(values / scale, np.where(hidden | (lengths == 0.0), np.inf, spread / scale), min(left, 1.0), residual)


def memory(residual: Array) -> float:
    """How many residuals in a row count as one: 1 + 2 Σρ up to the first negative correlation."""
    x = residual - residual.mean()
    power = float(x @ x)
    if len(x) < 8 or power == 0.0:
        return 1.0
    size = 1 << (2 * len(x)).bit_length()
    rho = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: len(x) // 4] / power
    end = int(np.argmax(rho < 0.0)) or len(rho)
    return float(max(1.0, 1.0 + 2.0 * rho[1:end].sum()))
