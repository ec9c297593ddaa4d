"""Widens error bars for model errors, from variance ratios with few degrees of freedom.

A few blocks of a log say little about a single parameter; the mean over all parameters is better known. So each ratio
is shrunk towards the mean (Smyth 2004).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from steelyard.ground.arrays import Array

# Weight of the mean of all parameters in degrees of freedom.
DEGREES_OF_MEAN = 8.0


def mean_ratio(ratios: Array, degrees: Array | float) -> Array:
    """Compute the mean of variance ratios from their logarithms, which outliers affect little; one without ratios.

    Args:
        ratios: The ratios, along the last axis; only positive ones count.
        degrees: Degrees of freedom of each.
    """
    positive = ratios > 0.0
    logs = np.log(np.where(positive, ratios, 1.0)).sum(axis=-1) / np.maximum(positive.sum(axis=-1), 1)
    bias = np.vectorize(log_bias, otypes=[float])(degrees)
    return np.where(positive.any(axis=-1), np.exp(logs) * bias, 1.0)


def shrink_to_mean(own: Array | float, common: Array | float, degrees: Array | float) -> Array:
    """Shrink variance ratios towards their mean.

    Args:
        own: The ratios.
        common: Mean of the ratios.
        degrees: Degrees of freedom of each ratio.
    """
    return np.asarray((degrees * own + DEGREES_OF_MEAN * common) / (degrees + DEGREES_OF_MEAN))


def widening_factor(own: Array | float, common: Array | float, degrees: Array | float) -> Array:
    """Return the factors that widen variances of noise: ratios shrunk to their mean, at least 1.

    Args:
        own: The ratios.
        common: Mean of the ratios.
        degrees: Degrees of freedom of each ratio.
    """
    return np.maximum(shrink_to_mean(own, common, degrees), 1.0)


@cache
def log_bias(degrees: float) -> float:
    """Compute the bias correction of the mean logarithm of χ²/ν, ν = `degrees`: exp(ln(ν/2) − digamma(ν/2))."""
    x, digamma = 0.5 * degrees, 0.0
    while x < 8.0:  # above 8 the series is accurate to 1e-9
        digamma -= 1.0 / x
        x += 1.0
    digamma += math.log(x) - 0.5 / x - 1.0 / (12.0 * x**2) + 1.0 / (120.0 * x**4) - 1.0 / (252.0 * x**6)
    return 0.5 * degrees / math.exp(digamma)


def motion_variance(noise: Array, wander: Array, blocks: int) -> Array:
    """Compute the variances that model errors add to those of noise, from the scatter between blocks.

    Args:
        noise: Variances from noise, one per parameter; zero for fixed parameters.
        wander: Variances from a jackknife over blocks, including noise; NaN if unknown.
        blocks: Number of blocks.
    """
    positive = np.isfinite(wander) & (noise > 0.0) & (wander > 0.0)
    if not np.any(positive):
        return np.zeros_like(noise)
    ratio = np.where(positive, wander / np.where(noise > 0.0, noise, 1.0), np.nan)
    degrees = float(blocks - 1)
    common = mean_ratio(ratio[positive], degrees)
    return np.asarray(noise * (widening_factor(np.where(positive, ratio, common), common, degrees) - 1.0))
