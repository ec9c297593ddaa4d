"""Prepares series for figures: checks shapes, thins out samples but keeps extreme values, and rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

# Points of one series: a browser draws them smoothly, and a screen has fewer columns.
MOST_POINTS = 4000
# Points of all series of one figure.
MOST_IN_FIGURE = 24_000
# A series is rounded to this fraction of its range. A screen has about 2,000 columns, so steps show at 15 times zoom.
_STEPS = 30_000
_DIGITS = 6


def decimate(y: ArrayLike, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Select samples: the smallest and the largest value of every interval, and both ends; returns their indices.

    Spikes of a single sample are preserved; NaN is ignored.

    Args:
        y: Values.
        most: Largest number of samples to select.
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
    """Select points of a cloud: half from its envelope over x, half evenly from all; returns their indices.

    Args:
        x: x coordinates.
        y: y coordinates.
        most: Largest number of points to select.
    """
    across = np.asarray(x, dtype=float)
    if len(across) <= most:
        return np.arange(len(across))
    order = np.argsort(across, kind="stable")
    envelope = order[decimate(np.asarray(y, dtype=float)[order], most // 2)]
    inside = order[np.linspace(0, len(order) - 1, most // 2).astype(np.int64)]
    return np.unique(np.concatenate([envelope, inside]))


def share(series: int) -> int:
    """Return the number of points that each of a number of `series` in one figure may have."""
    return int(np.clip(MOST_IN_FIGURE // max(series, 1), 400, MOST_POINTS))


def rounded(values: ArrayLike) -> list[float]:
    """Round `values` to six significant digits, to keep pages small."""
    return [float(f"{value:.{_DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]


def in_steps(values: ArrayLike) -> list[float]:
    """Round `values` of a linear axis to the decimals that their range needs, a third smaller than `rounded`."""
    array = np.asarray(values, dtype=float)
    known = array[np.isfinite(array)]
    size = float(known.max() - known.min()) if known.size else 0.0
    if size == 0.0:
        return rounded(array)
    decimals = math.ceil(math.log10(_STEPS / size))
    stepped: list[float] = (np.round(array, decimals) + 0.0).tolist()  # + 0.0 turns -0 into 0
    return stepped


def by_joint(name: str, values: ArrayLike, joints: int) -> Array:
    """Check a series and return it with shape (samples, joints).

    Args:
        name: Name of the series, for the error message.
        values: Values.
        joints: Number of joints.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 1 and joints == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != joints:
        raise ShapeError(f"{name} has shape {array.shape}; expected (samples, {joints}), one column per joint.")
    return array


def units(unit: Sequence[str] | str, joints: int) -> list[str]:
    """Return one unit per joint.

    Args:
        unit: Unit of all joints, or of each joint.
        joints: Number of joints.
    """
    return [unit] * joints if isinstance(unit, str) else list(unit)


def position_unit(effort: str) -> str:
    """Return the unit of a joint's position from the unit `effort` of its torque."""
    return "m" if effort == "N" else "rad"
