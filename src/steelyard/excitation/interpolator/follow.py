"""The joints' way while the tool follows a line or a circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.errors import ProgramError
from steelyard.excitation.interpolator.compose import Curved
from steelyard.excitation.interpolator.profile import MotionLimits, Ramp, profile
from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.inverse import InverseKinematics, Pose, ReachError
from steelyard.robot.kinematics.numerical import rotation_vector
from steelyard.robot.spatial import rotation_about


@dataclass(frozen=True, eq=False)
class Path:
    """A way of the tool: `pose(s)` for s from 0 to 1, its length (m) and how far the tool turns on it (rad)."""

    pose: Callable[[float], Pose]
    length: float
    turn: float


def line(start: Pose, end: Pose) -> Path:
    """The straight way from pose to pose."""
    step = end.position - start.position
    rotate, turn = _turning(start, end)
    return Path(lambda s: Pose(start.position + s * step, rotate(s)), float(np.linalg.norm(step)), turn)


def circle(start: Pose, via: Pose, end: Pose) -> Path:
    """The arc from pose to pose through the place of `via`."""
    a, b = via.position - start.position, end.position - start.position
    normal = np.cross(a, b)
    size = float(normal @ normal)
    # Points within a ten-thousandth of a straight line make no circle that a robot could follow.
    if size <= 1e-8 * float(a @ a) * float(b @ b) or not size > 0.0:
        raise ProgramError(
            f"The points {start}, {via} and {end} lie on one line; a circle needs three points off it (or use a line)."
        )
    centre = start.position + np.cross((a @ a) * b - (b @ b) * a, normal) / (2.0 * size)
    axis = normal / np.sqrt(size)
    arm = start.position - centre
    side = np.cross(axis, arm)
    angle = float(np.arctan2((end.position - centre) @ side, (end.position - centre) @ arm)) % (2.0 * np.pi)
    rotate, turn = _turning(start, end)
    return Path(
        lambda s: Pose(centre + np.cos(s * angle) * arm + np.sin(s * angle) * side, rotate(s)),
        angle * float(np.linalg.norm(arm)),
        turn,
    )


def _turning(start: Pose, end: Pose) -> tuple[Callable[[float], Array | None], float]:
    """The even turn between two orientations; none where the end leaves the orientation open."""
    if start.rotation is None or end.rotation is None:
        return (lambda s: None), 0.0
    first = start.rotation
    vector = rotation_vector(end.rotation @ first.T)
    turn = float(np.linalg.norm(vector))
    if turn < 1e-12:
        return (lambda s: first), 0.0
    return (lambda s: rotation_about(vector / turn, s * turn) @ first), turn


# From one point to the next (some millimetres) no joint turns this far (rad) unless the solution's branch changes.
_JUMP = 0.5
_FEWEST = 24
_MOST = 2000
# Metres: a fifth of what good industrial arms repeat to (0.05 mm).
_ACCURACY = 1e-5


def follow(
    path: Path, solver: InverseKinematics, q: Array, speed: float, fly: float, limits: MotionLimits, cycle: float
) -> Curved | None:
    """The course along a path, solved for the joints about once every `cycle` (s). None: the path is a point."""
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
            return Curved(velocity, ramp, fly, curve, count)
        count *= 2


def _deviation(path: Path, solver: InverseKinematics, curve: Any, s: Array) -> float:
    """How far the tool is off its path (m) midway between the points that were solved for."""
    middles = (s[:-1] + s[1:]) / 2.0
    _, places = solver.tip.forward(curve(middles))
    wanted = np.array([path.pose(float(part)).position for part in middles])
    return float(np.linalg.norm(places - wanted, axis=1).max())


def _bounds(path: Path, speed: float, limits: MotionLimits) -> tuple[float, Ramp] | None:
    """Of s, which runs from 0 to 1: place and orientation move in step, the slower one sets the pace."""
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
            raise ProgramError(f"{100 * part:.0f} % along the way the tool gets out of reach. {error}") from None
        if np.max(np.abs(postures[-1] - postures[-2])) > _JUMP:
            raise ProgramError(
                f"{100 * part:.0f} % along the way, at {pose}, the joints would have to jump: the tool passes a "
                "singular posture or a joint's limit there. Start in another posture, or use a joint move."
            )
    return np.array(postures)
