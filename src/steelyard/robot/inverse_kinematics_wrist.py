"""Closed-form inverse kinematics of six-axis arms with a spherical wrist (Pieper 1968).

Covered: six revolute joints in a row, none coupled; axes 4, 5 and 6 meet in one point, neighbours not parallel; and
either axes 2 and 3 parallel and axis 1 not parallel to them (Puma, ns16, most industrial arms), or axes 1 and 2
meeting, not parallel, with axis 3 beside their common point. Everything else is left to the numerical solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
class WristArm:
    """An arm that can be solved in closed form, in its zero posture: `axes` (6, 3); `column` a point on axis 1;
    `upper`, `fore`, `hand` from there to axis 2, from axis 2 to axis 3, from axis 3 to the wrist's centre;
    the tip's rotation, and the wrist's centre seen from the tip.
    """

    shoulder: Literal["parallel", "meeting"]
    axes: Array
    column: Array
    upper: Array
    fore: Array
    hand: Array
    tip_rotation: Array
    centre_in_tip: Array

    def branches(self, rotation: Array, position: Array, free: Array) -> Iterator[Array]:
        """All candidates (up to eight) for the tip's pose; `free` fills angles that a singular posture leaves open."""
        centre = position + rotation @ self.centre_in_tip
        for first in self._arm(centre - self.column, free):
            arm = turned(self.axes[0], first[0]) @ turned(self.axes[1], first[1]) @ turned(self.axes[2], first[2])
            wrist = arm.T @ rotation @ self.tip_rotation.T
            for last in self._wrist(wrist, free):
                yield np.array([*first, *last])

    def _arm(self, centre: Array, free: Array) -> Iterator[tuple[float, float, float]]:
        solve = self._parallel if self.shoulder == "parallel" else self._meeting
        yield from solve(centre, free)

    def _parallel(self, centre: Array, free: Array) -> Iterator[tuple[float, float, float]]:
        """Along axes 2 and 3 only joint 1 moves the wrist; then the elbow sets the distance, joint 2 the rest."""
        h1, h2, h3 = self.axes[:3]
        height = float(h2 @ (self.upper + self.fore + self.hand))
        for q1 in angles_to_height(h2, -h1, centre, height, float(free[0])):
            seen = turned(h1, -q1) @ centre - self.upper
            for q3 in angles_to_distance(h3, self.hand, -self.fore, float(np.linalg.norm(seen)), float(free[2])):
                q2 = angle_onto(h2, self.fore + turned(h3, q3) @ self.hand, seen, float(free[1]))
                yield q1, q2, q3

    def _meeting(self, centre: Array, free: Array) -> Iterator[tuple[float, float, float]]:
        """Only the elbow sets the distance from the shoulder; joints 1 and 2 then aim (`upper` is zero here)."""
        h1, h2, h3 = self.axes[:3]
        for q3 in angles_to_distance(h3, self.hand, -self.fore, float(np.linalg.norm(centre)), float(free[2])):
            reach = self.fore + turned(h3, q3) @ self.hand
            for q2 in angles_to_height(h1, h2, reach, float(h1 @ centre), float(free[1])):
                yield angle_onto(h1, turned(h2, q2) @ reach, centre, float(free[0])), q2, q3

    def _wrist(self, wrist: Array, free: Array) -> Iterator[tuple[float, float, float]]:
        h4, h5, h6 = self.axes[3:]
        for q5 in angles_to_height(h4, h5, h6, float(h4 @ wrist @ h6), float(free[4])):
            bent = turned(h5, q5)
            q4 = angle_onto(h4, bent @ h6, wrist @ h6, float(free[3]))
            left = bent.T @ turned(h4, q4).T @ wrist
            yield q4, q5, angle_about(h6, left)
