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


def scan(z: Array, C: Array, t: Array, degrees: float, along: Sequence[Array] = ()) -> ChangePoint | None:
    """Look for a change on any day of a series; None where it is too short.

    Args:
        z: values, `(days,)`.
        C: their covariance but for what is fitted along.
        t: times, rising.
        degrees: of freedom that the size of C is known with.
        along: courses that are fitted along beside a level, such as changes that were found before.
    """
    n = len(z)
    if n < _BEFORE + _AFTER:
        return None
    root = np.linalg.cholesky(C)
    U = np.linalg.solve(root, np.stack([np.ones(n), *along], axis=1))
    Q = np.linalg.qr(U)[0]
    y = np.linalg.solve(root, z)
    y = y - Q @ (Q.T @ y)
    best: tuple[float, bool, int, Array, Array, list[int]] | None = None
    most = 0.0
    families = []
    for ramp in (False, True):
        starts = list(range(0 if ramp else _BEFORE, n - (_RAMP if ramp else _AFTER) + 1))
        raw = _templates(t, starts, ramp)
        F = np.linalg.solve(root, raw)
        whole = np.sum(F**2, axis=0)
        F = F - Q @ (Q.T @ F)
        left = np.sum(F**2, axis=0)
        kept = left > _LEFT * whole
        starts = [s for s, k in zip(starts, kept, strict=True) if k]
        if not starts:
            continue
        length = np.sqrt(left[kept])
        unit = F[:, kept] / length
        T = unit.T @ y
        families.append((ramp, starts, raw[:, kept], length, unit, T))
        most = max(most, float(np.max(np.abs(T))))
    if not families:
        return None
    b = as_gaussian(most, degrees)
    path = np.concatenate([f[4] if not f[0] else f[4][:, ::-1] for f in families], axis=1)
    p_value = _beyond(b, np.sum(path[:, 1:] * path[:, :-1], axis=0))
    for ramp, starts, raw, length, _, T in families:
        k = int(np.argmax(np.abs(T)))
        if best is None or abs(T[k]) > best[0]:
            near = [s for s, value in zip(starts, T, strict=True) if value**2 >= T[k] ** 2 - _DOUBT]
            best = (abs(float(T[k])), ramp, starts[k], raw[:, k], np.array([T[k], length[k]]), near)
    assert best is not None
    _, ramp, start, template, (value, size), near = best
    return ChangePoint(
        min(p_value, 1.0), ramp, start, min(near), max(near), float(value / size), float(1.0 / size), template
    )


def step_statistics(z: Array, C: Array, t: Array) -> tuple[Array, Array]:
    """Student's T of a step on each day that has two before it and two from it on, and the times of these days.

    Args:
        z: values, `(days,)`.
        C: their covariance.
        t: times, rising.
    """
    n = len(z)
    if n < _BEFORE + _AFTER:
        return np.zeros(0), np.zeros(0)
    root = np.linalg.cholesky(C)
    starts = list(range(_BEFORE, n - _AFTER + 1))
    level = np.linalg.solve(root, np.ones(n))
    level = level / np.linalg.norm(level)
    F, y = np.linalg.solve(root, _templates(t, starts, False)), np.linalg.solve(root, z)
    F, y = F - np.outer(level, level @ F), y - level * (level @ y)
    return F.T @ y / np.linalg.norm(F, axis=0), t[starts]


def _templates(t: Array, starts: Sequence[int], ramp: bool) -> Array:
    """0 before, 1 on the last day, `(days, starts)`."""
    begins = t[list(starts)]
    if not ramp:
        return np.where(t[:, None] >= begins, 1.0, 0.0)
    return np.asarray(np.maximum(t[:, None] - begins, 0.0) / np.maximum(t[-1] - begins, 1e-300))


def as_gaussian(T: float, degrees: float) -> float:
    """The Gaussian quantile as rare as a Student's `T` ≥ 0 of so many `degrees` of freedom."""
    from scipy.special import ndtri, stdtr  # takes a fifth of a second to import

    return float(min(-ndtri(max(float(stdtr(degrees, -T)), 1e-300)), 37.0))


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
