"""Closed-form inverse kinematics of six-axis arms with three parallel axes (the UR family).

Covered: six revolute joints in a row, none coupled; axes 2, 3 and 4 parallel and apart, axes 1 and 5 not parallel
to them; axes 5 and 6 meet and are not parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.robot.inverse_kinematics_subproblems import (
    angle_about,
    angle_onto,
    angles_to_distance,
    angles_to_height,
    turned,
)
from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class ParallelArm:
    """In the zero posture: `axes` (6, 3); `column` a point on axis 1; from there to axis 2, on to axis 3, to axis 4 and
    to where axes 5 and 6 meet (`upper`, `fore`, `under`, `hand`); the tip's rotation, and that point seen from it.
    """

    axes: Array
    column: Array
    upper: Array
    fore: Array
    under: Array
    hand: Array
    tip_rotation: Array
    centre_in_tip: Array

    def branches(self, rotation: Array, position: Array, free: Array) -> Iterator[Array]:
        """All candidates (up to eight) for the tip's pose; `free` fills angles that a singular posture leaves open.

        Along the parallel axes only joint 1 moves the meeting point, and only joint 5 tilts axis 6; joints 2, 3, 4
        together turn by what is left, and as a planar arm they reach the place.
        """
        h1, h2, _, _, h5, h6 = self.axes
        centre = position + rotation @ self.centre_in_tip - self.column
        aim = rotation @ self.tip_rotation.T
        height = float(h2 @ (self.upper + self.fore + self.under + self.hand))
        for q1 in angles_to_height(h2, -h1, centre, height, float(free[0])):
            back = turned(h1, -q1)
            seen, facing = back @ centre - self.upper, back @ aim
            for q5 in angles_to_height(h2, h5, h6, float(h2 @ facing @ h6), float(free[4])):
                bent = turned(h5, q5)
                turn = angle_onto(h2, bent @ h6, facing @ h6, self._sum(free))
                q6 = angle_about(h6, bent.T @ turned(h2, -turn) @ facing)
                for q2, q3, q4 in self._plane(seen - turned(h2, turn) @ self.hand, turn, free):
                    yield np.array([q1, q2, q3, q4, q5, q6])

    def _signs(self) -> tuple[float, float]:
        """Whether axes 3 and 4 point along axis 2 or against it."""
        return float(np.sign(self.axes[2] @ self.axes[1])), float(np.sign(self.axes[3] @ self.axes[1]))

    def _sum(self, q: Array) -> float:
        third, fourth = self._signs()
        return float(q[1] + third * q[2] + fourth * q[3])

    def _plane(self, reach: Array, turn: float, free: Array) -> Iterator[tuple[float, float, float]]:
        h2, h3 = self.axes[1], self.axes[2]
        third, fourth = self._signs()
        # Only what lies across the axes matters to a planar arm.
        flat = [v - h2 * (h2 @ v) for v in (reach, self.fore, self.under)]
        for q3 in angles_to_distance(h3, flat[2], -flat[1], float(np.linalg.norm(flat[0])), float(free[2])):
            q2 = angle_onto(h2, flat[1] + turned(h3, q3) @ flat[2], flat[0], float(free[1]))
            yield q2, q3, fourth * (turn - q2 - third * q3)
