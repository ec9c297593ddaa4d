"""`PhysicallyConsistent`: the best fit among the robots that can exist. The default estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, LinearEstimator, Prior, Result
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear.covariance import Covariance
from steelyard.estimation.possible._formulate import Formulation, formulate
from steelyard.estimation.possible._solve import LAST_WITH_PRIOR, Solution, solve_conic, solve_interior
from steelyard.estimation.registry import ESTIMATORS, Named, estimator, make_estimator
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import number
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Which links and bounds stand between the free fit and what is physically possible, and what each costs.


# A share of the cost below this (half a standard deviation, squared) is not worth naming.
_WORTH_NAMING = 0.25
# A point on the boundary, to rounding, is drawn inwards by this part of the way to one that is well inside.
_INWARDS = 1e-6


def _boundary_shares(made: Formulation, inside: Array) -> dict[str, float]:
    """What each link and bound adds to ‖R(Mθ) − y‖² (σ²) when the constraints alone decide; they sum to the whole.

    At the optimum z = Σ_i Bᵀ E_iᵀ Z_i with the multipliers Z_i ⪰ 0 of the links (and of the bounds), hence
    ‖z‖² = Σ_i ⟨Z_i, E_i B z⟩: the cost of impossibility splits exactly. `inside`: a point to start from.
    """
    program = made.program.bare(inside + _INWARDS * (made.program.start - inside))
    found = solve_interior(program, first=0.1)
    return {name: share for name, share in _split(made, found).items() if share > _WORTH_NAMING}


def _split(made: Formulation, found: Solution) -> dict[str, float]:
    p = made.program.bare(found.x)
    B, _ = p.frame
    way = B @ (p.G @ found.x - p.g)
    out: dict[str, float] = {}
    for link, E, X in zip(made.base.robot.links, p.cones, p.matrices(found.x), strict=True):
        multiplier = found.barrier * (np.linalg.inv(X - p.margin * np.eye(4)) - np.eye(4))
        out[f"link '{link.name}'"] = float(multiplier.ravel() @ (E @ way))
    for name, row, constant in zip((*made.lines, *made.scalars), p.C, p.c, strict=True):
        multiplier = found.barrier * (1.0 / (float(row @ found.x) + constant) - 1.0)
        out[name] = out.get(name, 0.0) + float(multiplier * (row @ way))
    return out


def _smallest_possible(base: BaseParameters, theta: Array) -> Array:
    """The smallest eigenvalues of the links' pseudo-inertias, all positive."""
    smallest = smallest_pseudo_eigenvalues(theta[: base.robot.inertial_count])
    if smallest.min() <= 0.0:  # cannot happen inside the cones, but a wrong model must never leave this room
        raise EstimationError(f"Link '{base.robot.links[int(smallest.argmin())].name}' came out impossible.")
    return smallest


def _ending(free: Result, found: Solution, shares: Mapping[str, float]) -> Result:
    """How a constrained fit ended, from how the free one did."""
    if not found.converged:
        return Result.NOT_CONVERGED
    return Result.BOUNDARY if shares and free is Result.CONVERGED else free


def nearest_possible(
    estimate: Estimate,
    prior: Prior | None = None,
    *,
    strength: float = 0.05,
    margin: float = 1e-6,
    shares: bool = True,
    close: bool = False,
) -> Estimate:
    """min ½(β − β̂)ᵀ Σ⁻¹ (β − β̂) + strength·(log-det divergence from the reference bodies), pseudo-inertias ≻ 0.

    A physically consistent form for estimators that have none of their own: instruments, likelihood.
    What `PhysicallyConsistent` does with the triangle of the rows is done with the covariance Σ of any `estimate`; for
    weighted least squares with white residuals the two are the same. The error bars are those of the free estimate.
    `prior`, `strength`, `margin` and `shares` are as for `PhysicallyConsistent`. Where `close`, the prior is a possible
    robot much like this one, and the search starts at it: for one robot after the other of the same model.
    """
    base = estimate.base
    with one_blas_thread():
        errors = estimate.standard_errors
        if not np.all(np.isfinite(errors)) or not np.all(errors > 0.0):
            raise EstimationError("The estimate has no error bars, and nearness cannot be measured without.")
        correlation = estimate.covariance / np.outer(errors, errors)
        values, vectors = np.linalg.eigh(correlation)
        # Rounding leaves directions of no variance at all; nothing is known better than to a millionth.
        roots = 1.0 / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        R = (vectors * roots).T / errors
        made = formulate(base, R, estimate.beta, prior, strength, margin, None, {})
        found = solve_interior(made.program, first=LAST_WITH_PRIOR if close else None)
        if close and not found.converged:
            found = solve_interior(made.program)
    theta = made.theta(found.x)
    _smallest_possible(base, theta)
    beta = base.values(theta)
    rise = float(np.sum((R @ (beta - estimate.beta)) ** 2))
    costs = _boundary_shares(made, found.x) if shares else {}
    result = _ending(estimate.result, found, costs)
    details = {**estimate.details, "free_beta": estimate.beta, "cost_rise": rise, "boundary": costs}
    return replace(
        estimate, beta=beta, theta=theta, physical=True, result=result, details=details,
        notes=(*estimate.notes, *made.notes),
    )  # fmt: skip


Bounds = tuple[float, float]


def _can_weigh(known: Named | None) -> bool:
    """Whether a free fit by this estimator leaves a triangle with weights of its own."""
    return known is not None and issubclass(known.of, LinearEstimator) and not known.of.weights_like


@estimator("physical")
@dataclass(frozen=True)
class PhysicallyConsistent(Estimator[RegressionData]):
    """min ½‖R(Mθ) − y‖² + strength·Σ_i (tr P⁰_i⁻¹P_i − log det P⁰_i⁻¹P_i), P_i ≻ 0, terms within their bounds.

    P_i is the pseudo-inertia of link i (Wensing, Kim & Slotine 2018): positive definite iff a body of positive density
    has these ten parameters. R and y are the triangle of the free fit, in standard deviations of its noise
    (correlation in time allowed for). The log-det divergence from a reference body P⁰ (Lee, Wensing & Park 2020)
    decides what the data do not show; it moves what they do show by a few percent of a standard error (measured:
    docs/theory/physical-consistency.md). References are the prior's links; where there are none, rods from joint to
    joint of the density that fits the data best. The name is the literature's; what can exist is called possible here.

    Attributes:
        weighting: the free fit that it starts from: "wls", "ols", "huber", "bisquare", "tls" or "rtls".
        strength: of the divergence; 0: none.
        margin: how far inside the links stay: P_i ⪰ margin·P⁰_i.
        total_mass: bounds of the mass of all moving links (kg).
        masses: bounds of single links by name (kg).
        solver: "newton" (own) or "clarabel" (through CVXPY).
        shares: whether to tell what each link and bound costs, which takes a second solution.
    """

    physical_form, weights_like = "itself", "wls"
    family = "linear"
    about = "the best fit among the robots that can exist"

    weighting: str = "wls"
    strength: float = 0.05
    margin: float = 1e-6
    total_mass: Bounds | None = None
    masses: Mapping[str, Bounds] = field(default_factory=dict)
    solver: Literal["newton", "clarabel"] = "newton"
    shares: bool = True

    def __post_init__(self) -> None:
        if not _can_weigh(ESTIMATORS.get(self.weighting)):
            raise UnknownNameError("weighting", self.weighting, [n for n, e in ESTIMATORS.items() if _can_weigh(e)])
        if self.solver not in ("newton", "clarabel"):
            raise UnknownNameError("solver", self.solver, ("newton", "clarabel"))
        if not self.strength >= 0.0 or not 0.0 < self.margin < 0.1:
            raise EstimationError("strength must not be negative, and margin lies between 0 and 0.1.")

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.fit_both(data, base, prior)[1]

    def fit_both(
        self, data: RegressionData, base: BaseParameters, prior: Prior | None = None
    ) -> tuple[Estimate, Estimate]:
        """The free fit it starts from, and the physically possible one, of `data`, `base` and `prior` as for `fit`."""
        under: Any = make_estimator(self.weighting)
        free: FreeFit = under.free(data, base)
        return free.estimate(prior), self._constrained(free, base, prior)

    def _constrained(self, free: FreeFit, base: BaseParameters, prior: Prior | None) -> Estimate:
        bars = free.covariance
        R = free.joined[:-1, :-1]
        # Correlated residuals say less than as many white ones: the mean loss over all base parameters.
        slower = max(float(np.trace(bars.matrix @ R.T @ R)) / base.rank, 1e-300) / free.noise**2
        sigma = free.noise * np.sqrt(slower)
        made = formulate(
            base, R / sigma, free.beta, prior, self.strength,
            self.margin, self.total_mass, self.masses,
        )  # fmt: skip
        found = solve_interior(made.program)
        x = solve_conic(made.program) if self.solver == "clarabel" else found.x
        return self._estimate(base, free, bars, made, found, x, R / sigma, slower)

    def _estimate(
        self,
        base: BaseParameters,
        free: FreeFit,
        bars: Covariance,
        made: Formulation,
        found: Solution,
        x: Array,
        R: Array,
        slower: float,
    ) -> Estimate:
        theta = made.theta(x)
        beta = base.matrix @ theta
        smallest = _smallest_possible(base, theta)
        rise = float(np.sum((R @ (beta - free.beta)) ** 2))
        shares = _boundary_shares(made, found.x) if self.shares else {}
        percent = 100.0 * rise * slower / max(float(free.problem.rows.sum()) - base.rank, 1.0)
        notes = [*free.notes, *made.notes, *_boundary_notes(shares)]
        if not found.converged:
            notes.append("The constrained fit stopped short of its optimum; it is physically possible nevertheless.")
        if rise > 1.0:
            notes.append(
                f"Against the free fit the weighted sum of squares rose by {rise:.3g} σ² ({number(percent, 2)} %), for "
                f"{base.rank} base parameters; where noise hides them the reference bodies decide."
            )
        joined = free.joined
        details: dict[str, Any] = {
            **bars.details(),
            **free.details,
            "rows": free.problem.factor.rows,
            "free_beta": free.beta,
            "cost_rise": rise,
            "cost_rise_percent": percent,
            "boundary": shares,
            "smallest_pseudo_inertia": tuple(smallest.tolist()),
            "newton_steps": found.steps,
        }
        return Estimate(
            base=base,
            beta=beta,
            covariance=bars.matrix,
            theta=theta,
            residual_std=free.residual_std if free.influence else free.problem.residual_std(beta, joined, free.weights),
            cost=float(np.sum((joined[:, :-1] @ beta - joined[:, -1]) ** 2)),
            result=_ending(free.result, found, shares),
            physical=True,
            history=free.history,
            notes=tuple(notes),
            details=details,
        )


def _boundary_notes(shares: Mapping[str, float]) -> list[str]:
    """The costliest first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [
        f"{name[0].upper()}{name[1:]} is at the boundary of what is possible: the free fit would go beyond it by "
        f"{np.sqrt(share):.1f} σ."
        for name, share in ordered
    ]
