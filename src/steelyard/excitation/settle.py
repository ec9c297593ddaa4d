"""Settling: draw a motion back towards a calm centre until every constraint holds at every instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints.limits import Constraint, JointLimits, Limits
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array

# Bisection steps for the largest feasible share of the motion: about one percent is lost at most.
_HALVINGS = 7


def _within_joint_limits(trajectory: Trajectory, centre: Trajectory, limits: JointLimits) -> Trajectory:
    """Scale down each joint's deviation from the centre by as little as its limits need.

    Extents are convex in the coefficients, so the extents of a mixture are at most the mixture of the extents.
    """
    inside = limits.limits
    scale = np.ones(trajectory.joints)
    for order in limits.orders:
        lower, upper = inside.bounds(order)
        low, high = trajectory.extents(order)
        calm_low, calm_high = centre.extents(order)
        scale = np.minimum(scale, _share(high, calm_high, upper))
        scale = np.minimum(scale, _share(-low, -calm_low, -lower))
    out = _mix(trajectory, centre, scale)
    for _ in range(60):  # rounding may leave a tiny excess
        shares = limits.shares(out).max(axis=0)
        if shares.max() <= 0.0:
            break
        scale = scale * np.where(shares > 0.0, 1.0 - np.maximum(2.0 * shares, 1e-13), 1.0)
        out = _mix(trajectory, centre, scale)
    return out


def _share(reached: Array, calm: Array, limit: Array) -> Array:
    """Return the largest share s ≤ 1 with (1 − s)·calm + s·reached ≤ limit."""
    over = reached > limit
    room = np.maximum(limit - calm, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(over, room / np.where(over, reached - calm, 1.0), 1.0)


def _mix(trajectory: Trajectory, centre: Trajectory, scale: Array) -> Trajectory:
    x = centre.coefficients.copy()
    for part, s in zip(trajectory.slices, scale, strict=True):
        x[part] += s * (trajectory.coefficients[part] - x[part])
    return trajectory.with_coefficients(x)


def settle(trajectory: Trajectory, centre: Trajectory, constraints: Sequence[Constraint]) -> Trajectory:
    """Draw a motion back towards the centre until it certainly keeps all constraints at every instant.

    Joint by joint for joint limits, then all joints together for the rest.

    Args:
        trajectory: The motion.
        centre: A calm motion that keeps all constraints.
        constraints: The constraints.
    """
    out = trajectory
    for constraint in constraints:
        if isinstance(constraint, JointLimits):
            out = _within_joint_limits(out, centre, constraint)
    if holds(out, constraints):
        return out
    ones = np.ones(trajectory.joints)

    def fits(share: float) -> bool:
        return holds(_mix(out, centre, share * ones), constraints)

    # Values grow about as fast as the motion, so the excess predicts the necessary reduction.
    guess = max(0.0, 1.0 - 2.0 * max(c.excess(out) for c in constraints))
    good, bad, halvings = (guess, 1.0, 3) if fits(guess) else (0.0, guess, _HALVINGS)
    for _ in range(halvings):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return _mix(out, centre, good * ones)


def holds(trajectory: Trajectory, constraints: Sequence[Constraint]) -> bool:
    """Check whether a motion keeps all constraints at every instant.

    Args:
        trajectory: The motion.
        constraints: The constraints.
    """
    return all(c.excess(trajectory, enough=0.0) <= 0.0 for c in constraints)


def settle_on_grid(x: Array, centre: Array, constraints: Sequence[Constraint], halvings: int = 20) -> Array:
    """Settle coefficients on the constraints' grids only, which is quick.

    Args:
        x: Coefficients.
        centre: Coefficients of a calm motion.
        constraints: The constraints.
        halvings: Bisection steps.
    """

    def fits(y: Array) -> bool:
        return all(float(c.evaluate(y)[0].max(initial=-1.0)) <= 0.0 for c in constraints if c.smooth)

    if fits(x):
        return x
    good, bad = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(centre + middle * (x - centre)) else (good, middle)
    return centre + good * (x - centre)


_TRIES = 24
# A posture far from all limits leaves room to move: require this margin (a share of the limits, or m) first, then
# smaller ones from the best postures.
_MARGINS = (0.2, 0.02, 0.0)
_SECOND_TRIES = 6


def find_centre(
    families: Sequence[Family],
    limits: Limits,
    constraints: Sequence[Constraint],
    seed: int,
    posture: Array | None = None,
) -> Trajectory:
    """Find a calm motion about a posture that all constraints allow, towards which other motions can be drawn back.

    Args:
        families: Family of each joint.
        limits: Limits of the joints.
        constraints: The constraints.
        seed: Seed of the postures that are tried.
        posture: First posture to try [rad, m]; None: the middle of the limits.
    """
    rng = np.random.default_rng(seed)
    low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    low, high = np.minimum(low, limits.middle), np.maximum(high, limits.middle)
    first = limits.middle if posture is None else posture
    starts = [first, *rng.uniform(low, high, (_TRIES - 1, len(first)))]
    for margin in _MARGINS:
        candidates: list[tuple[float, Array]] = []
        for start in starts:
            q = _settle_posture(start, constraints, margin, limits)
            worst = max(float(c.at_rest(q)[0].max(initial=-1.0)) for c in constraints)
            if worst <= -0.5 * margin and holds(Trajectory.standing(families, q), constraints):
                return Trajectory.standing(families, q)
            candidates.append((worst, q))
        starts = [q for _, q in sorted(candidates, key=lambda pair: pair[0])[:_SECOND_TRIES]]
    calm = Trajectory.standing(families, starts[0])
    reason = max(constraints, key=lambda c: c.excess(calm)).blame(calm)
    raise ExcitationError(f"No motion within all limits was found: even in the calmest one, {reason}.")


def _settle_posture(start: Array, constraints: Sequence[Constraint], margin: float, limits: Limits) -> Array:
    """Find a posture near `start`, within the joint limits, with the smallest excess over the constraints."""

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
