"""`interpolate`: the motion of an industrial controller along a via-point program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.excitation.interpolator._compose import Course, CurvedCourse, Pace, PauseCourse, compose_moves, straight
from steelyard.excitation.interpolator.moves import JointMove, LineMove, Move, Pause, Program
from steelyard.excitation.interpolator.profile import MotionLimits, Ramp, profile
from steelyard.excitation.trajectories._pieces import evaluate, piece_extents
from steelyard.excitation.trajectories.trajectory import SmoothMotion
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose, ReachError
from steelyard.robot.kinematics.numerical import rotation_vector
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_about


@dataclass(frozen=True, eq=False)
class Path:
    """A path of the tool: `pose(s)` for s from 0 to 1, its length [m] and the rotation of the tool along it [rad]."""

    pose: Callable[[float], Pose]
    length: float
    turn: float


def line(start: Pose, end: Pose) -> Path:
    """Return the straight path between two poses.

    Args:
        start: First pose.
        end: Last pose.
    """
    step = end.position - start.position
    rotate, turn = _rotation(start, end)
    return Path(lambda s: Pose(start.position + s * step, rotate(s)), float(np.linalg.norm(step)), turn)


def circle(start: Pose, via: Pose, end: Pose) -> Path:
    """Return the arc through three points.

    Args:
        start: First pose.
        via: Pose of a point on the arc; its orientation is ignored.
        end: Last pose.
    """
    a, b = via.position - start.position, end.position - start.position
    normal = np.cross(a, b)
    size = float(normal @ normal)
    # The circle through points within a ten-thousandth of a straight line is too large for a robot.
    if size <= 1e-8 * float(a @ a) * float(b @ b) or not size > 0.0:
        raise ProgramError(
            f"The points {start}, {via} and {end} are on one line; choose other points for the circle, or use a line."
        )
    centre = start.position + np.cross((a @ a) * b - (b @ b) * a, normal) / (2.0 * size)
    axis = normal / np.sqrt(size)
    arm = start.position - centre
    side = np.cross(axis, arm)
    angle = float(np.arctan2((end.position - centre) @ side, (end.position - centre) @ arm)) % (2.0 * np.pi)
    rotate, turn = _rotation(start, end)
    return Path(
        lambda s: Pose(centre + np.cos(s * angle) * arm + np.sin(s * angle) * side, rotate(s)),
        angle * float(np.linalg.norm(arm)),
        turn,
    )


def _rotation(start: Pose, end: Pose) -> tuple[Callable[[float], Array | None], float]:
    """Return the uniform rotation between two orientations; None if the end leaves the orientation open."""
    if start.rotation is None or end.rotation is None:
        return (lambda s: None), 0.0
    first = start.rotation
    vector = rotation_vector(end.rotation @ first.T)
    turn = float(np.linalg.norm(vector))
    if turn < 1e-12:
        return (lambda s: first), 0.0
    return (lambda s: rotation_about(vector / turn, s * turn) @ first), turn


# A larger step of a joint between points some millimetres apart indicates a change of the solution's branch [rad].
_JUMP = 0.5
_FEWEST = 24
_MOST = 2000
# A fifth of the repeatability of good industrial arms (0.05 mm) [m].
_ACCURACY = 1e-5


def follow(
    path: Path, solver: InverseKinematics, q: Array, speed: float, fly: float, limits: MotionLimits, cycle: float
) -> CurvedCourse | None:
    """Return the course along a path, solved for the joints; None if the path is a point.

    Args:
        path: Path of the tool.
        solver: Inverse kinematics.
        q: Posture at the start [rad, m].
        speed: Speed of the move [m/s].
        fly: Share of its deceleration that overlaps with the next move.
        limits: Limits of the joints and the tool.
        cycle: Approximate time between solved postures [s].
    """
    from scipy.interpolate import make_interp_spline

    bounds = _bounds(path, speed, limits)
    if bounds is None:
        return None
    velocity, ramp = bounds
    count = max(_FEWEST, int(np.ceil(profile(velocity, ramp).duration / cycle)))
    while True:
        s = np.linspace(0.0, 1.0, count + 1)
        curve = make_interp_spline(s, _postures(path, solver, q, s), k=5)
        if _deviation(path, solver, curve, s) <= _ACCURACY or count > _MOST:
            return CurvedCourse(velocity, ramp, fly, curve, count)
        count *= 2


def _deviation(path: Path, solver: InverseKinematics, curve: Any, s: Array) -> float:
    """Return the largest deviation of the tool from its path midway between the solved points [m]."""
    middles = (s[:-1] + s[1:]) / 2.0
    _, positions = solver.tip.forward(curve(middles))
    targets = np.array([path.pose(float(part)).position for part in middles])
    return float(np.linalg.norm(positions - targets, axis=1).max())


def _bounds(path: Path, speed: float, limits: MotionLimits) -> tuple[float, Ramp] | None:
    """Return bounds of s from 0 to 1: position and orientation move synchronously, and the slower one decides."""
    tool, smooth = limits.tool, bool(np.isfinite(limits.jerk).all())
    along = (speed, tool.acceleration, tool.jerk if smooth else np.inf)
    turning = (tool.turn_speed, tool.turn_acceleration, tool.turn_jerk if smooth else np.inf)
    pairs = [(size, rates) for size, rates in ((path.length, along), (path.turn, turning)) if size > 1e-12]
    if not pairs:
        return None
    velocity, acceleration, jerk = (min(rates[k] / size for size, rates in pairs) for k in range(3))
    return velocity, Ramp(acceleration, jerk)


def _postures(path: Path, solver: InverseKinematics, q: Array, s: Array) -> Array:
    postures = [q]
    for part in s[1:]:
        pose = path.pose(float(part))
        try:
            postures.append(solver.solve(pose, near=postures[-1]))
        except ReachError as error:
            raise ProgramError(f"{100 * part:.0f} % along the path the tool is out of reach. {error}") from None
        if np.max(np.abs(postures[-1] - postures[-2])) > _JUMP:
            raise ProgramError(
                f"{100 * part:.0f} % along the path, at {pose}, the joints would have to jump: the tool passes a "
                "singular posture or a joint's limit there. Start in another posture, or use a joint move."
            )
    return np.array(postures)


@dataclass(frozen=True, eq=False)
class ProgramMotion(SmoothMotion):
    """Motion of the joints as polynomial pieces in time, sampled like a `Trajectory`.

    Attributes:
        program: The program.
        breaks: Ends of the pieces [s].
        table: Power coefficients, shape (pieces, powers, joints).
        via_times: Times at which each move's via-point is reached, or passed midway through the overlap [s].
        via_postures: Postures at the via-points [rad, m].
    """

    program: Program
    breaks: Array
    table: Array
    via_times: Array
    via_postures: Array

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.breaks[-1])

    @property
    def joints(self) -> int:
        return int(self.table.shape[2])

    @property
    def periodic(self) -> bool:
        """Whether it ends at rest where it started, so it can be repeated."""
        return bool(np.allclose(self.table[0, 0], self.table[-1].sum(axis=0), rtol=0.0, atol=1e-9))

    def derivative(self, t: ArrayLike, order: int) -> Array:
        """Return a derivative, shape (samples, joints), or (joints,) for one time; at rest before and after the motion.

        Args:
            t: Times [s].
            order: Order of the derivative, 0 to 3.
        """
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
    """Compute the motion of a program: every move as fast as its speed and the limits allow, synchronised, with fly-by.

    Args:
        robot: The robot.
        program: The program.
        limits: Limits of the joints and the tool; the joints' are kept at all times.
        tool: Pose of the tool on the joint frame of `link`.
        link: Link that carries the tool; None: the last one.
        cycle: Approximate time between solved postures on lines and circles, which a spline connects [s].
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
        raise ProgramError("The program does not move: all its via-points equal the start.")
    row = compose_moves(courses, limits)
    table = row.table.copy()
    table[:, 0] += np.array(program.start)
    via_times = row.starts + np.array([segment.duration for segment in row.segments]) - row.overlaps / 2.0
    motion = ProgramMotion(program, row.breaks, table, via_times, np.array(postures))
    _check_range(motion, robot, limits)
    return motion


def _course(
    move: Move, number: int, q: Array, robot: Robot, solver: InverseKinematics, limits: MotionLimits, cycle: float
) -> Course | None:
    if isinstance(move, Pause):
        return PauseCourse(move.seconds, robot.dof)
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


def _check_posture(q: Array, robot: Robot, limits: MotionLimits, name: str) -> None:
    if q.shape != (robot.dof,):
        raise ProgramError(f"{name} has {len(q)} joint positions; the robot has {robot.dof}.")
    for k in np.flatnonzero(~((q >= limits.lower) & (q <= limits.upper)))[:1]:
        raise ProgramError(
            f"{name} has joint '{robot.joint_names[k]}' at {q[k]:.4g} {robot.joints[k].unit}, outside its limits "
            f"{limits.lower[k]:.4g} to {limits.upper[k]:.4g}; move the via-point inside."
        )


def _check_range(motion: ProgramMotion, robot: Robot, limits: MotionLimits) -> None:
    low, high = motion.extents(0)
    # The hull of the Bernstein coefficients touches a via-point at the limit; rounding is no violation.
    over = (low < limits.lower - 1e-9) | (high > limits.upper + 1e-9)
    for k in np.flatnonzero(over)[:1]:
        raise ProgramError(
            f"Along the path joint '{robot.joint_names[k]}' moves from {low[k]:.4g} to {high[k]:.4g} "
            f"{robot.joints[k].unit}, beyond its limits {limits.lower[k]:.4g} to {limits.upper[k]:.4g}; "
            "move the via-points."
        )
