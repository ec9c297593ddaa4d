"""The best fit among physically possible robots, the default estimator."""

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
from steelyard.estimation.possible._solve import (
    LAST_WITH_PRIOR,
    Solution,
    reference_response,
    solve_conic,
    solve_interior,
)
from steelyard.estimation.registry import ESTIMATORS, RegisteredEstimator, estimator, make_estimator
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.numbers import number
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Smallest share of the cost that is reported: half a standard deviation, squared.
_MIN_SHARE = 0.25
# Points on the boundary are moved inwards by this share of the way to an inner point.
_INWARD_SHARE = 1e-6


def _boundary_shares(formulation: Formulation, inside: Array) -> dict[str, float]:
    """Contribution of each link and bound to ‖R(Mθ) − y‖² (σ²) if only the constraints act; the sum is the total.

    At the optimum z = Σ_i Bᵀ E_iᵀ Z_i with the multipliers Z_i ⪰ 0 of the links (and of the bounds), so
    ‖z‖² = Σ_i ⟨Z_i, E_i B z⟩: the cost splits exactly. `inside` is the start of the search.
    """
    program = formulation.program.without_priors(inside + _INWARD_SHARE * (formulation.program.start - inside))
    solution = solve_interior(program, first=0.1)
    return {name: share for name, share in _split(formulation, solution).items() if share > _MIN_SHARE}


def _split(formulation: Formulation, solution: Solution) -> dict[str, float]:
    p = formulation.program.without_priors(solution.x)
    B, _ = p.frame
    direction = B @ (p.G @ solution.x - p.g)
    out: dict[str, float] = {}
    for link, E, X in zip(formulation.base.robot.links, p.cones, p.matrices(solution.x), strict=True):
        multiplier = solution.barrier * (np.linalg.inv(X - p.margin * np.eye(4)) - np.eye(4))
        out[f"link '{link.name}'"] = float(multiplier.ravel() @ (E @ direction))
    for name, row, constant in zip((*formulation.lines, *formulation.scalars), p.C, p.c, strict=True):
        multiplier = solution.barrier * (1.0 / (float(row @ solution.x) + constant) - 1.0)
        out[name] = out.get(name, 0.0) + float(multiplier * (row @ direction))
    return out


def _smallest_possible(base: BaseParameters, theta: Array) -> Array:
    """Smallest eigenvalues of the links' pseudo-inertias; all must be positive."""
    smallest = smallest_pseudo_eigenvalues(theta[: base.robot.inertial_count])
    if smallest.min() <= 0.0:  # not expected inside the cones, but an impossible model must never be returned
        raise EstimationError(
            f"The constrained fit made link '{base.robot.links[int(smallest.argmin())].name}' impossible."
        )
    return smallest


def _ending(free: Result, solution: Solution, shares: Mapping[str, float]) -> Result:
    """Result of a constrained fit, given that of the free one."""
    if not solution.converged:
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
    """Find the possible robot nearest to an estimate, as the physical form of estimators without their own.

    It minimises ½(β − β̂)ᵀ Σ⁻¹ (β − β̂) + strength·(log-det divergence from the reference bodies), pseudo-inertias ≻
    0: the same as `PhysicallyConsistent`, with the covariance Σ of the estimate instead of the triangle of the rows.
    For weighted least squares with white residuals both are equal. The error bars are those of the free estimate.

    Args:
        estimate: Free estimate.
        prior: Prior with the reference bodies.
        strength: As for `PhysicallyConsistent`.
        margin: As for `PhysicallyConsistent`.
        shares: As for `PhysicallyConsistent`.
        close: Whether the prior is a similar possible robot; the search then starts from it, for many similar robots.
    """
    base = estimate.base
    with one_blas_thread():
        errors = estimate.standard_errors
        if not np.all(np.isfinite(errors)) or not np.all(errors > 0.0):
            raise EstimationError(
                "The estimate has no error bars, which define the distance to the nearest possible robot."
            )
        correlation = estimate.covariance / np.outer(errors, errors)
        values, vectors = np.linalg.eigh(correlation)
        # Rounding leaves directions without variance; the accuracy is limited to a millionth.
        roots = 1.0 / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        R = (vectors * roots).T / errors
        formulation = formulate(base, R, estimate.beta, prior, strength, margin, None, {})
        solution = solve_interior(formulation.program, first=LAST_WITH_PRIOR if close else None)
        if close and not solution.converged:
            solution = solve_interior(formulation.program)
    theta = formulation.theta(solution.x)
    _smallest_possible(base, theta)
    beta = base.values(theta)
    rise = float(np.sum((R @ (beta - estimate.beta)) ** 2))
    costs = _boundary_shares(formulation, solution.x) if shares else {}
    result = _ending(estimate.result, solution, costs)
    details = {**estimate.details, "free_beta": estimate.beta, "cost_rise": rise, "boundary": costs}
    if shares and strength > 0.0:
        details["reference_response"] = reference_response(formulation.program, solution.x) @ formulation.lift.T
    return replace(
        estimate, beta=beta, theta=theta, physical=True, result=result, details=details,
        notes=(*estimate.notes, *formulation.notes),
    )  # fmt: skip


Bounds = tuple[float, float]


def _has_weights(entry: RegisteredEstimator | None) -> bool:
    """Whether the free fit of an estimator gives a triangle with its own weights."""
    return entry is not None and issubclass(entry.of, LinearEstimator) and not entry.of.weights_like


@estimator("physical")
@dataclass(frozen=True)
class PhysicallyConsistent(Estimator[RegressionData]):
    """min ½‖R(Mθ) − y‖² + strength·Σ_i (tr P⁰_i⁻¹P_i − log det P⁰_i⁻¹P_i), P_i ≻ 0, terms within their bounds.

    P_i is the pseudo-inertia of link i (Wensing, Kim & Slotine 2018): positive definite iff a body of positive density
    has these ten parameters. R and y are the triangle of the free fit, in standard deviations of its noise (with its
    correlation in time). The log-det divergence from a reference body P⁰ (Lee, Wensing & Park 2020) decides what the
    data do not determine; it changes the rest by a few percent of a standard error
    (docs/theory/physical-consistency.md). References are the prior's links, else rods from joint to joint with the
    density that fits the data best.

    Attributes:
        weighting: Free fit with the weights: "wls", "ols", "huber", "bisquare", "tls" or "rtls".
        strength: Weight of the divergence; 0: none.
        margin: Distance of the links from the boundary: P_i ⪰ margin·P⁰_i.
        total_mass: Bounds of the mass of all moving links [kg].
        masses: Bounds of single links by name [kg].
        solver: "newton" (own) or "clarabel" (through CVXPY).
        shares: Whether to compute the cost of each link and bound, which needs a second solution.
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
        if not _has_weights(ESTIMATORS.get(self.weighting)):
            raise UnknownNameError("weighting", self.weighting, [n for n, e in ESTIMATORS.items() if _has_weights(e)])
        if self.solver not in ("newton", "clarabel"):
            raise UnknownNameError("solver", self.solver, ("newton", "clarabel"))
        if not self.strength >= 0.0 or not 0.0 < self.margin < 0.1:
            raise EstimationError(
                f"strength is {self.strength} and margin is {self.margin}; strength must not be negative, margin "
                "between 0 and 0.1."
            )

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.fit_both(data, base, prior)[1]

    def fit_both(
        self, data: RegressionData, base: BaseParameters, prior: Prior | None = None
    ) -> tuple[Estimate, Estimate]:
        """Compute the free fit and the physically possible one.

        Args:
            data: The rows.
            base: Base parameters to estimate.
            prior: Prior knowledge.
        """
        estimator: Any = make_estimator(self.weighting)
        free: FreeFit = estimator.free(data, base)
        return free.estimate(prior), self._constrained(free, base, prior)

    def _constrained(self, free: FreeFit, base: BaseParameters, prior: Prior | None) -> Estimate:
        covariance = free.covariance
        R = free.triangle[:-1, :-1]
        # Correlated residuals contain less information than white ones: the mean loss over all base parameters.
        information_loss = max(float(np.trace(covariance.matrix @ R.T @ R)) / base.rank, 1e-300) / free.noise**2
        sigma = free.noise * np.sqrt(information_loss)
        formulation = formulate(
            base, R / sigma, free.beta, prior, self.strength,
            self.margin, self.total_mass, self.masses,
        )  # fmt: skip
        solution = solve_interior(formulation.program)
        x = solve_conic(formulation.program) if self.solver == "clarabel" else solution.x
        return self._estimate(base, free, covariance, formulation, solution, x, R / sigma, information_loss)

    def _estimate(
        self,
        base: BaseParameters,
        free: FreeFit,
        covariance: Covariance,
        formulation: Formulation,
        solution: Solution,
        x: Array,
        R: Array,
        information_loss: float,
    ) -> Estimate:
        theta = formulation.theta(x)
        beta = base.matrix @ theta
        smallest = _smallest_possible(base, theta)
        rise = float(np.sum((R @ (beta - free.beta)) ** 2))
        shares = _boundary_shares(formulation, solution.x) if self.shares else {}
        percent = 100.0 * rise * information_loss / max(float(free.problem.rows.sum()) - base.rank, 1.0)
        notes = [*free.notes, *formulation.notes, *_boundary_notes(shares)]
        if not solution.converged:
            notes.append("The constrained fit has not converged; its result is physically possible.")
        if rise > 1.0:
            notes.append(
                f"The weighted sum of squares is {rise:.3g} σ² ({number(percent, 2)} %) larger than in the free fit, "
                f"for {base.rank} base parameters; reference bodies decide parameters that are small compared with "
                "the noise."
            )
        Ry = free.triangle
        details: dict[str, Any] = {
            **covariance.details(),
            **free.details,
            "rows": free.problem.factor.rows,
            "free_beta": free.beta,
            "cost_rise": rise,
            "cost_rise_percent": percent,
            "boundary": shares,
            "smallest_pseudo_inertia": tuple(smallest.tolist()),
            "newton_steps": solution.steps,
        }
        if self.shares and self.strength > 0.0:
            # Change of θ per relative growth of each reference body, shape (links, θ).
            details["reference_response"] = reference_response(formulation.program, solution.x) @ formulation.lift.T
        return Estimate(
            base=base,
            beta=beta,
            covariance=covariance.matrix,
            theta=theta,
            residual_std=free.residual_std if free.influence else free.problem.residual_std(beta, Ry, free.weights),
            cost=float(np.sum((Ry[:, :-1] @ beta - Ry[:, -1]) ** 2)),
            result=_ending(free.result, solution, shares),
            physical=True,
            history=free.history,
            notes=tuple(notes),
            details=details,
        )


def _boundary_notes(shares: Mapping[str, float]) -> list[str]:
    """Notes on links and bounds at the boundary, the largest cost first."""
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [
        f"{name[0].upper()}{name[1:]} is at the boundary of what is possible: the free fit exceeds it by "
        f"{np.sqrt(share):.1f} σ."
        for name, share in ordered
    ]
