"""Thin out long series for plotting without losing what stands out of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# What a browser draws without stutter, and more than a screen has columns.
MOST_POINTS = 4000
# All series of one figure together.
MOST_IN_FIGURE = 24_000


def decimate(y: ArrayLike, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """The indices to keep: the smallest and the largest value of every stretch, and both ends; at most `most`.

    A spike of a single sample survives, which it would not if every k-th sample were kept. Not-a-numbers count as
    neither small nor large.
    """
    values = np.asarray(y, dtype=float)
    n = len(values)
    if n <= most:
        return np.arange(n)
    length = -(-n // max(1, (most - 2) // 2))
    stretches = -(-n // length)
    padded = np.full(stretches * length, np.nan)
    padded[:n] = values
    table = padded.reshape(stretches, length)
    missing = np.isnan(table)
    starts = length * np.arange(stretches)
    low = starts + np.argmin(np.where(missing, np.inf, table), axis=1)
    high = starts + np.argmax(np.where(missing, -np.inf, table), axis=1)
    return np.unique(np.concatenate([[0, n - 1], low, high]).astype(np.int64))


def decimate_over(x: ArrayLike, y: ArrayLike, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """As `decimate`, for a cloud of points: half of them its envelope over x, half a fair sample of its inside."""
    across = np.asarray(x, dtype=float)
    if len(across) <= most:
        return np.arange(len(across))
    order = np.argsort(across, kind="stable")
    envelope = order[decimate(np.asarray(y, dtype=float)[order], most // 2)]
    inside = order[np.linspace(0, len(order) - 1, most // 2).astype(np.int64)]
    return np.unique(np.concatenate([envelope, inside]))


def share(series: int) -> int:
    """How many points each of several series of one figure may have."""
    return int(np.clip(MOST_IN_FIGURE // max(series, 1), 400, MOST_POINTS))
