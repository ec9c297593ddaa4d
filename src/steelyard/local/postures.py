"""Postures inside a region: its middle one, and random ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steelyard.local.error import LocalError
from steelyard.local.region import CartesianRegion, Region
from steelyard.robot.inverse_kinematics import Pose, ReachError
from steelyard.robot.inverse_kinematics_numerical import random_starts, solve_from
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

# Metres: a posture whose point is this near to where it shall be is there.
_THERE = 1e-6
# Places tried per posture that is asked for, before a region counts as out of reach.
_TRIES = 20
# A box is in reach if its middle is, or one of so many random places in it.
_PLACES = 4


def position_limits(robot: Robot) -> tuple[Array, Array]:
    """Bounds of the joints (rad, m), infinite where there are none."""
    return np.array([j.lower for j in robot.joints]), np.array([j.upper for j in robot.joints])


def home_posture(robot: Robot, region: Region, seed: int = 0) -> Array:
    """A posture near the middle of a region from which motions have room: far from joint limits and singularities."""
    low, high = position_limits(robot)
    if not isinstance(region, CartesianRegion):
        return np.clip(region.middle, np.maximum(low, region.lower), np.minimum(high, region.upper))
    tip = region.tip(robot)
    rng = np.random.default_rng(seed)
    places = [region.middle, *rng.uniform(region.lower, region.upper, (_PLACES, 3))]
    for place in places:
        q, missing = solve_from(tip, Pose(place), random_starts(low, high, seed), low, high)
        good = q[missing <= _THERE]
        if len(good):
            return np.asarray(good[int(np.argmax(_room(region, robot, good, low, high)))])
    raise LocalError(
        f"The arm cannot reach region '{region.name}': no posture was found that puts the point into the box "
        f"{_corner(region.lower)} … {_corner(region.upper)} m; move the box, or name another frame."
    )


def sample_postures(
    robot: Robot, region: Region, count: int, rng: np.random.Generator, home: ArrayLike | None = None
) -> Array:
    """Random postures inside a region, `(count, joints)`: uniform in its box.

    In space, the place of the point is drawn, then the posture nearest to one that is drawn about `home`.
    """
    low, high = position_limits(robot)
    if not isinstance(region, CartesianRegion):
        region.check(robot)
        return rng.uniform(np.maximum(region.lower, low), np.minimum(region.upper, high), (count, robot.dof))
    tip = region.tip(robot)
    about = home_posture(robot, region) if home is None else np.asarray(home, dtype=float)
    found: list[Array] = []
    for _ in range(_TRIES * count):
        start = np.clip(about + rng.uniform(-region.spread, region.spread, robot.dof), low, high)
        place = Pose(rng.uniform(region.lower, region.upper))
        q, missing = solve_from(tip, place, start[None], low, high)
        if missing[0] <= _THERE:
            found.append(q[0])
        if len(found) == count:
            return np.array(found)
    raise ReachError(
        f"{robot.name} reaches only {len(found)} of {_TRIES * count} random places of region '{region.name}'; "
        "make the box smaller or move it."
    )


def _room(region: CartesianRegion, robot: Robot, q: Array, low: Array, high: Array) -> Array:
    """How free a posture is: distance to the joint limits as a share of the range, times how well the point moves."""
    finite = np.isfinite(low) & np.isfinite(high)
    range_ = np.where(finite, high - low, 1.0)
    share = np.where(finite, np.minimum(q - low, high - q) / range_, 0.5).min(axis=1)
    J = region.tip(robot).jacobian(q)[0]
    ease = np.linalg.svd(J, compute_uv=False)[:, -1]
    # A singular posture with all the room in the world is no home, nor is one at a limit that moves well.
    return np.asarray(np.minimum(share, 0.2) * (1e-3 + ease))


def _corner(x: Array) -> str:
    return "(" + ", ".join(f"{v:g}" for v in x) + ")"
