"""Widens error bars by model errors: variation of the parameters between motions, structures and delays.

Missing friction terms bias the parameters, differently in every motion. A jackknife over blocks measures the variation
between motions. Fits of structures that predict about equally well measure the dependence on the structure. A fit with
the torques later by the standard error of their delay measures the dependence on an estimated delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from steelyard.estimation.estimate import Estimate, Estimator, Prior
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS, block_deviations
from steelyard.estimation.linear.rounding_bias import fit_beta
from steelyard.estimation.linear.widening import motion_variance
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.study import Study


@dataclass(frozen=True)
class ExtraVariance:
    """Variances of parameters, by name, due to model errors.

    Attributes:
        jackknife: Variance between blocks, noise included.
        structure: Variance between structures that predict about equally well.
        blocks: Number of blocks.
        deviations: Contribution of each block to the base parameters; None after a structure search.
    """

    jackknife: Mapping[str, float]
    structure: Mapping[str, float]
    blocks: int
    deviations: Array | None = None


def jackknife_variance(data: RegressionData, estimate: Estimate) -> ExtraVariance:
    """Compute the variation of the parameters between blocks, for fits without a structure search.

    Args:
        data: Rows of the fit, or of the beginnings of long logs.
        estimate: Free fit to them.
    """
    deviations = block_deviations(data, estimate.base, estimate.residual_std)
    variances = np.sum(deviations**2, axis=0)
    by_name = dict(zip(estimate.base.names, variances.tolist(), strict=True))
    return ExtraVariance(by_name, {}, JACKKNIFE_BLOCKS, deviations)


def widen_error_bars(estimate: Estimate, variance: ExtraVariance) -> Estimate:
    """Return an estimate whose error bars include noise, motion and the choice of the structure.

    Args:
        estimate: Estimate with the covariance due to noise.
        variance: Variances of its base parameters by name; for missing ones the mean is used.
    """
    noise = np.maximum(np.diag(estimate.covariance), 0.0)
    names = estimate.base.names
    jackknifed = np.array([variance.jackknife.get(n, np.nan) for n in names])
    # Too few blocks for a separate variance of each parameter.
    motion = motion_variance(noise, jackknifed, variance.blocks)
    if not np.any(np.isfinite(jackknifed) & (noise > 0.0) & (jackknifed > 0.0)):
        return estimate
    structure = np.array([variance.structure.get(n, 0.0) for n in names]) * (noise > 0.0)
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
            **({} if variance.deviations is None else {"block_deviations": variance.deviations}),
        },
    )


def shift_by_delay(study: Study, estimator: Estimator[RegressionData], prior: Prior | None) -> Array | None:
    """Compute the change of the base parameters if the estimated delay is off by its standard error; None without one.

    Joints differ in their delays, and the parameters of one joint follow its own delay: the error is that of the mean
    and the spread between the joints together.

    Args:
        study: Study of the fit.
        estimator: Its estimator.
        prior: Prior knowledge.
    """
    late = study.delay
    if late is None:
        return None
    error = float(np.hypot(late.error_s, late.spread_s))
    opening = study.opening
    later = replace(opening, preparation=replace(study.preparation, delay=late.delay_s + error))
    ends = [fit_beta(estimator, s.rows, study.base, prior) for s in (opening, later)]
    return np.asarray(ends[1] - ends[0])


def include_delay_error(estimate: Estimate, shift: Array | None) -> Estimate:
    """Add the error of an estimated delay to the covariance of an estimate.

    Args:
        estimate: The estimate.
        shift: Change of its base parameters by one standard error of the delay; None: there is no estimated delay.
    """
    if shift is None:
        return estimate
    shift = np.where(estimate.standard_errors > 0.0, shift, 0.0)  # removed parameters stay zero
    return replace(
        estimate,
        covariance=estimate.covariance + np.outer(shift, shift),
        details={**estimate.details, "delay_error": tuple(np.abs(shift).tolist())},
    )
