"""`PhysicallyConsistent`: the best fit among the robots that can exist. The default estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.linear.covariance import Covariance
from steelyard.estimation.linear.free import FreeFit
from steelyard.estimation.linear.ols import OrdinaryLeastSquares
from steelyard.estimation.linear.restricted_tls import RestrictedTotalLeastSquares
from steelyard.estimation.linear.robust import Robust
from steelyard.estimation.linear.tls import TotalLeastSquares
from steelyard.estimation.linear.wls import WeightedLeastSquares
from steelyard.estimation.possible.boundary import boundary_shares
from steelyard.estimation.possible.conic import solve_conic
from steelyard.estimation.possible.formulate import Formulation, formulate
from steelyard.estimation.possible.interior import Solution, solve_interior
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.robot.spatial import Array

Weighting = Literal["ols", "wls", "huber", "bisquare", "tls", "rtls"]
Bounds = tuple[float, float]


class _Free(Protocol):
    def free(self, data: RegressionData, base: BaseParameters) -> FreeFit: ...


_WEIGHTINGS: dict[str, _Free] = {
    "ols": OrdinaryLeastSquares(),
    "wls": WeightedLeastSquares(),
    "huber": Robust("huber"),
    "bisquare": Robust("bisquare"),
    "tls": TotalLeastSquares(),
    "rtls": RestrictedTotalLeastSquares(),
}


@dataclass(frozen=True)
class PhysicallyConsistent:
    """min ½‖R(Mθ) − y‖² + strength·Σ_i (tr P⁰_i⁻¹P_i − log det P⁰_i⁻¹P_i), P_i ≻ 0, terms within their bounds.

    P_i is the pseudo-inertia of link i (Wensing, Kim & Slotine 2018): positive definite iff a body of positive density
    has these ten parameters. R and y are the triangle of the free fit, in standard deviations of its noise
    (correlation in time allowed for). The log-det divergence from a reference body P⁰ (Lee, Wensing & Park 2020)
    decides what the data do not show; it moves what they do show by a few percent of a standard error (measured:
    docs/theory/physical-consistency.md). References are the prior's links; where there are none, rods from joint to
    joint of the density that fits the data best.

    Attributes:
        weighting: the free fit that it starts from: "wls", "ols", "huber", "bisquare", "tls" or "rtls".
        strength: of the divergence; 0: none.
        margin: how far inside the links stay: P_i ⪰ margin·P⁰_i.
        total_mass: bounds of the mass of all moving links (kg).
        masses: bounds of single links by name (kg).
        solver: "newton" (own) or "clarabel" (through CVXPY).
    """

    weighting: Weighting = "wls"
    strength: float = 0.05
    margin: float = 1e-6
    total_mass: Bounds | None = None
    masses: Mapping[str, Bounds] = field(default_factory=dict)
    solver: Literal["newton", "clarabel"] = "newton"

    def __post_init__(self) -> None:
        if self.weighting not in _WEIGHTINGS:
            raise UnknownNameError("weighting", self.weighting, _WEIGHTINGS)
        if self.solver not in ("newton", "clarabel"):
            raise UnknownNameError("solver", self.solver, ("newton", "clarabel"))
        if not self.strength >= 0.0 or not 0.0 < self.margin < 0.1:
            raise EstimationError("strength must not be negative, and margin lies between 0 and 0.1.")

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.fit_both(data, base, prior)[1]

    def fit_both(
        self, data: RegressionData, base: BaseParameters, prior: Prior | None = None
    ) -> tuple[Estimate, Estimate]:
        """The free fit it starts from, and the physically possible one."""
        free = _WEIGHTINGS[self.weighting].free(data, base)
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
        smallest = smallest_pseudo_eigenvalues(theta[: 10 * len(base.robot.links)])
        if smallest.min() <= 0.0:  # cannot happen inside the cones, but a wrong model must never leave this room
            raise EstimationError(f"Link '{base.robot.links[int(smallest.argmin())].name}' came out impossible.")
        rise = float(np.sum((R @ (beta - free.beta)) ** 2))
        shares = boundary_shares(made, found.x)
        percent = 100.0 * rise * slower / max(float(free.problem.rows.sum()) - base.rank, 1.0)
        notes = [*free.notes, *made.notes, *_boundary_notes(shares)]
        result = free.result
        if not found.converged:
            result = Result.NOT_CONVERGED
            notes.append("The constrained fit stopped short of its optimum; it is physically possible nevertheless.")
        elif shares and result is Result.CONVERGED:
            result = Result.BOUNDARY
        if rise > 1.0:
            notes.append(
                f"Against the free fit the weighted sum of squares rose by {rise:.3g} σ² ({percent:.2g} %), for "
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
            spread=free.problem.spreads(beta, joined, free.weights) if free.influence is None else free.spread,
            cost=float(np.sum((joined[:, :-1] @ beta - joined[:, -1]) ** 2)),
            result=result,
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
