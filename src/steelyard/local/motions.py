"""Random via-point motions inside a region, as a robot controller would run them."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.local.region import CartesianRegion, Region
from steelyard.robot.kinematics.inverse import Pose, ReachError
from steelyard.robot.kinematics.numerical import random_starts, solve_from
from steelyard.robot.robot import Robot

# Largest distance of the point from its target [m].
_POSITION_TOLERANCE_M = 1e-6
# Random positions tried per posture before a region counts as out of reach.
_TRIES_PER_POSTURE = 20
# A box is reachable if its middle or one of this many random positions is.
_REACH_SAMPLES = 4


def _position_limits(robot: Robot) -> tuple[Array, Array]:
    """Joint limits [rad, m]; infinite for joints without limits."""
    return np.array([j.lower for j in robot.joints]), np.array([j.upper for j in robot.joints])


def home_posture(robot: Robot, region: Region, seed: int = 0) -> Array:
    """Find a posture near the middle of a region, far from joint limits and singularities.

    Args:
        robot: The robot.
        region: The region.
        seed: Seed of the candidates; the best one is returned.

    Returns:
        Joint positions [rad, m], shape (joints,).
    """
    low, high = _position_limits(robot)
    if not isinstance(region, CartesianRegion):
        return np.clip(region.middle, np.maximum(low, region.lower), np.minimum(high, region.upper))
    tip = region.tip(robot)
    rng = np.random.default_rng(seed)
    positions = [region.middle, *rng.uniform(region.lower, region.upper, (_REACH_SAMPLES, 3))]
    for position in positions:
        q, missing = solve_from(tip, Pose(position), random_starts(low, high, seed), low, high)
        good = q[missing <= _POSITION_TOLERANCE_M]
        if len(good):
            return np.asarray(good[int(np.argmax(_clearance(region, robot, good, low, high)))])
    corners = ["(" + ", ".join(f"{v:g}" for v in x) + ")" for x in (region.lower, region.upper)]
    raise LocalError(
        f"The arm cannot reach region '{region.name}': no posture puts the point into the box "
        f"{corners[0]} … {corners[1]} m; move the box, or name another frame."
    )


def sample_postures(
    robot: Robot, region: Region, count: int, rng: np.random.Generator, home: ArrayLike | None = None
) -> Array:
    """Draw random postures inside a region.

    For a box of joints the postures are uniform. For a box in space the position of the point is uniform; the posture
    is the nearest to a random one around `home`.

    Args:
        robot: The robot.
        region: The region.
        count: Number of postures.
        rng: Random generator.
        home: Middle of the random start postures [rad, m]; None: `home_posture`.

    Returns:
        Joint positions [rad, m], shape (count, joints).
    """
    low, high = _position_limits(robot)
    if not isinstance(region, CartesianRegion):
        region.check(robot)
        return rng.uniform(np.maximum(region.lower, low), np.minimum(region.upper, high), (count, robot.dof))
    tip = region.tip(robot)
    centre = home_posture(robot, region) if home is None else np.asarray(home, dtype=float)
    postures: list[Array] = []
    for _ in range(_TRIES_PER_POSTURE * count):
        start = np.clip(centre + rng.uniform(-region.half_width, region.half_width, robot.dof), low, high)
        position = Pose(rng.uniform(region.lower, region.upper))
        q, missing = solve_from(tip, position, start[None], low, high)
        if missing[0] <= _POSITION_TOLERANCE_M:
            postures.append(q[0])
        if len(postures) == count:
            return np.array(postures)
    raise ReachError(
        f"{robot.name} reaches only {len(postures)} of {_TRIES_PER_POSTURE * count} random positions in region "
        f"'{region.name}'; make the box smaller or move it."
    )


def _clearance(region: CartesianRegion, robot: Robot, q: Array, low: Array, high: Array) -> Array:
    """Score of a posture: distance to the joint limits (share of the range) times mobility of the point."""
    finite = np.isfinite(low) & np.isfinite(high)
    range_ = np.where(finite, high - low, 1.0)
    share = np.where(finite, np.minimum(q - low, high - q) / range_, 0.5).min(axis=1)
    J = region.tip(robot).jacobian(q)[0]
    mobility = np.linalg.svd(J, compute_uv=False)[:, -1]
    # The distance to the limits counts up to 0.2 only, so that it cannot make up for a singularity, or the reverse.
    return np.asarray(np.minimum(share, 0.2) * (1e-3 + mobility))


# Time step of the check that a motion is inside its region [s]: at 2 m/s the point moves 2 cm.
_CHECK_STEP_S = 0.01
_SHRINK_TRIES = 60
_CHECKS_PER_MOVE = 24
# Full acceleration is reached after a tenth of a second, as in controllers that limit jerk to protect the gears.
_RAMPS_PER_SECOND = 10.0
# If a motion leaves the region, its via-points are moved towards the middle by this factor; the box is convex.
_SHRINK_FACTOR = 0.93
# A motion that needs too much torque is slowed down by this factor, repeatedly.
_SLOWDOWN_STEP = 1.08
_MAX_SLOWDOWN = 20.0
_REPEATED = "steelyard-repeated-1"


@dataclass(frozen=True, eq=False)
class ViaPointMotion(ProgramMotion):
    """A program's motion, played slower than the controller would by the factor `slowdown`."""

    slowdown: float = 1.0

    @staticmethod
    def of(motion: ProgramMotion, slowdown: float = 1.0) -> ViaPointMotion:
        """Slow a motion down.

        Args:
            motion: The motion.
            slowdown: Factor of its duration.
        """
        # A piece depends on its relative time from 0 to 1: a longer piece is the same path at less speed.
        times = motion.breaks * slowdown, motion.via_times * slowdown
        return ViaPointMotion(motion.program, times[0], motion.table, times[1], motion.via_postures, slowdown)


@short_repr
@dataclass(frozen=True, eq=False)
class Repeated:
    """A motion that ends where it starts, at rest, and is played `times` times."""

    motion: Trajectory
    times: int

    @property
    def duration(self) -> float:
        return self.times * self.motion.duration

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return positions [rad, m], velocities and accelerations (samples, joints) at times `t` [s]."""
        time = np.asarray(t, dtype=float)
        return self.motion.sample(np.where(time >= self.duration, self.motion.duration, time % self.motion.duration))


class MotionLike(Protocol):
    """A motion: a `Trajectory`, a `ProgramMotion`, or any object with these two members. Times `t` are in s."""

    @property
    def duration(self) -> float: ...

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]: ...


def _motion_limits(robot: Robot) -> MotionLimits:
    """The robot's own limits; missing ones are the defaults of the excitation."""
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
    """Draw a joint-move program through random postures of a region that never leaves it.

    If the straight lines between the postures leave the box, the via-points are moved towards the middle.

    Args:
        robot: The robot.
        region: The region.
        rng: Random generator.
        points: Number of via-points.
        speed: Range of the speed, as shares of the velocity limits; one speed is drawn for all moves.
        fly: Share of a move's deceleration that overlaps with the next move, 0 to 1.
        home: Posture at start and end [rad, m]; None: `home_posture`.
        limits: Limits of the motion; None: those of the robot.
        model: If given, a motion that exceeds the torque limits is slowed down.
    """
    if points < 1:
        raise LocalError(f"points is {points}; a motion needs at least one via-point.")
    start = home_posture(robot, region) if home is None else np.asarray(home, dtype=float)
    used = limits or _motion_limits(robot)
    targets = sample_postures(robot, region, points + 1, rng, start)
    share = float(rng.uniform(*speed))
    return _inside(robot, region, targets, share, fly, used, model, start)


def _inside(
    robot: Robot, region: Region, targets: Array, share: float, fly: float, limits: MotionLimits, model: Model | None,
    middle: Array,
) -> ViaPointMotion:  # fmt: skip
    for _ in range(_SHRINK_TRIES):
        # Fly-by stays near the straight lines between via-points, which are quick to check.
        if np.min(region.depth(robot, _straight_lines(targets))) >= 0.0:
            ends = [fly] * (len(targets) - 2) + [0.0]
            moves = [JointMove(tuple(q), share, end) for q, end in zip(targets[1:], ends, strict=True)]
            with suppress(ProgramError):
                motion = interpolate(robot, Program(tuple(targets[0]), tuple(moves)), limits)
                if np.min(region.depth(robot, motion.sample(sample_times(motion))[0])) >= 0.0:
                    return _within_torque_limits(motion, model)
        targets = middle + _SHRINK_FACTOR * (targets - middle)
    raise LocalError(
        f"No motion of {len(targets) - 1} via-points stays inside region '{region.name}'; make the box larger, or its "
        "half_width (in files: spread) smaller."
    )


def _straight_lines(targets: Array) -> Array:
    """Postures on the straight lines in joint space between via-points."""
    part = np.linspace(0.0, 1.0, _CHECKS_PER_MOVE)[:, None, None]
    lines = targets[:-1] + part * (targets[1:] - targets[:-1])
    return np.asarray(lines.reshape(-1, targets.shape[1]))


def _within_torque_limits(motion: ProgramMotion, model: Model | None) -> ViaPointMotion:
    """Slow the motion down until its torques are within the limits."""
    slower = ViaPointMotion.of(motion)
    while model is not None and _too_much_torque(model, slower):
        slower = ViaPointMotion.of(motion, slower.slowdown * _SLOWDOWN_STEP)
        if slower.slowdown > _MAX_SLOWDOWN:
            raise LocalError(
                f"Even {_MAX_SLOWDOWN:g} times slower, a motion needs more torque than '{model.robot.name}' has; "
                "check its effort limits and its masses."
            )
    return slower


def sample_times(motion: MotionLike) -> Array:
    """Return evenly spaced times [s] over a `motion`, both ends included."""
    return np.linspace(0.0, motion.duration, max(2, int(np.ceil(motion.duration / _CHECK_STEP_S)) + 1))


def _too_much_torque(model: Model, motion: MotionLike) -> bool:
    """Whether a motion exceeds the robot's torque limits."""
    effort = np.array([j.effort if j.effort > 0.0 else np.inf for j in model.robot.joints])
    return bool(np.any(np.abs(model.torque(*motion.sample(sample_times(motion)))) > effort))


def motion_to_dict(motion: MotionLike) -> dict[str, Any]:
    """Convert a `motion` to plain data."""
    if isinstance(motion, Trajectory):
        return motion.to_dict()
    if isinstance(motion, Repeated):
        return {"format": _REPEATED, "times": motion.times, "motion": motion.motion.to_dict()}
    if isinstance(motion, ProgramMotion):
        return {**program_to_dict(motion.program), "slowed": getattr(motion, "slowdown", 1.0)}
    raise LocalError(f"A motion of type {type(motion).__name__} cannot be written; use a trajectory or a program.")


def motion_from_dict(data: dict[str, Any] | Field, robot: Robot, limits: MotionLimits | None = None) -> MotionLike:
    """Read a motion from the data of `motion_to_dict`.

    Args:
        data: Plain data.
        robot: The robot.
        limits: Limits for the interpolation of a program; None: those of the robot.
    """
    entry = data if isinstance(data, Field) else Field(data, "motion", error=LocalError, exact=True)
    content = entry.table((), ("format", "slowed"), others=True)
    kind = content["format"].value if "format" in content else ""
    if str(kind).startswith("steelyard-program"):
        motion = interpolate(robot, program_from_dict(entry), limits or _motion_limits(robot))
        return ViaPointMotion.of(motion, content["slowed"].number(low=1.0, high=1e6) if "slowed" in content else 1.0)
    if kind == _REPEATED:
        repeated = entry.table(("motion", "times"), others=True)
        return Repeated(Trajectory.from_field(repeated["motion"]), repeated["times"].whole(1, 10_000))
    return Trajectory.from_field(entry)
