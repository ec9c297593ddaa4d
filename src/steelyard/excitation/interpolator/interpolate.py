"""`interpolate`: the motion that an industrial controller would make of a via-point program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.excitation.interpolator.compose import Course, Pace, Standing, straight, within_limits
from steelyard.excitation.interpolator.follow import circle, follow, line
from steelyard.excitation.interpolator.moves import JointMove, LineMove, Move, Pause, Program
from steelyard.excitation.interpolator.profile import MotionLimits
from steelyard.excitation.trajectories.pieces import evaluate, piece_extents
from steelyard.excitation.trajectories.trajectory import JointMotion
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose, ReachError
from steelyard.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class ProgramMotion(JointMotion):
    """What the joints do: polynomial pieces in time, sampled like a `Trajectory`.

    `via_times` tells when each move's via-point is reached, or passed: midway through the overlap.
    """

    program: Program
    breaks: Array
    table: Array
    via_times: Array
    via_postures: Array

    @property
    def duration(self) -> float:
        """In s."""
        return float(self.breaks[-1])

    @property
    def joints(self) -> int:
        return int(self.table.shape[2])

    @property
    def periodic(self) -> bool:
        """Whether it ends where it started (it rests there, so it may be played again)."""
        return bool(np.allclose(self.table[0, 0], self.table[-1].sum(axis=0), rtol=0.0, atol=1e-9))

    def derivative(self, t: ArrayLike, order: int) -> Array:
        """`(samples, joints)`, or `(joints,)` for a single time; before its start and after its end it stands."""
        values = evaluate(self.breaks, self.table, np.atleast_1d(np.asarray(t, dtype=float)), order)
        return values[0] if np.ndim(t) == 0 else values

    def extents(self, order: int) -> tuple[Array, Array]:
        low, high = piece_extents(self.breaks, self.table, order)
        return low.min(axis=0), high.max(axis=0)


def interpolate(
    robot: Robot,
    program: Program,
    limits: MotionLimits,
    tool: Pose | None = None,
    link: str | None = None,
    cycle: float = 0.008,
) -> ProgramMotion:
    """Runs a program: every move as quick as its speed and the limits allow, joints in step, fly-by where asked.

    Args:
        robot: whose joints move.
        program: where to.
        limits: of the joints and the tool; none of the joints' is exceeded at any time.
        tool: the tool's frame seen from the joint frame of `link` (default: the last link).
        link: the link that carries the tool.
        cycle: how often lines and circles are solved for the joints (s); between, a spline.
    """
    if len(program.start) != robot.dof:
        raise ShapeError(f"The program starts at {len(program.start)} joint positions; the robot has {robot.dof}.")
    solver = InverseKinematics.of(robot, link, tool)
    q = np.array(program.start)
    _check_posture(q, robot, limits, "The start")
    courses: list[Course] = []
    postures: list[Array] = []
    for number, move in enumerate(program.moves, start=1):
        course = _course(move, number, q, robot, solver, limits, cycle)
        if course is not None:
            courses.append(course)
            q = q + course.at(Pace()).table[-1].sum(axis=0)
            postures.append(q)
    if not courses:
        raise ProgramError("The program does not move: all its via-points are the start.")
    row = within_limits(courses, limits)
    table = row.table.copy()
    table[:, 0] += np.array(program.start)
    passed = row.starts + np.array([segment.duration for segment in row.segments]) - row.overlaps / 2.0
    motion = ProgramMotion(program, row.breaks, table, passed, np.array(postures))
    _check_range(motion, robot, limits)
    return motion


def _course(
    move: Move, number: int, q: Array, robot: Robot, solver: InverseKinematics, limits: MotionLimits, cycle: float
) -> Course | None:
    if isinstance(move, Pause):
        return Standing(move.seconds, robot.dof)
    try:
        if isinstance(move, JointMove):
            target = solver.solve(move.target, q) if isinstance(move.target, Pose) else np.array(move.target)
            _check_posture(target, robot, limits, "Its target")
            return straight(target - q, move.speed, move.fly, limits)
        here = solver.tip.pose(q)
        path = line(here, move.target) if isinstance(move, LineMove) else circle(here, move.via, move.target)
        return follow(path, solver, q, move.speed, move.fly, limits, cycle)
    except (ReachError, ProgramError) as error:
        raise ProgramError(f"Move {number}: {error}") from None


def _check_posture(q: Array, robot: Robot, limits: MotionLimits, what: str) -> None:
    if q.shape != (robot.dof,):
        raise ProgramError(f"{what} has {len(q)} joint positions; the robot has {robot.dof}.")
    for k in np.flatnonzero(~((q >= limits.lower) & (q <= limits.upper)))[:1]:
        raise ProgramError(
            f"{what} has joint '{robot.joint_names[k]}' at {q[k]:.4g} {robot.joints[k].unit}, outside its limits "
            f"{limits.lower[k]:.4g} to {limits.upper[k]:.4g}; move the via-point inside."
        )


def _check_range(motion: ProgramMotion, robot: Robot, limits: MotionLimits) -> None:
    low, high = motion.extents(0)
    # The hull of the Bernstein coefficients touches a via-point at the limit itself; rounding is not a violation.
    over = (low < limits.lower - 1e-9) | (high > limits.upper + 1e-9)
    for k in np.flatnonzero(over)[:1]:
        raise ProgramError(
            f"On the way joint '{robot.joint_names[k]}' goes from {low[k]:.4g} to {high[k]:.4g} "
            f"{robot.joints[k].unit}, beyond its limits {limits.lower[k]:.4g} to {limits.upper[k]:.4g}; "
            "move the via-points."
        )
