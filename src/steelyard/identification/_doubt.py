"""Error bars that include what the model does not know: how parameters differ from motion to motion, and by structure.

Noise, even correlated noise, is not all: what friction has and the model has not leans on the parameters, otherwise in
every motion. Fits without one block each (a jackknife) show how far parameters wander from block to block; fits of
structures that predict about as well show how far they hang on the choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS, block_deviations
from steelyard.estimation.linear.widening import motion_variance
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData


@dataclass(frozen=True)
class Doubt:
    """Variances of parameters, by name, beside those that noise explains.

    Attributes:
        jackknife: from block to block, noise included.
        structure: between structures that predict about as well.
        blocks: how many blocks there were.
        deviations: what each block adds to the base parameters of the fit, where no structure was searched for.
    """

    jackknife: Mapping[str, float]
    structure: Mapping[str, float]
    blocks: int
    deviations: Array | None = None


def motion_doubt(data: RegressionData, estimate: Estimate) -> Doubt:
    """How far parameters wander from block to block where terms are given, and no structure was searched for.

    Args:
        data: the rows of the fit, or of the beginnings of long logs.
        estimate: the free fit to them.
    """
    deviations = block_deviations(data, estimate.base, estimate.residual_std)
    wander = np.sum(deviations**2, axis=0)
    by_name = dict(zip(estimate.base.names, wander.tolist(), strict=True))
    return Doubt(by_name, {}, JACKKNIFE_BLOCKS, deviations)


def doubted(estimate: Estimate, doubt: Doubt) -> Estimate:
    """`estimate` with wider error bars: noise, what motions add to it, and what the choice of the structure adds.

    Args:
        estimate: with the covariance that noise explains.
        doubt: of its base parameters, by name; of others nothing but the mean is known.
    """
    noise = np.maximum(np.diag(estimate.covariance), 0.0)
    names = estimate.base.names
    wander = np.array([doubt.jackknife.get(n, np.nan) for n in names])
    # A handful of blocks says little of each parameter by itself.
    motion = motion_variance(noise, wander, doubt.blocks)
    if not np.any(np.isfinite(wander) & (noise > 0.0) & (wander > 0.0)):
        return estimate
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
            **({} if doubt.deviations is None else {"block_deviations": doubt.deviations}),
        },
    )
