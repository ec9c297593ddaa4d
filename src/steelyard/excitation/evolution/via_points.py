"""`ViaPoints`: genes of via-point programs for a robot's own controller (Pedrocchi et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.native.move_programs import play_moves
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits, Limits
from steelyard.excitation.evolution.genome import Signals
from steelyard.excitation.interpolator import (
    MotionLimits,
    Program,
    ProgramError,
    ProgramMotion,
    ProgramRegion,
    rpy,
)
from steelyard.excitation.interpolator._compose import NOTHING, path_rates
from steelyard.excitation.interpolator.interpolate import interpolate
from steelyard.excitation.trajectories import Fixed, Trajectory
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotations_from_rpy

# Jerk of a controller's S-curves: it reaches the acceleration limit within a tenth of a second.
_RISES_PER_SECOND = 10.0
# Factor of speed by which a program is slowed down at a time; forty times suffice for any region.
_CALMER = 0.94
# Distance of via-points from the position limits [rad, m], where rounding alone would break the limit.
_HAIR = 1e-9
# Largest rotation of the tool from its orientation in the middle of a box [rad], and the range of speeds of programs as
# shares of the largest.
_TURN, _SPEEDS = 0.8, (0.1, 1.0)


@dataclass(frozen=True, eq=False)
class ViaPoints:
    """Via-points in a region of poses or postures, and one speed: 6 · points + 1 genes for six axes.

    Args:
        robot: The robot.
        region: Bounds of the via-points and the speed.
        points: Number of via-points.
        limits: Limits of the joints; without jerk, velocities are trapezoids.
        start: Posture at the start and end of every program [rad, m]; None: the middle of the region.
        fly: Share of its deceleration that a move overlaps with the next one.
        link: Link that carries the tool; None: the last one.
        tool: Pose of the tool on the link.
        population, rate, genes, trajectory: Arguments of the methods, as in `Genome`.
    """

    robot: Robot
    region: ProgramRegion
    points: int
    limits: Limits
    start: Array | None = None
    fly: float = 0.5
    link: str | None = None
    tool: Pose | None = None

    def __post_init__(self) -> None:
        if self.points < 1:
            raise ExcitationError(f"A program of {self.points} via-points does not move; give at least one.")
        if self.region.space == "joints" and len(self.region.low) != self.robot.dof:
            raise ExcitationError(f"The region bounds {len(self.region.low)} joints; the robot has {self.robot.dof}.")
        if self.start is not None:
            object.__setattr__(self, "start", frozen(self.start))

    @property
    def size(self) -> int:
        return self.region.genes(self.points)

    @property
    def label(self) -> str:
        r = self.region
        return (
            f"{self.points} via-points in {r.space} {r.low.tolist()} … {r.high.tolist()}, speed {r.speed}, "
            f"fly {self.fly}, from {np.asarray(self.home).tolist()}, link {self.link}"
        )

    @cached_property
    def solver(self) -> InverseKinematics:
        return InverseKinematics.of(self.robot, self.link, self.tool)

    @cached_property
    def motion_limits(self) -> MotionLimits:
        own = self.limits
        return MotionLimits(own.lower, own.upper, own.dq, own.ddq, own.jerk)

    @cached_property
    def home(self) -> Array:
        """Posture at the start of every program."""
        if self.start is not None:
            return self.start
        middle = 0.5 * (self.region.low + self.region.high)
        if self.region.space == "joints":
            return frozen(middle)
        from steelyard.robot.kinematics.inverse import ReachError

        pose = Pose.from_rpy(middle[:3], middle[3:])
        near = np.clip(self.limits.middle, self.limits.lower, self.limits.upper)
        try:
            return frozen(self.solver.solve(pose, near))
        except ReachError as error:
            raise ExcitationError(f"The middle of the region, where programs start, is out of reach. {error}") from None

    def program(self, genes: ArrayLike) -> Program | None:
        """Return the closed program of these `genes`, in postures; None if a via-point is out of reach."""
        postures, speed, reached = self._via_points(np.atleast_2d(np.asarray(genes, dtype=float)))
        return Program.through(postures[0], float(speed[0]), self.fly) if reached[0] else None

    def _via_points(self, population: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return postures from home to home (individuals, points + 2, joints), speeds, and whether all are reached."""
        values, speed = self.region.values(population)
        home = np.broadcast_to(self.home, (len(values), self.robot.dof))
        reached = np.ones(len(values), dtype=bool)
        if self.region.space == "joints":
            postures = list(np.clip(values, self.limits.lower + _HAIR, self.limits.upper - _HAIR).swapaxes(0, 1))
        else:
            postures, last = [], home.copy()
            for points in values.swapaxes(0, 1):
                rows = np.flatnonzero(reached)
                turns = rotations_from_rpy(points[rows, 3:])
                last[rows], reached[rows] = self.solver.nearest(turns, points[rows, :3], last[rows])
                postures.append(last.copy())
        table = np.stack([home, *postures, home], axis=1)
        inside = (table >= self.limits.lower) & (table <= self.limits.upper)
        return table, speed, reached & np.all(inside[:, 1:-1], axis=(1, 2))

    def motion(self, genes: ArrayLike) -> ProgramMotion | None:
        program = self.program(genes)
        if program is None:
            return None
        try:
            return interpolate(self.robot, program, self.motion_limits)
        except ProgramError:
            return None

    def signals(self, population: Array, rate: float) -> list[Signals | None]:
        postures, speed, reached = self._via_points(np.asarray(population, dtype=float))
        own = self.motion_limits
        steps = np.diff(postures, axis=1)
        plain = reached & np.all(np.abs(steps).max(axis=2) > NOTHING, axis=1)
        out: list[Signals | None] = [None] * len(population)
        for k in np.flatnonzero(reached & ~plain):  # a move of no length is rare
            motion = self.motion(population[k])
            out[k] = None if motion is None else motion.sample(np.arange(int(motion.duration * rate) + 1) / rate)
        if np.any(plain):
            bounds = np.array([own.velocity, own.acceleration, own.jerk, own.lower, own.upper])
            played = play_moves(self.home, steps[plain], path_rates(steps[plain], speed[plain], own), self.fly, bounds)
            *signals, ends = played.sample(rate)
            begins = np.append(0, ends[:-1])
            for k, pieces, begin, end in zip(np.flatnonzero(plain), played.pieces, begins, ends, strict=True):
                q, dq, ddq = (x[begin:end] for x in signals)
                out[k] = (q, dq, ddq) if pieces else None
        return out

    def trajectory(self, genes: Array) -> Trajectory:
        motion = self.motion(genes)
        assert motion is not None
        return _as_trajectory(motion)

    def calmer(self, genes: Array) -> Array | None:
        slower = np.array(genes)
        low, high = self.region.speed
        speed = low + slower[-1] * (high - low)
        slower[-1] = max(0.0, (_CALMER * speed - low) / max(high - low, 1e-12))
        return None if genes[-1] <= 0.0 else slower

    def constraints(self, trajectory: Trajectory) -> Sequence[Constraint]:
        grid = np.linspace(0.0, trajectory.duration, 65)
        return (JointLimits(self.limits, trajectory.families, grid, self.robot.joint_names),)


def programs_in(
    robot: Robot, points: int, limits: Limits, box: Sequence[float] | None = None, frame: str = ""
) -> ViaPoints:
    """Return via-point programs within limits.

    The via-points are poses of a link in a box, with orientations near that of the arm in the middle of the box, or
    postures within the joints' own ranges.

    Args:
        robot: The robot.
        points: Number of via-points.
        limits: Limits of the joints.
        box: (x0, x1, y0, y1, z0, z1) [m]; None: postures.
        frame: The link; "": the last one.
    """
    own = with_jerk(limits)
    if box is None:
        low, high = np.maximum(own.lower, -np.pi), np.minimum(own.upper, np.pi)
        return ViaPoints(robot, ProgramRegion(low, high, _SPEEDS, "joints"), points, own, link=frame or None)
    x0, x1, y0, y1, z0, z1 = box
    low, high = np.array([x0, y0, z0]), np.array([x1, y1, z1])
    solver = InverseKinematics.of(robot, frame or None)
    rotation, _ = solver.tip.forward(solver.solve(Pose(0.5 * (low + high)), own.middle))
    turn = np.array(rpy(rotation), dtype=float)
    region = ProgramRegion(np.concatenate([low, turn - _TURN]), np.concatenate([high, turn + _TURN]), _SPEEDS)
    return ViaPoints(robot, region, points, own, link=frame or None)


def _as_trajectory(motion: ProgramMotion) -> Trajectory:
    """Convert a program's motion to a trajectory without coefficients."""
    breaks = tuple(motion.breaks.tolist())
    tables = motion.table.transpose(2, 0, 1).tolist()
    families = tuple(Fixed(breaks, tuple(map(tuple, table))) for table in tables)
    return Trajectory(families, np.zeros(0))


def with_jerk(limits: Limits) -> Limits:
    """Return the `limits` with a default for infinite jerks: controllers use S-curves."""
    jerk = np.where(np.isfinite(limits.jerk), limits.jerk, _RISES_PER_SECOND * limits.ddq)
    return Limits(limits.lower, limits.upper, limits.dq, limits.ddq, jerk, limits.tau, limits.power)
