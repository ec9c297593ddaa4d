"""Error bars that include what the model does not know: how parameters differ from motion to motion, and by structure.

Noise, even correlated noise, is not all: what friction has and the model has not leans on the parameters, otherwise in
every motion. Fits without one block each (a jackknife) show how far parameters wander from block to block; fits of
structures that predict about as well show how far they hang on the choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.estimation.linear.widening import drawn_to_mean, mean_ratio
from steelyard.ground.arrays import Array


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
    # Five blocks say little of each parameter by itself.
    degrees = float(doubt.blocks - 1)
    common = mean_ratio(ratio[told], degrees)
    shrunk = drawn_to_mean(np.where(told, ratio, common), common, degrees)
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
