"""Limits of space: points of links that stay inside boxes or on one side of planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.function import trace
from steelyard.dynamics.kinematics import base_pose, placements
from steelyard.errors import UnknownNameError
from steelyard.excitation.constraints.traced_limit import TracedLimit
from steelyard.excitation.error import ExcitationError
from steelyard.excitation.trajectories import Family
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.scalars import Vector, dot, matvec, plus


@dataclass(frozen=True)
class Point:
    """A point of a link, `offset` (m) from the origin of the link's joint frame; `radius` of a ball around it (m)."""

    link: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius: float = 0.0


@dataclass(frozen=True)
class Plane:
    """The points stay where normal·p ≤ distance (base frame, m); the normal may have any length."""

    normal: tuple[float, float, float]
    distance: float

    @staticmethod
    def floor(height: float = 0.0) -> Plane:
        """Nothing below this height."""
        return Plane((0.0, 0.0, -1.0), -height)


def box(lower: Sequence[float], upper: Sequence[float]) -> tuple[Plane, ...]:
    """The six planes of a box with these corners (base frame, m)."""
    if not all(a < b for a, b in zip(lower, upper, strict=True)):
        raise ExcitationError(f"The box {tuple(lower)} … {tuple(upper)} is empty; every lower must be below its upper.")
    axes = [tuple(float(i == k) for i in range(3)) for k in range(3)]
    high = [Plane(a, float(u)) for a, u in zip(axes, upper, strict=True)]  # type: ignore[arg-type]
    low = [Plane(tuple(-x for x in a), -float(u)) for a, u in zip(axes, lower, strict=True)]  # type: ignore[arg-type]
    return (*high, *low)


def workspace(
    robot: Robot, points: Sequence[Point], planes: Sequence[Plane], families: Sequence[Family], grid: Array
) -> TracedLimit:
    """All points on the inner side of all planes; shares are metres."""
    names = robot.link_names
    for point in points:
        if point.link not in names:
            raise UnknownNameError("link", point.link, names)
    units = [np.array(p.normal, dtype=float) for p in planes]
    if not points or not planes or any(np.linalg.norm(u) == 0.0 for u in units):
        raise ExcitationError("A region needs at least one point, one plane, and planes whose normals are not zero.")
    lengths = [float(np.linalg.norm(u)) for u in units]

    def heights(q: Vector) -> dict[tuple[int, ...], Any]:
        poses = base_pose(robot, placements(robot, q))
        out: dict[tuple[int, ...], Any] = {}
        for point in points:
            rotation, origin = poses[names.index(point.link)]
            place = plus(origin, matvec(rotation, list(point.offset)))
            for unit, length in zip(units, lengths, strict=True):
                out[(len(out),)] = dot([float(x) / length for x in unit], place)
        return out

    count = len(points) * len(planes)
    function = trace("heights", {"q": robot.dof}, heights, (count,))
    upper = np.array(
        [p.distance / length - k.radius for k in points for p, length in zip(planes, lengths, strict=True)]
    )
    advice = "give a larger region, or another one that the points can reach"
    return TracedLimit(
        "region", function, np.full(count, -np.inf), upper, np.ones(count), families, grid, advice, metres=True
    )
