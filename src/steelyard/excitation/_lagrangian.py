"""Minimise under many inequalities: the augmented Lagrangian with exact gradients.

Powell, Hestenes and Rockafellar's form: L(x) = f(x) + Σ (max(0, μ + ρ c(x))² − μ²) / 2ρ, minimised by L-BFGS; then
μ ← max(0, μ + ρ c(x)). Thousands of inequalities cost only their evaluation, and the start need not be feasible
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
# Beyond this the subproblems become stiff; settling the motion removes the remaining violations.
LARGEST_PENALTY = 3e3
GROWTH = 3.0
_MEMORY = 30
# Largest number of inequalities of one constraint in a checkpoint.
_MOST = 10_000_000


@dataclass
class Iterate:
    """State of a minimisation, from which it can continue."""

    x: Array
    multipliers: list[Array] = field(default_factory=list)
    penalty: float = FIRST_PENALTY
    violation: float = np.inf
    evaluations: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON types; multipliers are stored sparsely, since most are zero."""
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
        """Read the state that `to_dict` wrote from a `document` of a checkpoint."""
        table = document.table(("x", "multipliers", "penalty", "evaluations"), ("violation",))
        multipliers = []
        for item in table["multipliers"].items("entry"):
            entry = item.table(("size", "at", "values"))
            m, at = np.zeros(entry["size"].whole(0, _MOST)), entry["at"].array(None)
            if not np.all((at >= 0) & (at < len(m)) & (at % 1 == 0)):
                entry["at"].fail("holds indices outside the multipliers.")
            m[at.astype(int)] = entry["values"].array(len(at))
            multipliers.append(m)
        violation = table["violation"].number() if "violation" in table else np.inf
        return Iterate(
            table["x"].array(None), multipliers, table["penalty"].number(), violation, table["evaluations"].whole()
        )


def step(
    objective: _Objective,
    constraints: Sequence[Constraint],
    start: Iterate,
    iterations: int,
    margins: Sequence[float] | None = None,
) -> Iterate:
    """Perform one outer iteration: minimise the augmented Lagrangian, then update multipliers and penalty.

    Args:
        objective: Value and gradient at x.
        constraints: Inequalities c(x) ≤ 0.
        start: State to continue from.
        iterations: Largest number of L-BFGS iterations.
        margins: Tightening of each constraint, c(x) + margin ≤ 0; None: no tightening.
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
