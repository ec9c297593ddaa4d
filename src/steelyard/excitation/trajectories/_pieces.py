"""Piecewise polynomials: derivatives, and bounds at all times."""

from __future__ import annotations

from functools import lru_cache
from math import comb, factorial
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array

# Number of parts of a piece for its bounds: the hull is then too wide by less than 0.1 % of the motion's range.
_PARTS = 64


def evaluate(breaks: Array, table: Array, t: Array, derivative: int) -> Array:
    """Return derivatives at times t of the columns of `table` (pieces, degree + 1, columns).

    Piece i is Σ_k table[i, k] u^k with u = (t − breaks[i])/(breaks[i + 1] − breaks[i]), which runs from 0 to 1.
    Before the first break and after the last one the motion is at rest.
    """
    lengths = np.diff(breaks)
    piece = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(lengths) - 1)
    u = np.clip((t - breaks[piece]) / lengths[piece], 0.0, 1.0)
    factors, powers = _derivative(table.shape[1], derivative)
    weights = factors * u[:, None] ** powers / lengths[piece, None] ** derivative
    if derivative:
        # A last sample just after the end, due to rounding, belongs to the motion.
        hair = 1e-9 * (breaks[-1] - breaks[0])
        weights[(t < breaks[0] - hair) | (t > breaks[-1] + hair)] = 0.0
    values: Array = np.einsum("sk,skc->sc", weights, table[piece])
    return values


def taylor(spline: Any, breaks: Array) -> Array:
    """Return the pieces of a SciPy B-spline whose knots are `breaks`, shape (pieces, degree + 1, columns)."""
    lengths = np.diff(breaks)
    terms = [spline(breaks[:-1], nu=k) * lengths[:, None] ** k / factorial(k) for k in range(spline.k + 1)]
    return np.stack(terms, axis=1)


def extent(breaks: Array, coefficients: Array, derivative: int) -> tuple[float, float]:
    """Return bounds of the smallest and largest value of the pieces `coefficients` (pieces, degree + 1)."""
    low, high = piece_extents(breaks, coefficients[..., None], derivative)
    return float(low.min()), float(high.max())


def piece_extents(breaks: Array, table: Array, derivative: int) -> tuple[Array, Array]:
    """Return bounds of every piece and column of `table` (pieces, degree + 1, columns), shape (pieces, columns) each.

    A polynomial is within the hull of its Bernstein coefficients. The error of the hull decreases with the square of
    the parts' length, and the hull always contains the polynomial.
    """
    factors, _ = _derivative(table.shape[1], derivative)
    derived = (table * factors[:, None])[:, derivative:] / np.diff(breaks)[:, None, None] ** derivative
    if derived.shape[1] == 0:
        none = np.zeros((len(table), table.shape[2]))
        return none, none
    hull = np.einsum("bk,pkc->pbc", _bernstein_of_parts(derived.shape[1] - 1), derived, optimize=True)
    # Rounding of sums of a few terms is some units in the last place of the largest term.
    slack = 1e-14 * np.abs(derived).sum(axis=1).max()
    return hull.min(axis=1) - slack, hull.max(axis=1) + slack


def refine(breaks: Array, table: Array, finer: Array) -> Array:
    """Return the same motion on finer breaks, which include its own; at rest before its start and after its end."""
    out = np.zeros((len(finer) - 1, *table.shape[1:]))
    middles = (finer[:-1] + finer[1:]) / 2.0
    piece = np.searchsorted(breaks, middles, side="right") - 1
    inside = (piece >= 0) & (piece < len(table))
    out[piece >= len(table), 0] = table[-1].sum(axis=0)
    out[piece < 0, 0] = table[0, 0]
    i = piece[inside]
    start = (finer[:-1][inside] - breaks[i]) / (breaks[i + 1] - breaks[i])
    share = (finer[1:] - finer[:-1])[inside] / (breaks[i + 1] - breaks[i])
    terms = table.shape[1]
    # (start + share·u)^k = Σ_m C(k, m) start^(k − m) share^m u^m
    shift = np.zeros((len(i), terms, terms))
    for k in range(terms):
        for m in range(k + 1):
            shift[:, m, k] = comb(k, m) * start ** (k - m) * share**m
    out[inside] = shift @ table[i]
    return out


def _derivative(terms: int, derivative: int) -> tuple[Array, Array]:
    """Return factors and powers of the derivative of u^0, u^1, …; vanishing terms have factor 0."""
    k = np.arange(terms)
    factors = np.ones(terms)
    for step in range(derivative):
        factors = factors * np.maximum(k - step, 0)
    return factors, np.maximum(k - derivative, 0).astype(float)


@lru_cache
def _bernstein_of_parts(degree: int) -> Array:
    """Return the map from powers of u on [0, 1] to Bernstein coefficients of each part.

    It has shape (parts·(degree + 1), degree + 1).
    """
    k = range(degree + 1)
    # u^k = Σ_j C(j, k)/C(n, k) B_j(u)
    bernstein = np.array([[comb(j, i) / comb(degree, i) for i in k] for j in k])
    blocks = []
    for part in range(_PARTS):
        start, length = part / _PARTS, 1.0 / _PARTS
        # (start + length·s)^i = Σ_m C(i, m) start^(i − m) length^m s^m
        shift = np.array([[comb(i, m) * start ** (i - m) * length**m if m <= i else 0.0 for i in k] for m in k])
        blocks.append(bernstein @ shift)
    return np.vstack(blocks)
