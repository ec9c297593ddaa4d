"""t tests of base parameters, and a refit without insignificant ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import nearest_theta
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData


@dataclass(frozen=True)
class Removal:
    """A base parameter that was set to zero, with the t test at its removal."""

    name: str
    t: float
    p: float


@dataclass(frozen=True)
class Removals:
    """All removed base parameters in order, and the joint test.

    Attributes:
        level: Level of the tests.
        steps: The removals.
        F: F statistic of all removed parameters together.
        p: p-value of F.
        cost_rise: Increase of the weighted sum of squares, in variances of the whole fit's noise (for white residuals).
        cost_rise_percent: The same as a share of the whole sum.
    """

    level: float
    steps: tuple[Removal, ...]
    F: float
    p: float
    cost_rise: float
    cost_rise_percent: float


@short_repr
@dataclass(frozen=True, eq=False)
class Significance:
    """t statistic of each base parameter, and the probability of a larger one if the true value is zero."""

    names: tuple[str, ...]
    t: Array
    p: Array

    def unsupported(self, level: float = 0.05) -> tuple[str, ...]:
        """Return the insignificant parameters: those with a probability above `level`."""
        return tuple(name for name, p in zip(self.names, self.p, strict=True) if p > level)


def significance(estimate: Estimate) -> Significance:
    """Compute t tests of an `estimate`, with its own error bars (correlated residuals included) and degrees of
    freedom."""
    from scipy.special import stdtr  # takes a fifth of a second to import

    degrees = _degrees(estimate)
    errors = estimate.standard_errors * np.sqrt((degrees - 2.0) / degrees)
    beta = estimate.beta
    t = np.divide(
        beta, errors, out=np.where(beta != 0.0, np.inf * np.sign(beta + (beta == 0.0)), 0.0), where=errors > 0.0
    )
    p = 2.0 * stdtr(degrees, -np.abs(t))
    return Significance(estimate.base.names, t, np.asarray(p))


def joint_test(estimate: Estimate, names: Sequence[str]) -> tuple[float, float]:
    """Compute the F test that several base parameters are all zero.

    Args:
        estimate: The estimate.
        names: Names of the base parameters.

    Returns:
        F statistic and probability.
    """
    from scipy.special import fdtrc

    which = [_index(estimate.base, name) for name in names]
    if not which:
        return 0.0, 1.0
    degrees = _degrees(estimate)
    plain = np.sqrt((degrees - 2.0) / degrees)
    cov = (estimate.covariance * plain * plain[:, None])[np.ix_(which, which)]
    beta = estimate.beta[which]
    scale = 1.0 / np.sqrt(np.diag(cov))
    F = float((scale * beta) @ np.linalg.solve(cov * scale * scale[:, None], scale * beta)) / len(which)
    return F, float(fdtrc(len(which), degrees[which].min(), F))


def fit_significant(
    estimator: Estimator[RegressionData],
    data: RegressionData,
    base: BaseParameters,
    prior: Prior | None = None,
    level: float = 0.05,
    keep: Sequence[str] = (),
) -> Estimate:
    """Fit and remove the least significant base parameter, repeatedly, until all are significant.

    The result has the same base: removed parameters are zero with zero error. The notes list them in order with the
    reason (as data: `details["removals"]`, a `Removals`). Only free estimators are supported, since a physical model
    cannot have combinations of exactly zero. Backward elimination overstates the significance of the rest; do not use p
    values of the result.

    Args:
        estimator: Estimator of each fit.
        data: The rows.
        base: Base parameters.
        prior: Prior knowledge.
        level: Level of the tests.
        keep: Names of parameters that are not removed.
    """
    protected = set(keep)
    for name in protected:
        _index(base, name)
    remaining = list(range(base.rank))
    steps: list[Removal] = []
    whole = estimator.fit(data, base, prior)
    if whole.physical:
        raise EstimationError("Parameters can only be removed from a free fit; use 'ols', 'wls' or a robust estimator.")
    reduced = whole
    while len(remaining) > 1:
        test = significance(reduced)
        candidates = [k for k, name in enumerate(test.names) if name not in protected and test.p[k] > level]
        if not candidates:
            break
        worst = min(candidates, key=lambda k: abs(float(test.t[k])))
        steps.append(Removal(test.names[worst], float(test.t[worst]), float(test.p[worst])))
        remaining.pop(worst)
        reduced = estimator.fit(data, _restricted(base, remaining), prior)
    out = _over_whole_base(reduced, base, remaining, prior) if steps else reduced
    F, p = joint_test(whole, [s.name for s in steps])
    removals = Removals(level, tuple(steps), F, p, *_cost_rise(data, whole, out.beta))
    return replace(out, notes=(*out.notes, *_notes(removals)), details={**out.details, "removals": removals})


def _notes(removals: Removals) -> list[str]:
    if not removals.steps:
        return []
    sentences = [f"{s.name} was set to zero: t = {s.t:.2f} (p = {s.p:.2g})." for s in removals.steps]
    return [*sentences, f"All {len(sentences)} together: F = {removals.F:.2f} (p = {removals.p:.2g})."]


def _cost_rise(data: RegressionData, whole: Estimate, beta: Array) -> tuple[float, float]:
    """Cost of other base parameters with the weights of the whole fit: in σ² and in percent."""
    factor = data.factor()
    R = factor.combined_triangle(1.0 / np.maximum(whole.residual_std, 1e-300), whole.base.independent)
    before, after = (float(np.sum((R[:, :-1] @ b - R[:, -1]) ** 2)) for b in (whole.beta, beta))
    rise = max(after - before, 0.0)
    return rise, 100.0 * rise / before if before > 0.0 else 0.0


def _restricted(base: BaseParameters, rows: Sequence[int]) -> BaseParameters:
    return replace(
        base,
        independent=tuple(base.independent[k] for k in rows),
        matrix=base.matrix[list(rows)],
        formulas=tuple(base.formulas[k] for k in rows),
    )


def _over_whole_base(
    reduced: Estimate, base: BaseParameters, rows: Sequence[int], prior: Prior | None
) -> Estimate:  # fmt: skip
    """The estimate over the whole base; removed parameters are zero."""
    beta, covariance = np.zeros(base.rank), np.zeros((base.rank, base.rank))
    beta[list(rows)] = reduced.beta
    covariance[np.ix_(rows, rows)] = reduced.covariance
    details = dict(reduced.details)
    for name, empty in (("inflation", 1.0), ("degrees_of_freedom", 1e9)):
        values = np.full(base.rank, empty)
        values[list(rows)] = details[name]
        details[name] = tuple(values.tolist())
    details["removed"] = tuple(base.names[k] for k in range(base.rank) if k not in rows)
    theta = nearest_theta(base, beta, prior)
    return replace(reduced, base=base, beta=beta, covariance=covariance, theta=theta, details=details)


def _degrees(estimate: Estimate) -> Array:
    return np.asarray(estimate.details.get("degrees_of_freedom", np.full(len(estimate.beta), 1e9)), dtype=float)


def _index(base: BaseParameters, name: str) -> int:
    if name not in base.names:
        raise UnknownNameError("base parameter", name, base.names)
    return base.names.index(name)
