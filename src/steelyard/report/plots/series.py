"""Series as a figure takes them: checked, thinned out without losing what stands out, and in few digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

# What a browser draws without stutter, and more than a screen has columns.
MOST_POINTS = 4000
# All series of one figure together.
MOST_IN_FIGURE = 24_000
# A screen has some 2,000 columns: steps of this share of a series' range cannot be seen until one zooms in 15 times.
_STEPS = 30_000
_DIGITS = 6


def decimate(y: ArrayLike, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """The indices of `y` to keep: the smallest and the largest value of every stretch, and both ends; at most `most`.

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
    """As `decimate`, for a cloud `x`, `y`: at most `most`, half its envelope over x, half a fair sample inside."""
    across = np.asarray(x, dtype=float)
    if len(across) <= most:
        return np.arange(len(across))
    order = np.argsort(across, kind="stable")
    envelope = order[decimate(np.asarray(y, dtype=float)[order], most // 2)]
    inside = order[np.linspace(0, len(order) - 1, most // 2).astype(np.int64)]
    return np.unique(np.concatenate([envelope, inside]))


def share(series: int) -> int:
    """How many points each of so many `series` of one figure may have."""
    return int(np.clip(MOST_IN_FIGURE // max(series, 1), 400, MOST_POINTS))


def rounded(values: ArrayLike) -> list[float]:
    """`values` in six significant digits: a figure is looked at, and its page is mailed."""
    return [float(f"{value:.{_DIGITS}g}") for value in np.asarray(values, dtype=float).tolist()]


def in_steps(values: ArrayLike) -> list[float]:
    """`values` on a linear axis: as many decimals as their range needs, which takes a third less room."""
    array = np.asarray(values, dtype=float)
    known = array[np.isfinite(array)]
    size = float(known.max() - known.min()) if known.size else 0.0
    if size == 0.0:
        return rounded(array)
    decimals = math.ceil(math.log10(_STEPS / size))
    stepped: list[float] = (np.round(array, decimals) + 0.0).tolist()  # + 0.0 turns -0 into 0
    return stepped


def by_joint(name: str, values: ArrayLike, joints: int) -> Array:
    """The `values` called `name` as `(samples, joints)`, checked; so many `joints`."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 1 and joints == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != joints:
        raise ShapeError(f"{name} has shape {array.shape}; expected (samples, {joints}), one column per joint.")
    return array


def units(given: Sequence[str] | str, joints: int) -> list[str]:
    """One unit for each of `joints` (a number), from what is `given`: one for all, or one each."""
    return [given] * joints if isinstance(given, str) else list(given)


def position_unit(effort: str) -> str:
    """The unit of a joint's position, by that of its torque, `effort`."""
    return "m" if effort == "N" else "rad"
