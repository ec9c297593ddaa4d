"""Scatter of values with error bars, their means, p-values that outliers do not affect, and false discoveries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array

# Median of a squared standard Gaussian.
MEDIAN_SQUARE = 0.45494
# Efficiency of medians, as a part of that many independent squares.
MEDIAN_EFFICIENCY = 0.37


def weighted_mean(z: Array, variance: Array) -> tuple[Array, Array]:
    """Compute the mean of series, weighted by inverse variances, and its variance; 0 and infinite without values.

    Args:
        z: Values, shape (length, series).
        variance: Variances of the values; infinite for missing values.
    """
    total = np.sum(1.0 / variance, axis=0)
    known = total > 0.0
    total = np.where(known, total, 1.0)
    return np.sum(z / variance, axis=0) / total, np.where(known, 1.0 / total, np.inf)


def as_gaussian(T: Array | float, degrees: Array | float) -> Array:
    """Convert Student's T to the Gaussian quantile with the same tail.

    Args:
        T: Values ≥ 0.
        degrees: Degrees of freedom of the values.
    """
    from scipy.special import ndtri, stdtr  # imported here, because the import takes 0.2 s

    return np.asarray(np.minimum(-ndtri(np.maximum(stdtr(degrees, -np.asarray(T)), 1e-300)), 37.0))


def robust_p_values(values: Array, least_scatter: float, least_degrees: float) -> Array:
    """Return the p-values of large values, against median and scatter of all values.

    Args:
        values: The values; series along the first axis; NaN if unknown.
        least_scatter: Smallest standard deviation of the values.
        least_degrees: Smallest number of degrees of freedom.
    """
    from scipy.special import stdtr  # takes a fifth of a second to import

    middle = np.nanmedian(values, axis=0)
    scatter = np.maximum(1.4826 * np.nanmedian(np.abs(values - middle), axis=0), least_scatter)
    return np.asarray(stdtr(max(MEDIAN_EFFICIENCY * len(values), least_degrees), -(values - middle) / scatter))


def false_discovery(p: Array, rate: float) -> NDArray[np.bool_]:
    """Select the tests that are discoveries at a false discovery `rate` (Benjamini & Hochberg 1995).

    Args:
        p: p-values.
        rate: Expected share of false discoveries among all discoveries, 0 to 1.
    """
    order = np.argsort(p)
    enough = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / max(len(p), 1))
    real = np.zeros(len(p), dtype=bool)
    if len(enough):
        real[order[: enough[-1] + 1]] = True
    return real


def significant_changes(evidence: Array, rate: float) -> NDArray[np.bool_]:
    """Select the significant changes, with a limited share of false ones (e-BH).

    Args:
        evidence: Logarithms of e-values, whose reciprocals serve as p-values.
        rate: Expected share of false discoveries; per test, if tests are repeated.
    """
    return false_discovery(np.exp(-np.maximum(evidence, 0.0)), rate)


def excess_variance(squares: Array, known: Array, weight: Array) -> float:
    """Find s ≥ 0 for which squares / (known + weight s) has the median of squared Gaussians.

    The median makes s robust to outliers.

    Args:
        squares: Squares of values with mean 0.
        known: Known parts of the variances of these values.
        weight: Factors of s in these variances.
    """
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
