"""Minimise under many inequalities: the augmented Lagrangian with exact gradients.

Powell, Hestenes and Rockafellar's form: L(x) = f(x) + Σ (max(0, μ + ρ c(x))² − μ²) / 2ρ, minimised by L-BFGS; then
μ ← max(0, μ + ρ c(x)). Thousands of inequalities cost no more than their evaluation, and no feasible start is needed
(Nocedal & Wright 2006, chapter 17).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard.excitation.constraints.limits import Constraint
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field

_Objective = Callable[[Array], tuple[float, Array]]

FIRST_PENALTY = 10.0
# Beyond this the subproblems become stiff; what is left of violations is taken away when the motion settles.
LARGEST_PENALTY = 3e3
GROWTH = 3.0
_MEMORY = 30
# Inequalities on the grid of one constraint.
_MOST = 10_000_000


@dataclass
class Iterate:
    """Where a minimisation stands: all that is needed to go on from here."""

    x: Array
    multipliers: list[Array] = field(default_factory=list)
    penalty: float = FIRST_PENALTY
    violation: float = np.inf
    evaluations: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; multipliers are mostly zero."""
        sparse = []
        for m in self.multipliers:
            where = np.flatnonzero(m)
            sparse.append({"size": len(m), "at": where.tolist(), "values": m[where].tolist()})
        return {
            "x": self.x.tolist(),
            "multipliers": sparse,
            "penalty": self.penalty,
            "violation": None if np.isinf(self.violation) else self.violation,
            "evaluations": self.evaluations,
        }

    @staticmethod
    def from_field(document: Field) -> Iterate:
        """What `to_dict` wrote, as a checkpoint holds it: the table `document`."""
        given = document.table(("x", "multipliers", "penalty", "evaluations"), ("violation",))
        multipliers = []
        for item in given["multipliers"].items("entry"):
            entry = item.table(("size", "at", "values"))
            m, at = np.zeros(entry["size"].whole(0, _MOST)), entry["at"].array(None)
            if not np.all((at >= 0) & (at < len(m)) & (at % 1 == 0)):
                entry["at"].fail("holds places that are not there.")
            m[at.astype(int)] = entry["values"].array(len(at))
            multipliers.append(m)
        violation = given["violation"].number() if "violation" in given else np.inf
        return Iterate(
            given["x"].array(None), multipliers, given["penalty"].number(), violation, given["evaluations"].whole()
        )


def step(
    objective: _Objective,
    constraints: Sequence[Constraint],
    start: Iterate,
    iterations: int,
    margins: Sequence[float] | None = None,
) -> Iterate:
    """One outer iteration: minimise the augmented Lagrangian, then update multipliers and penalty.

    `margins` tighten the constraints: c(x) + margin ≤ 0.
    """
    slack = list(margins) if margins is not None else [0.0] * len(constraints)
    multipliers = start.multipliers or [np.zeros(len(c.evaluate(start.x)[0])) for c in constraints]
    rho, count = start.penalty, 0

    def lagrangian(x: Array) -> tuple[float, Array]:
        nonlocal count
        count += 1
        value, gradient = objective(x)
        for constraint, mu, margin in zip(constraints, multipliers, slack, strict=True):
            values, pull = constraint.evaluate(x)
            push = np.maximum(0.0, mu + rho * (values + margin))
            if push.any():
                value += float(push @ push) / (2.0 * rho)
                gradient = gradient + pull(push)
            value -= float(mu @ mu) / (2.0 * rho)
        return value, gradient

    from scipy.optimize import minimize  # takes a tenth of a second to import

    options = {"maxiter": iterations, "maxcor": _MEMORY, "ftol": 1e-9, "gtol": 1e-5}
    x = minimize(lagrangian, start.x, jac=True, method="L-BFGS-B", options=options).x
    values = [c.evaluate(x)[0] + margin for c, margin in zip(constraints, slack, strict=True)]
    violation = max([0.0, *(float(v.max(initial=0.0)) for v in values)])
    updated = [np.maximum(0.0, mu + rho * v) for mu, v in zip(multipliers, values, strict=True)]
    slow = violation > 0.25 * start.violation and violation > 1e-4
    penalty = min(GROWTH * rho, LARGEST_PENALTY) if slow else rho
    return Iterate(x, updated, penalty, violation, start.evaluations + count)
