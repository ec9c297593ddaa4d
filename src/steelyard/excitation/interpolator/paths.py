"""Where the tool is on its way along a line or a circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.excitation.interpolator.error import ProgramError
from steelyard.robot.inverse_kinematics import Pose
from steelyard.robot.inverse_kinematics_target import rotation_vector
from steelyard.robot.spatial import Array, rotation_about


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
