"""A calm motion that keeps to everything: the centre towards which other motions can be drawn back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.excitation.constraints.constraint import Constraint
from steelyard.excitation.constraints.limits import Limits
from steelyard.excitation.error import ExcitationError
from steelyard.excitation.settle import holds
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.robot.spatial import Array

_TRIES = 24
# A posture in the middle of what is allowed leaves room to move: ask for this margin (a share of the limits, or m)
# first, and for less from the best postures where that cannot be had.
_MARGINS = (0.2, 0.02, 0.0)
_SECOND_TRIES = 6


def find_centre(
    families: Sequence[Family],
    limits: Limits,
    constraints: Sequence[Constraint],
    seed: int,
    posture: Array | None = None,
) -> Trajectory:
    """The calmest motion about a posture that all constraints allow, `posture` (default: the middle of all limits)
    if it does, else another."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    low, high = np.minimum(low, limits.middle), np.maximum(high, limits.middle)
    first = limits.middle if posture is None else posture
    starts = [first, *rng.uniform(low, high, (_TRIES - 1, len(first)))]
    for margin in _MARGINS:
        found: list[tuple[float, Array]] = []
        for start in starts:
            q = _settle(start, constraints, margin, limits)
            worst = _worst(q, constraints)
            if worst <= -0.5 * margin and holds(Trajectory.standing(families, q), constraints):
                return Trajectory.standing(families, q)
            found.append((worst, q))
        starts = [q for _, q in sorted(found, key=lambda pair: pair[0])[:_SECOND_TRIES]]
    raise ExcitationError(_reason(Trajectory.standing(families, starts[0]), constraints))


def _worst(q: Array, constraints: Sequence[Constraint]) -> float:
    return max(float(c.at_rest(q)[0].max(initial=-1.0)) for c in constraints)


def _settle(start: Array, constraints: Sequence[Constraint], margin: float, limits: Limits) -> Array:
    """The posture near `start`, within the joint limits, that breaks the others, tightened by a margin, least."""

    def penalty(q: Array) -> tuple[float, Array]:
        total, slope = 0.0, np.zeros_like(q)
        for constraint in constraints:
            values, pull = constraint.at_rest(q)
            over = np.maximum(0.0, values + margin)
            if over.any():
                total += 0.5 * float(over @ over)
                slope += pull(over)
        return total, slope

    if penalty(start)[0] == 0.0 or not all(c.smooth for c in constraints):
        return start
    from scipy.optimize import minimize  # takes a tenth of a second to import

    options = {"maxiter": 100, "ftol": 1e-15, "gtol": 1e-12}
    box = list(zip(limits.lower, limits.upper, strict=True))
    return np.asarray(minimize(penalty, start, jac=True, method="L-BFGS-B", bounds=box, options=options).x)


def _reason(calm: Trajectory, constraints: Sequence[Constraint]) -> str:
    worst = max(constraints, key=lambda c: c.excess(calm))
    return f"No motion keeps to all limits: even in the calmest that was found, {worst.blame(calm)}."
