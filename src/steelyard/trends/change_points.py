"""Change-point tests of whole time series, with p-values over all dates.

A change is a step or a ramp that starts on some day. Its whitened, projected template f gives T = fᵀz/|f|, which has
Student's distribution without a change. The largest |T| of a family of dates exceeds b with a probability of at most

    2 [Φ(−b) + Σ_j min(Φ(−b), arccos(ρ_j)/2π · exp(−b²/2))]

with the correlation ρ_j of neighbouring dates: the sum counts the upcrossings of b (Rice; Efron 1997). Nearly equal
dates add almost nothing. Ramps follow steps, and the last step is a neighbour of the last ramp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.trends.series_statistics import as_gaussian

# Number of days that a change needs before and after it, and that a ramp needs from its start.
_BEFORE, _AFTER, _RAMP = 2, 2, 3
# Smallest part of a template's square that must remain after projection; below it the template is not identifiable.
_MIN_REMAINDER = 1e-4
# Decrease of T² that bounds the 95 % interval of the date.
_DATE_INTERVAL = 3.84


@short_repr
@dataclass(frozen=True)
class ChangePoint:
    """The most likely change in a series.

    Attributes:
        p: p-value over all days.
        ramp: True for steady growth from `start` to the last day, False for a step.
        start: Index of the first day of the change.
        first: Lower end of the 95 % interval of `start`.
        last: Upper end of this interval.
        size: Difference between the last day and the level before the change.
        error: Standard error of the size.
        template: Shape of the change over time: 0 before it and 1 on the last day.
    """

    p: float
    ramp: bool
    start: int
    first: int
    last: int
    size: float
    error: float
    template: Array


def scan(z: Array, C: Array, t: Array, degrees: Array, along: Sequence[Array] = ()) -> list[ChangePoint | None]:
    """Find the most likely change in each of several series with the same days; None where they are too short.

    Args:
        z: Values, shape (series, days).
        C: Covariances of the values around the level and the fitted courses `along`, shape (series, days, days).
        t: Times, increasing.
        degrees: Degrees of freedom of the size of each C.
        along: Courses that are fitted in addition to a level, such as earlier changes.
    """
    n = len(t)
    if n < _BEFORE + _AFTER:
        return [None] * len(z)
    families = [(False, np.arange(_BEFORE, n - _AFTER + 1)), (True, np.arange(0, n - _RAMP + 1))]
    raw = np.concatenate([change_template(t, t[starts], ramp) for ramp, starts in families], axis=1)
    y, F, left = _projected(z, C, raw, [np.ones(n), *along])
    kept = left > 0.0
    length = np.sqrt(np.where(kept, left, 1.0))
    unit = np.where(kept, 1.0 / length, 0.0)[:, None, :] * F
    T = (y[:, None, :] @ unit)[:, 0]
    most = as_gaussian(np.max(np.abs(T), axis=1, initial=0.0), degrees)
    starts = np.concatenate([own for _, own in families])
    ramps = np.repeat([False, True], [len(own) for _, own in families])
    # Order of the templates for the bound: steps by date, then ramps by decreasing date, so neighbours are correlated.
    path = np.argsort(np.where(ramps, 2 * n - starts, starts), kind="stable")
    out: list[ChangePoint | None] = []
    for m in range(len(z)):
        if not kept[m].any():
            out.append(None)
            continue
        along_path = unit[m][:, path[kept[m][path]]]
        p = _beyond(float(most[m]), np.sum(along_path[:, 1:] * along_path[:, :-1], axis=0))
        k = int(np.argmax(np.abs(T[m])))
        near = starts[kept[m] & (ramps == ramps[k]) & (T[m] ** 2 >= T[m, k] ** 2 - _DATE_INTERVAL)]
        size = float(length[m, k])
        out.append(
            ChangePoint(min(p, 1.0), bool(ramps[k]), int(starts[k]), int(near.min()), int(near.max()),
                        float(T[m, k]) / size, 1.0 / size, raw[:, k])
        )  # fmt: skip
    return out


def step_statistics(z: Array, C: Array, t: Array) -> tuple[Array, Array]:
    """Compute Student's T of a step on each possible day, shape (series, days), and the times of these days.

    A step needs two days before it, and two days from it on.

    Args:
        z: Values, shape (series, days).
        C: Their covariances.
        t: Times, increasing.
    """
    n = len(t)
    if n < _BEFORE + _AFTER:
        return np.zeros((len(z), 0)), np.zeros(0)
    starts = np.arange(_BEFORE, n - _AFTER + 1)
    y, F, left = _projected(z, C, change_template(t, t[starts], False), [np.ones(n)])
    return (y[:, None, :] @ F)[:, 0] / np.sqrt(np.maximum(left, 1e-300)), t[starts]


def _projected(z: Array, C: Array, raw: Array, along: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Whiten values and templates, project out `along`, and compute the templates' squares (0 if not identifiable)."""
    fitted, count = np.stack(along, axis=1), len(along)
    same = np.broadcast_to(np.concatenate([fitted, raw], axis=1), (len(z), len(raw), count + raw.shape[1]))
    white = np.linalg.solve(np.linalg.cholesky(C), np.concatenate([same, z[..., None]], axis=2))
    Q = np.linalg.qr(white[..., :count])[0]
    whole = np.sum(white[..., count:-1] ** 2, axis=1)
    white = white[..., count:] - Q @ (np.swapaxes(Q, 1, 2) @ white[..., count:])
    F = white[..., :-1]
    left = np.sum(F**2, axis=1)
    return white[..., -1], F, np.where(left > _MIN_REMAINDER * whole, left, 0.0)


def change_template(t: Array, begins: Array, ramp: bool) -> Array:
    """Return templates that are 0 before the change and 1 at the last time, shape (times, changes).

    Args:
        t: Times, increasing.
        begins: First time of each step; last time without a change of each ramp.
        ramp: True for linear growth, False for steps.
    """
    if not ramp:
        return np.where(t[:, None] >= begins, 1.0, 0.0)
    return np.asarray(np.maximum(t[:, None] - begins, 0.0) / np.maximum(t[-1] - begins, 1e-300))


def _beyond(b: float, correlations: Array) -> float:
    """Bound the probability that the largest |T| of a family exceeds b."""
    tail = 0.5 * math.erfc(b / math.sqrt(2.0))
    turns = np.arccos(np.clip(np.abs(correlations), 0.0, 1.0)) / (2.0 * math.pi) * math.exp(-0.5 * b * b)
    return float(2.0 * (tail + np.sum(np.minimum(turns, tail))))
