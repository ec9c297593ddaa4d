"""Whether and when a series has changed, with p-values that hold over all dates, and false discoveries among many.

A change is a step or a ramp that begins on some day. Of each the whitened, projected template f gives T = fᵀz/|f|,
Student's where nothing has changed. That the largest |T| of a family of dates exceeds b has a probability of at most

    2 [Φ(−b) + Σ_j min(Φ(−b), arccos(ρ_j)/2π · exp(−b²/2))],

ρ_j the correlation of neighbouring dates: each way up through b is counted (Rice; Efron 1997). Dates that are nearly
the same cost nearly nothing; ramps follow steps, the last of both being neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array

# The median of a squared Gaussian.
MEDIAN_SQUARE = 0.45494
# Days that a change needs before and after it, and a ramp after its beginning.
_BEFORE, _AFTER, _RAMP = 2, 2, 3
# A template of which less than this part (of its square) is left beside what is fitted along cannot be told from it.
_LEFT = 1e-4
# Dates whose fit is this much less good, of squares, may be the true ones (95 %).
_DOUBT = 3.84


@dataclass(frozen=True)
class ChangePoint:
    """The best account of a change in a series.

    Attributes:
        p: how often chance alone would do as much, on any day.
        ramp: whether it grows steadily, from `start` to the last day; else it is a step.
        start: the place of its first day; `first` and `last` are those between which it lies at 95 %.
        size: by how much the last day differs from what was before.
        error: the standard error of this.
        template: its course, 0 before and 1 on the last day.
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
    """Look for a change on any day of series that have the same days; None where they are too short.

    Args:
        z: values, `(series, days)`.
        C: their covariances but for what is fitted along, `(series, days, days)`.
        t: times, rising.
        degrees: of freedom that the size of each C is known with.
        along: courses that are fitted along beside a level, such as changes that were found before.
    """
    n = len(t)
    if n < _BEFORE + _AFTER:
        return [None] * len(z)
    families = [(False, np.arange(_BEFORE, n - _AFTER + 1)), (True, np.arange(0, n - _RAMP + 1))]
    raw = np.concatenate([_templates(t, starts, ramp) for ramp, starts in families], axis=1)
    y, F, left = _projected(z, C, raw, [np.ones(n), *along])
    kept = left > 0.0
    length = np.sqrt(np.where(kept, left, 1.0))
    unit = np.where(kept, 1.0 / length, 0.0)[:, None, :] * F
    T = (y[:, None, :] @ unit)[:, 0]
    most = as_gaussian(np.max(np.abs(T), axis=1, initial=0.0), degrees)
    starts = np.concatenate([own for _, own in families])
    ramps = np.repeat([False, True], [len(own) for _, own in families])
    # Along the path dates are neighbours of dates, and the last step that of the last ramp.
    path = np.argsort(np.where(ramps, 2 * n - starts, starts), kind="stable")
    out: list[ChangePoint | None] = []
    for m in range(len(z)):
        if not kept[m].any():
            out.append(None)
            continue
        along_path = unit[m][:, path[kept[m][path]]]
        p = _beyond(float(most[m]), np.sum(along_path[:, 1:] * along_path[:, :-1], axis=0))
        k = int(np.argmax(np.abs(T[m])))
        near = starts[kept[m] & (ramps == ramps[k]) & (T[m] ** 2 >= T[m, k] ** 2 - _DOUBT)]
        size = float(length[m, k])
        out.append(
            ChangePoint(min(p, 1.0), bool(ramps[k]), int(starts[k]), int(near.min()), int(near.max()),
                        float(T[m, k]) / size, 1.0 / size, raw[:, k])
        )  # fmt: skip
    return out


def step_statistics(z: Array, C: Array, t: Array) -> tuple[Array, Array]:
    """Student's T of a step on each day that has two before it and two from it on, `(series, days)`, and the times of
    these days.

    Args:
        z: values, `(series, days)`.
        C: their covariances.
        t: times, rising.
    """
    n = len(t)
    if n < _BEFORE + _AFTER:
        return np.zeros((len(z), 0)), np.zeros(0)
    starts = np.arange(_BEFORE, n - _AFTER + 1)
    y, F, left = _projected(z, C, _templates(t, starts, False), [np.ones(n)])
    return (y[:, None, :] @ F)[:, 0] / np.sqrt(np.maximum(left, 1e-300)), t[starts]


def _projected(z: Array, C: Array, raw: Array, along: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Values and templates, whitened and without what is fitted `along`, and the squares of these templates: zero of
    those that cannot be told from it."""
    fitted, count = np.stack(along, axis=1), len(along)
    same = np.broadcast_to(np.concatenate([fitted, raw], axis=1), (len(z), len(raw), count + raw.shape[1]))
    white = np.linalg.solve(np.linalg.cholesky(C), np.concatenate([same, z[..., None]], axis=2))
    Q = np.linalg.qr(white[..., :count])[0]
    whole = np.sum(white[..., count:-1] ** 2, axis=1)
    white = white[..., count:] - Q @ (np.swapaxes(Q, 1, 2) @ white[..., count:])
    F = white[..., :-1]
    left = np.sum(F**2, axis=1)
    return white[..., -1], F, np.where(left > _LEFT * whole, left, 0.0)


def _templates(t: Array, starts: NDArray[np.int64], ramp: bool) -> Array:
    """0 before, 1 on the last day, `(days, starts)`."""
    begins = t[starts]
    if not ramp:
        return np.where(t[:, None] >= begins, 1.0, 0.0)
    return np.asarray(np.maximum(t[:, None] - begins, 0.0) / np.maximum(t[-1] - begins, 1e-300))


def as_gaussian(T: Array | float, degrees: Array | float) -> Array:
    """The Gaussian quantile as rare as a Student's `T` ≥ 0 of so many `degrees` of freedom."""
    from scipy.special import ndtri, stdtr  # takes a fifth of a second to import

    return np.asarray(np.minimum(-ndtri(np.maximum(stdtr(degrees, -np.asarray(T)), 1e-300)), 37.0))


def _beyond(b: float, correlations: Array) -> float:
    """How often the largest of a family of |T| exceeds b, at most."""
    tail = 0.5 * math.erfc(b / math.sqrt(2.0))
    turns = np.arccos(np.clip(np.abs(correlations), 0.0, 1.0)) / (2.0 * math.pi) * math.exp(-0.5 * b * b)
    return float(2.0 * (tail + np.sum(np.minimum(turns, tail))))


def false_discovery(p: Array, rate: float) -> NDArray[np.bool_]:
    """Which of many tests are discoveries: of these at most the part `rate` is false, on the average (Benjamini &
    Hochberg 1995).

    Args:
        p: the p-values.
        rate: of false discoveries.
    """
    order = np.argsort(p)
    enough = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / max(len(p), 1))
    real = np.zeros(len(p), dtype=bool)
    if len(enough):
        real[order[: enough[-1] + 1]] = True
    return real


def excess_variance(squares: Array, known: Array, weight: Array) -> float:
    """The variance s ≥ 0 for which `squares` / (`known` + `weight` s) have the median of squared Gaussians: what values
    scatter beyond their errors, whatever a minority of them does."""
    if not len(squares) or np.median(squares / np.maximum(known, 1e-300)) <= MEDIAN_SQUARE:
        return 0.0
    low, high = 0.0, float(np.max(squares / np.maximum(weight, 1e-300))) / MEDIAN_SQUARE
    for _ in range(40):
        middle = 0.5 * (low + high)
        if np.median(squares / (known + weight * middle)) > MEDIAN_SQUARE:
            low = middle
        else:
            high = middle
    return high
