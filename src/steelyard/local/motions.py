"""Random via-point motions inside a region, as a controller would run them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError
from steelyard.excitation import default_limits
from steelyard.excitation.interpolator import (
    JointMove,
    MotionLimits,
    Program,
    ProgramError,
    ProgramMotion,
    interpolate,
    program_from_dict,
    program_to_dict,
)
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.local.region import CartesianRegion, Region
from steelyard.robot.kinematics.inverse import Pose, ReachError
from steelyard.robot.kinematics.numerical import random_starts, solve_from
from steelyard.robot.robot import Robot

# Metres: a posture whose point is this near to where it shall be is there.
_THERE = 1e-6
# Places tried per posture that is asked for, before a region counts as out of reach.
_TRIES = 20
# A box is in reach if its middle is, or one of so many random places in it.
_PLACES = 4


def _position_limits(robot: Robot) -> tuple[Array, Array]:
    """Bounds of the joints (rad, m), infinite where there are none."""
    return np.array([j.lower for j in robot.joints]), np.array([j.upper for j in robot.joints])


def home_posture(robot: Robot, region: Region, seed: int = 0) -> Array:
    """A posture of `robot` (rad, m) near the middle of a `region`, far from joint limits and singularities. The best of
    some that are drawn by `seed`."""
    low, high = _position_limits(robot)
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
    corners = ["(" + ", ".join(f"{v:g}" for v in x) + ")" for x in (region.lower, region.upper)]
    raise LocalError(
        f"The arm cannot reach region '{region.name}': no posture was found that puts the point into the box "
        f"{corners[0]} … {corners[1]} m; move the box, or name another frame."
    )


def sample_postures(
    robot: Robot, region: Region, count: int, rng: np.random.Generator, home: ArrayLike | None = None
) -> Array:
    """Random postures of `robot` inside a `region`, `(count, joints)`, drawn by `rng`: uniform in its box.

    There are `count` of them. In space, the place of the point is drawn, then the posture nearest to one that is drawn
    about `home` (rad, m; None: `home_posture`).
    """
    low, high = _position_limits(robot)
    if not isinstance(region, CartesianRegion):
        region.check(robot)
        return rng.uniform(np.maximum(region.lower, low), np.minimum(region.upper, high), (count, robot.dof))
    tip = region.tip(robot)
    about = home_posture(robot, region) if home is None else np.asarray(home, dtype=float)
    found: list[Array] = []
    for _ in range(_TRIES * count):
        start = np.clip(about + rng.uniform(-region.half_width, region.half_width, robot.dof), low, high)
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


# Between two looks at whether a motion is inside its region (s): at 2 m/s the point moves 2 cm.
_LOOK = 0.01
_motions_TRIES = 60
_LOOKS_PER_WAY = 24
# Full acceleration is there after a tenth of a second, as controllers of industrial robots do it to spare the gears.
_RAMPS_PER_SECOND = 10.0
# Draw the via-points together by this much where a motion leaves the region; the box is convex, so that helps.
_CLOSER = 0.93
# Play a motion that takes too much torque slower by this much, and again, until it does not.
_SLOWER = 1.08
_SLOWEST = 20.0
_REPEATED = "steelyard-repeated-1"


@dataclass(frozen=True, eq=False)
class ViaPointMotion(ProgramMotion):
    """A program's motion, played `slowed` times slower than the controller would."""

    slowed: float = 1.0

    @staticmethod
    def of(motion: ProgramMotion, slowed: float = 1.0) -> ViaPointMotion:
        # Pieces count their own time from 0 to 1, so that longer pieces are the same motion at less speed.
        """The same `motion`, `slowed` times slower."""
        times = motion.breaks * slowed, motion.via_times * slowed
        return ViaPointMotion(motion.program, times[0], motion.table, times[1], motion.via_postures, slowed)


@dataclass(frozen=True, eq=False)
class Repeated:
    """A motion that ends where it starts, at rest, played several times."""

    motion: Trajectory
    times: int

    @property
    def duration(self) -> float:
        return self.times * self.motion.duration

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q (rad, m), q̇, q̈ `(samples, joints)` at times `t` (s)."""
        time = np.asarray(t, dtype=float)
        return self.motion.sample(np.where(time >= self.duration, self.motion.duration, time % self.motion.duration))


class MotionLike(Protocol):
    """What can be played: a `Trajectory`, a `ProgramMotion`, or anything of yours with these two.

    Times `t` are in s.
    """

    @property
    def duration(self) -> float: ...

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]: ...


def _motion_limits(robot: Robot) -> MotionLimits:
    """The robot's own limits; where it states none, those that excitation assumes."""
    own = default_limits(robot)
    low, high = _position_limits(robot)
    return MotionLimits(low, high, own.dq, own.ddq, _RAMPS_PER_SECOND * own.ddq)


def random_motion(
    robot: Robot,
    region: Region,
    rng: np.random.Generator,
    *,
    points: int = 6,
    speed: tuple[float, float] = (0.3, 1.0),
    fly: float = 0.5,
    home: ArrayLike | None = None,
    limits: MotionLimits | None = None,
    model: Model | None = None,
) -> ViaPointMotion:
    """A joint-move program of `robot` past `points` random postures of a `region` that never leaves it.

    The speed, one for all moves, is drawn from `speed` (shares of the velocity limits). With a `model`, a motion that
    would take more torque than the robot states to have is slowed down. Where the straight ways between postures leave
    the box, the via-points are drawn together. `rng` draws; `fly` (0 to 1) says how much of the slowing down of a move
    is given to the next; it starts and ends at `home` (rad, m; None: `home_posture`), within `limits` (None: those of
    the robot).
    """
    if points < 1:
        raise LocalError(f"A motion has {points} via-points; give at least one.")
    start = home_posture(robot, region) if home is None else np.asarray(home, dtype=float)
    used = limits or _motion_limits(robot)
    targets = sample_postures(robot, region, points + 1, rng, start)
    share = float(rng.uniform(*speed))
    return _inside(robot, region, targets, share, fly, used, model, start)


def _inside(
    robot: Robot, region: Region, targets: Array, share: float, fly: float, limits: MotionLimits, model: Model | None,
    middle: Array,
) -> ViaPointMotion:  # fmt: skip
    for _ in range(_motions_TRIES):
        # Fly-by keeps near the straight ways between via-points, which are quick to look at.
        if np.min(region.depth(robot, _straight_ways(targets))) >= 0.0:
            ends = [fly] * (len(targets) - 2) + [0.0]
            moves = [JointMove(tuple(q), share, end) for q, end in zip(targets[1:], ends, strict=True)]
            with suppress(ProgramError):
                motion = interpolate(robot, Program(tuple(targets[0]), tuple(moves)), limits)
                if np.min(region.depth(robot, motion.sample(looks(motion))[0])) >= 0.0:
                    return _bearable(motion, model)
        targets = middle + _CLOSER * (targets - middle)
    raise LocalError(
        f"No motion of {len(targets) - 1} via-points stays inside region '{region.name}'; make the box larger, or its "
        "half_width (in files: spread) smaller."
    )


def _straight_ways(targets: Array) -> Array:
    """Postures on the straight ways in joint space between via-points."""
    part = np.linspace(0.0, 1.0, _LOOKS_PER_WAY)[:, None, None]
    ways = targets[:-1] + part * (targets[1:] - targets[:-1])
    return np.asarray(ways.reshape(-1, targets.shape[1]))


def _bearable(motion: ProgramMotion, model: Model | None) -> ViaPointMotion:
    """The motion, slowed down until the robot's torques suffice."""
    slowed = ViaPointMotion.of(motion)
    while model is not None and _too_much_torque(model, slowed):
        slowed = ViaPointMotion.of(motion, slowed.slowed * _SLOWER)
        if slowed.slowed > _SLOWEST:
            raise LocalError(
                f"Even {_SLOWEST:g} times slower a motion takes more torque than '{model.robot.name}' states to have; "
                "look at its effort limits and its masses."
            )
    return slowed


def looks(motion: MotionLike) -> Array:
    """Times (s) all over a `motion`, both ends included."""
    return np.linspace(0.0, motion.duration, max(2, int(np.ceil(motion.duration / _LOOK)) + 1))


def _too_much_torque(model: Model, motion: MotionLike) -> bool:
    """Whether a motion would take more than the torque that the robot states to have."""
    effort = np.array([j.effort if j.effort > 0.0 else np.inf for j in model.robot.joints])
    return bool(np.any(np.abs(model.torque(*motion.sample(looks(motion)))) > effort))


def motion_to_dict(motion: MotionLike) -> dict[str, Any]:
    """A `motion` as plain data."""
    if isinstance(motion, Trajectory):
        return motion.to_dict()
    if isinstance(motion, Repeated):
        return {"format": _REPEATED, "times": motion.times, "motion": motion.motion.to_dict()}
    if isinstance(motion, ProgramMotion):
        return {**program_to_dict(motion.program), "slowed": getattr(motion, "slowed", 1.0)}
    raise LocalError(f"A motion of type {type(motion).__name__} cannot be written; use a trajectory or a program.")


def motion_from_dict(data: dict[str, Any] | Field, robot: Robot, limits: MotionLimits | None = None) -> MotionLike:
    """A motion of `robot` from `data` of `motion_to_dict`; a program is run again, within the same `limits`. None: the
    robot's own."""
    entry = data if isinstance(data, Field) else Field(data, "motion", error=LocalError, exact=True)
    given = entry.table((), ("format", "slowed"), others=True)
    kind = given["format"].value if "format" in given else ""
    if str(kind).startswith("steelyard-program"):
        motion = interpolate(robot, program_from_dict(entry), limits or _motion_limits(robot))
        return ViaPointMotion.of(motion, given["slowed"].number(low=1.0, high=1e6) if "slowed" in given else 1.0)
    if kind == _REPEATED:
        twice = entry.table(("motion", "times"), others=True)
        return Repeated(Trajectory.from_field(twice["motion"]), twice["times"].whole(1, 10_000))
    return Trajectory.from_field(entry)
