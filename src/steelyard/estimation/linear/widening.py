"""How much wider error bars are than noise explains, from ratios that few degrees of freedom tell.

A handful of blocks of a log says little of each parameter by itself; the mean over all parameters says more. A ratio is
drawn to the mean of its kin (a variance that is shrunk; Smyth 2004).
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.ground.arrays import Array

# The mean of all parameters is believed like this many degrees of freedom more.
DEGREES_OF_MEAN = 8.0


def mean_ratio(ratios: Array, degrees: float) -> float:
    """The mean of `ratios` of so many `degrees` of freedom each, of the logarithms, which a few wild ones do not lead;
    one where there are none."""
    told = ratios[ratios > 0.0]
    return float(np.exp(np.mean(np.log(told))) * log_bias(degrees)) if len(told) else 1.0


def drawn_to_mean(own: Array | float, common: float, degrees: float) -> Array:
    """The ratios `own`, each of so many `degrees` of freedom, drawn to their mean `common`."""
    return np.asarray((degrees * own + DEGREES_OF_MEAN * common) / (degrees + DEGREES_OF_MEAN))


def log_bias(degrees: float) -> float:
    """What the exponential of a mean logarithm of χ²/ν, ν = `degrees`, lacks to one: exp(ln(ν/2) − digamma(ν/2))."""
    x, digamma = 0.5 * degrees, 0.0
    while x < 8.0:  # beyond, the series is exact to 1e-9
        digamma -= 1.0 / x
        x += 1.0
    digamma += math.log(x) - 0.5 / x - 1.0 / (12.0 * x**2) + 1.0 / (120.0 * x**4) - 1.0 / (252.0 * x**6)
    return 0.5 * degrees / math.exp(digamma)


def motion_variance(noise: Array, wander: Array, blocks: int) -> Array:
    """What motions add to the variances that noise explains: parameters change more from block to block than by noise.

    Args:
        noise: variances by noise, one per parameter; zero where a parameter is fixed.
        wander: variances by a jackknife over blocks, noise included; NaN where nothing is known.
        blocks: how many blocks there were.
    """
    told = np.isfinite(wander) & (noise > 0.0) & (wander > 0.0)
    if not np.any(told):
        return np.zeros_like(noise)
    ratio = np.where(told, wander / np.where(noise > 0.0, noise, 1.0), np.nan)
    degrees = float(blocks - 1)
    common = mean_ratio(ratio[told], degrees)
    shrunk = drawn_to_mean(np.where(told, ratio, common), common, degrees)
    return np.asarray(noise * np.maximum(shrunk - 1.0, 0.0))
