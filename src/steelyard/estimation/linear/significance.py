"""Which base parameters do the data support? t tests, and a refit without those that they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior
from steelyard.estimation.linear._free import nearest_theta
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData


@dataclass(frozen=True)
class Removal:
    """A base parameter that was set to zero, and the test that it failed when its turn came."""

    name: str
    t: float
    p: float


@dataclass(frozen=True)
class Removals:
    """All that was taken away, in order; the F test of all together; what it cost.

    `cost_rise` is the rise of the weighted sum of squares, in variances of the whole fit's noise (as if residuals were
    white), `cost_rise_percent` the same as a share of the whole.
    """

    level: float
    steps: tuple[Removal, ...]
    F: float
    p: float
    cost_rise: float
    cost_rise_percent: float


@dataclass(frozen=True, eq=False)
class Significance:
    """For each base parameter the t statistic and the probability of one as large if the true value were zero."""

    names: tuple[str, ...]
    t: Array
    p: Array

    def unsupported(self, level: float = 0.05) -> tuple[str, ...]:
        """The parameters that could as well be zero: as large by chance with a probability above `level`."""
        return tuple(name for name, p in zip(self.names, self.p, strict=True) if p > level)


def significance(estimate: Estimate) -> Significance:
    """t tests with `estimate`'s own error bars (correlated residuals included) and degrees of freedom."""
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
    """F test that all base parameters `names` of `estimate` are zero together: (F, probability)."""
    from scipy.special import fdtrc

    which = [_place(estimate.base, name) for name in names]
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
    """Fit, take away the least supported base parameter, fit again, until all are supported at `level`.

    `estimator` fits `base` to `data` with `prior`, as its `fit` says.
    The result is over the same base: what was taken away is zero with zero error, and the notes say which, in what
    order and why (as data: `details["removals"]`, a `Removals`). Parameters named in `keep` stay. For free estimators
    only: a body cannot be asked to have combinations of exactly zero. Backward elimination overstates what is left; do
    not read p values off the result.
    """
    kept = set(keep)
    for name in kept:
        _place(base, name)
    remaining = list(range(base.rank))
    steps: list[Removal] = []
    whole = estimator.fit(data, base, prior)
    if whole.physical:
        raise EstimationError("Parameters can only be removed from a free fit; choose 'ols', 'wls' or a robust one.")
    found = whole
    while len(remaining) > 1:
        test = significance(found)
        candidates = [k for k, name in enumerate(test.names) if name not in kept and test.p[k] > level]
        if not candidates:
            break
        worst = min(candidates, key=lambda k: abs(float(test.t[k])))
        steps.append(Removal(test.names[worst], float(test.t[worst]), float(test.p[worst])))
        remaining.pop(worst)
        found = estimator.fit(data, _restricted(base, remaining), prior)
    out = _over_whole_base(found, base, remaining, prior) if steps else found
    F, p = joint_test(whole, [s.name for s in steps])
    removals = Removals(level, tuple(steps), F, p, *_cost_rise(data, whole, out.beta))
    return replace(out, notes=(*out.notes, *_notes(removals)), details={**out.details, "removals": removals})


def _notes(removals: Removals) -> list[str]:
    if not removals.steps:
        return []
    told = [f"{s.name} was set to zero: t = {s.t:.2f} (p = {s.p:.2g})." for s in removals.steps]
    return [*told, f"All {len(told)} together: F = {removals.F:.2f} (p = {removals.p:.2g})."]


def _cost_rise(data: RegressionData, whole: Estimate, beta: Array) -> tuple[float, float]:
    """What other base parameters cost under the weights of the whole fit: in σ², and in percent."""
    factor = data.factor()
    R = factor.joined(1.0 / np.maximum(whole.residual_std, 1e-300), whole.base.independent)
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
    found: Estimate, base: BaseParameters, rows: Sequence[int], prior: Prior | None
) -> Estimate:  # fmt: skip
    """The estimate over the whole base, zeros where something was removed."""
    beta, covariance = np.zeros(base.rank), np.zeros((base.rank, base.rank))
    beta[list(rows)] = found.beta
    covariance[np.ix_(rows, rows)] = found.covariance
    details = dict(found.details)
    for name, empty in (("inflation", 1.0), ("degrees_of_freedom", 1e9)):
        values = np.full(base.rank, empty)
        values[list(rows)] = details[name]
        details[name] = tuple(values.tolist())
    details["removed"] = tuple(base.names[k] for k in range(base.rank) if k not in rows)
    theta = nearest_theta(base, beta, prior)
    return replace(found, base=base, beta=beta, covariance=covariance, theta=theta, details=details)


def _degrees(estimate: Estimate) -> Array:
    given = estimate.details.get("degrees_of_freedom", np.full(len(estimate.beta), 1e9))
    return np.asarray(given, dtype=float)


def _place(base: BaseParameters, name: str) -> int:
    if name not in base.names:
        raise UnknownNameError("base parameter", name, base.names)
    return base.names.index(name)
