"""Draw a motion back towards a calm centre until every constraint holds at every instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints.joint_limits import JointLimits
from steelyard.excitation.constraints.limits import Constraint, Limits
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array

# Steps of the search for how much of the motion can be kept: about one percent is lost at most.
_HALVINGS = 7


def _within_joint_limits(trajectory: Trajectory, centre: Trajectory, limits: JointLimits) -> Trajectory:
    """Each joint's deviation from the centre scaled down by as little as its limits need.

    Extents are convex in the coefficients, so those of a mixture are no wider than the mixture of the extents.
    """
    inside = limits.limits
    scale = np.ones(trajectory.joints)
    for order in limits.orders:
        lower, upper = inside.bounds(order)
        low, high = trajectory.extents(order)
        calm_low, calm_high = centre.extents(order)
        scale = np.minimum(scale, _share(high, calm_high, upper))
        scale = np.minimum(scale, _share(-low, -calm_low, -lower))
    out = _mixed(trajectory, centre, scale)
    for _ in range(60):  # rounding may leave a last bit too much
        shares = limits.shares(out).max(axis=0)
        if shares.max() <= 0.0:
            break
        scale = scale * np.where(shares > 0.0, 1.0 - np.maximum(2.0 * shares, 1e-13), 1.0)
        out = _mixed(trajectory, centre, scale)
    return out


def _share(reached: Array, calm: Array, limit: Array) -> Array:
    """The largest share s ≤ 1 with (1 − s)·calm + s·reached ≤ limit."""
    over = reached > limit
    room = np.maximum(limit - calm, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(over, room / np.where(over, reached - calm, 1.0), 1.0)


def _mixed(trajectory: Trajectory, centre: Trajectory, scale: Array) -> Trajectory:
    x = centre.coefficients.copy()
    for part, s in zip(trajectory.slices, scale, strict=True):
        x[part] += s * (trajectory.coefficients[part] - x[part])
    return trajectory.with_coefficients(x)


def settle(trajectory: Trajectory, centre: Trajectory, constraints: Sequence[Constraint]) -> Trajectory:
    """The motion nearest to `trajectory`, on the way to `centre`, that keeps all `constraints`, surely and everywhere.

    The centre must keep them itself. Joint by joint for joint limits, then all joints together for the rest.
    """
    out = trajectory
    for constraint in constraints:
        if isinstance(constraint, JointLimits):
            out = _within_joint_limits(out, centre, constraint)
    if holds(out, constraints):
        return out
    ones = np.ones(trajectory.joints)

    def fits(share: float) -> bool:
        return holds(_mixed(out, centre, share * ones), constraints)

    # Values grow about as fast as the motion does, so the excess says how much to take away.
    guess = max(0.0, 1.0 - 2.0 * max(c.excess(out) for c in constraints))
    good, bad, halvings = (guess, 1.0, 3) if fits(guess) else (0.0, guess, _HALVINGS)
    for _ in range(halvings):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return _mixed(out, centre, good * ones)


def holds(trajectory: Trajectory, constraints: Sequence[Constraint]) -> bool:
    """Whether `trajectory` keeps all `constraints` at every instant."""
    return all(c.excess(trajectory, enough=0.0) <= 0.0 for c in constraints)


def grid_settled(x: Array, centre: Array, constraints: Sequence[Constraint], halvings: int = 20) -> Array:
    """As `settle` for coefficients `x`, `centre` and `constraints`, on the grids only, by so many `halvings`; quick."""

    def fits(y: Array) -> bool:
        return all(float(c.evaluate(y)[0].max(initial=-1.0)) <= 0.0 for c in constraints if c.smooth)

    if fits(x):
        return x
    good, bad = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if fits(centre + middle * (x - centre)) else (good, middle)
    return centre + good * (x - centre)


# A calm motion that keeps to everything: the centre towards which other motions can be drawn back.


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
    """The calmest motion about a posture that all `constraints` allow. It is `posture` (rad, m; None: the middle of all
    `limits`) if they allow that, else another, drawn by `seed`; of `families`, one per joint."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    low, high = np.minimum(low, limits.middle), np.maximum(high, limits.middle)
    first = limits.middle if posture is None else posture
    starts = [first, *rng.uniform(low, high, (_TRIES - 1, len(first)))]
    for margin in _MARGINS:
        found: list[tuple[float, Array]] = []
        for start in starts:
            q = _settle(start, constraints, margin, limits)
            worst = max(float(c.at_rest(q)[0].max(initial=-1.0)) for c in constraints)
            if worst <= -0.5 * margin and holds(Trajectory.standing(families, q), constraints):
                return Trajectory.standing(families, q)
            found.append((worst, q))
        starts = [q for _, q in sorted(found, key=lambda pair: pair[0])[:_SECOND_TRIES]]
    calm = Trajectory.standing(families, starts[0])
    reason = max(constraints, key=lambda c: c.excess(calm)).blame(calm)
    raise ExcitationError(f"No motion keeps to all limits: even in the calmest that was found, {reason}.")


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
