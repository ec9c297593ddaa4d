"""Widens error bars by model errors: variation of the parameters between motions, structures and delays.

Missing friction terms bias the parameters, differently in every motion. A jackknife over blocks measures the variation
between motions. Fits of structures that predict about equally well measure the dependence on the structure. A fit with
the torques later by the standard error of their delay measures the dependence on an estimated delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.estimation.estimate import Estimate, Estimator, Prior
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS, block_deviations, jackknife
from steelyard.estimation.linear.rounding_bias import fit_beta
from steelyard.estimation.linear.widening import motion_variance
from steelyard.ground.arrays import Array
from steelyard.parameters.actuators import Rotor
from steelyard.parameters.friction import Viscous
from steelyard.parameters.hysteresis import Lag
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.regression.block_grams import Fits, Weighted
from steelyard.regression.data import RegressionData
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.identification._search import Search


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


def widened_by_shift(estimate: Estimate, shift: Array) -> Estimate:
    """Widen the error bars of an estimate by its shift under another preparation.

    A single small difference can be chance; a large one counts.

    Args:
        estimate: The estimate.
        shift: Change of its base parameters.
    """
    noise = np.maximum(np.diag(estimate.covariance), 1e-300)
    added = np.maximum(shift**2, motion_variance(noise, noise + shift**2, blocks=2))
    grown = np.sqrt(1.0 + added / noise)
    return replace(estimate, covariance=estimate.covariance * np.outer(grown, grown))


# Share of the remaining squared error that is attributed to missing friction shapes instead of noise. Tuned by coverage
# on simulated arms (docs/theory/structure.md).
_MISFIT = 0.05


def parameter_variance(search: Search, terms: Terms, sums: Weighted, fits: Fits) -> ExtraVariance:
    """Compute parameter variances between blocks and between structures that predict about equally well."""
    whole, errors = fits.x[0], search.grams.left_out(fits)
    between = np.zeros(search.grams.size)
    for e, late in enumerate(_lags(search, whole)):
        between += _from_alternatives(search, e, sums, fits, errors[:, e]) + _from_late_friction(search, e, late, whole)
        for offer in (o for o in search.offers[e] if search.structure[o.columns].all() and not o.instead):
            less = fits.less(offer.columns, search.grams.bounded).x
            a, b, _ = search.compare(e, errors[:, e], search.grams.left_out_of(e, less[:, :, None])[:, 0])
            # Unexplained friction biases the parameters in the same way as the friction that this term explains.
            left = min(_MISFIT * a**2 / max(b**2 - a**2, 1e-300), 1.0)
            between += left * (less[0] - whole) ** 2
    jackknifed = jackknife(list(fits.x[1:]))
    names = _names(search, terms)
    by_name = [{names[c]: float(v[c]) for c in np.flatnonzero(search.structure)} for v in (jackknifed, between)]
    return ExtraVariance(by_name[0], by_name[1], search.grams.blocks)


def _from_alternatives(search: Search, equation: int, sums: Weighted, fits: Fits, errors: Array) -> Array:
    """Compute the squared change of the parameters if a joint had one more term that predicts about equally well.

    It is the mean over these terms. A term with a significant but small gain was rejected and still biases the
    parameters; the best such term counts in full.
    """
    # Functions of position are excluded: many are ineffective and would dilute the mean.
    more = [o.columns for o in search.open_offers(equation) if not o.term.of_position]
    near, best, least = [], np.zeros(search.grams.size), np.inf
    with_one, trials = sums.extended(fits, equation, more)
    for columns, x, after in zip(more, with_one[0].T, trials, strict=True):
        # A candidate at its bound is not a different structure.
        if not np.all(np.isfinite(after)) or np.all(x[columns] == 0.0):
            continue
        a, b, standard_error = search.compare(equation, errors, after)
        moved = (x - fits.x[0]) ** 2
        if b - a <= standard_error:
            near.append(moved)
        if a - b > standard_error and b < least:
            best, least = moved, b
    return np.maximum(np.mean(near, axis=0), best) if near else best


def _lags(search: Search, whole: Array) -> list[float]:
    """Return the torque delay of each joint [s]; joints without one get the median, since drives are similar."""
    own = [[whole[o.columns[0]] for o in offers if isinstance(o.term, Lag)] for offers in search.offers]
    late = [float(sum(x)) for x in own]
    common = float(np.median([x for x in late if x] or [0.0]))
    return [x or common for x in late]


def _from_late_friction(search: Search, equation: int, late: float, whole: Array) -> Array:
    """Compute the squared bias due to delayed friction: Td·Fv looks like a rotor inertia."""
    joint, out = search.used[equation], np.zeros(search.grams.size)
    here = search.study.terms.per_parameter(lambda t, c: type(t) if (c.side, c.index) == ("joint", joint) else None)
    if late and Rotor in here and Viscous in here:
        rotor, drag = (search.base.matrix[:, search.robot.inertial_count + here.index(k)] for k in (Rotor, Viscous))
        damping = float(whole[: search.base.rank] @ drag) / max(float(drag @ drag), 1e-300)
        out[: search.base.rank] = (late * damping * rotor) ** 2
    return out


def _names(search: Search, terms: Terms) -> list[str]:
    """Return the parameter names of all columns; "" for columns that are not in the structure."""
    after = iter(terms.parameters)
    placed: dict[tuple[Term, str, int], list[str]] = {}
    for term, c in terms.with_coordinates:
        placed[replace(term, where=None), c.side, c.index] = [next(after).name for _ in term.columns]
    usual = [p.name for p in search.base.parameters[: search.robot.inertial_count]]
    for term, c in search.study.terms.with_coordinates:
        usual += placed.get((replace(term, where=None), c.side, c.index), [""] * len(term.columns))
    names = [usual[c] for c in search.base.independent]
    for joint, offers in zip(search.used, search.offers, strict=True):
        for o in offers:
            names += placed.get((replace(o.term, where=None), "joint", joint), [""] * len(o.columns))
    return names
