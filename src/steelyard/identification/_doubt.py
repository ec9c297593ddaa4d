"""Error bars that include what the model does not know: how parameters differ from motion to motion, and by structure.

Noise, even correlated noise, is not all: what friction has and the model has not leans on the parameters, otherwise in
every motion. Fits without one block each (a jackknife) show how far parameters wander from block to block; fits of
structures that predict about as well show how far they hang on the choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.ground.arrays import Array

# Five blocks say little of each parameter by itself: four degrees of freedom. The mean of all parameters is believed
# like this many more (a variance that is shrunk to the mean of its kin; Smyth 2004).
DEGREES_OF_MEAN = 8.0


@dataclass(frozen=True)
class Doubt:
    """Variances of parameters, by name, beside those that noise explains.

    Attributes:
        jackknife: from block to block, noise included.
        structure: between structures that predict about as well.
        blocks: how many blocks there were.
    """

    jackknife: Mapping[str, float]
    structure: Mapping[str, float]
    blocks: int


def jackknife(estimates: Sequence[Array]) -> Array:
    """The variance of each entry of an estimate, from `estimates` without one block each."""
    x = np.array(estimates)
    return np.asarray((len(x) - 1) / len(x) * np.sum((x - x.mean(axis=0)) ** 2, axis=0))


def doubted(estimate: Estimate, doubt: Doubt) -> Estimate:
    """`estimate` with wider error bars: noise, what motions add to it, and what the choice of the structure adds.

    Args:
        estimate: with the covariance that noise explains.
        doubt: of its base parameters, by name; of others nothing but the mean is known.
    """
    noise = np.maximum(np.diag(estimate.covariance), 0.0)
    names = estimate.base.names
    wander = np.array([doubt.jackknife.get(n, np.nan) for n in names])
    told = np.isfinite(wander) & (noise > 0.0) & (wander > 0.0)
    ratio = np.where(told, wander / np.where(noise > 0.0, noise, 1.0), np.nan)
    if not np.any(told):
        return estimate
    # A mean over kin that a few wild ones do not lead: of the logarithms, which scatter alike.
    degrees = float(doubt.blocks - 1)
    common = float(np.exp(np.mean(np.log(ratio[told]))) * log_bias(degrees))
    own = np.where(told, ratio, common)
    shrunk = (degrees * own + DEGREES_OF_MEAN * common) / (degrees + DEGREES_OF_MEAN)
    motion = noise * np.maximum(shrunk - 1.0, 0.0)
    structure = np.array([doubt.structure.get(n, 0.0) for n in names]) * (noise > 0.0)
    grown = np.sqrt((noise + motion + structure) / np.where(noise > 0.0, noise, 1.0))
    grown = np.where(noise > 0.0, grown, 1.0)
    return replace(
        estimate,
        covariance=estimate.covariance * np.outer(grown, grown),
        details={
            **estimate.details,
            "noise_error": tuple(np.sqrt(noise).tolist()),
            "motion_error": tuple(np.sqrt(motion).tolist()),
            "structure_error": tuple(np.sqrt(structure).tolist()),
        },
    )


def log_bias(degrees: float) -> float:
    """What the exponential of a mean logarithm of χ²/ν lacks to one: exp(ln(ν/2) − digamma(ν/2))."""
    x, digamma = 0.5 * degrees, 0.0
    while x < 8.0:  # beyond, the series is exact to 1e-9
        digamma -= 1.0 / x
        x += 1.0
    digamma += math.log(x) - 0.5 / x - 1.0 / (12.0 * x**2) + 1.0 / (120.0 * x**4) - 1.0 / (252.0 * x**6)
    return 0.5 * degrees / math.exp(digamma)
