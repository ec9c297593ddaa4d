"""Which arms can be solved in closed form: read off their axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.numerical import Tip
from steelyard.robot.kinematics.poses import link_poses

# The three questions about one rotation to which closed-form inverse kinematics comes down (Paden 1986, Kahan).
#
# R(k, θ) is the turn by θ about the unit vector k. Where there is no exact answer the nearest one is given; the
# caller checks the pose that comes out.


# A vector shorter than this (relative to its partner) has no direction worth trusting: the angle is then free.
_NO_DIRECTION = 1e-9


def cross(a: Array, b: Array) -> Array:
    """a × b; for two single vectors ten times quicker than NumPy's, and it is all that is done here."""
    x, y, z = a
    u, v, w = b
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def _parts(k: Array, p: Array) -> tuple[Array, Array]:
    """The directions in which p moves: R(k, θ) p = sin θ·(k × p) + cos θ·(p − k kᵀp) + k kᵀp."""
    return cross(k, p), p - k * (k @ p)


def angle_onto(k: Array, p: Array, target: Array, free: float = 0.0) -> float:
    """θ with R(k, θ) p as near as possible to `target`; `free` where p or target lies along k."""
    across, along = _parts(k, p)
    s, c = float(across @ target), float(along @ target)
    if np.hypot(s, c) <= _NO_DIRECTION * max(float(np.linalg.norm(p) * np.linalg.norm(target)), 1e-300):
        return free
    return float(np.arctan2(s, c))


def angles_to_height(h: Array, k: Array, p: Array, height: float, free: float = 0.0) -> list[float]:
    """The θ with hᵀ R(k, θ) p = `height`: two, or one where they fall together."""
    across, along = _parts(k, p)
    s, c = float(h @ across), float(h @ along)
    rest = height - float(h @ k) * float(k @ p)
    reach = float(np.hypot(s, c))
    if reach <= _NO_DIRECTION * max(float(np.linalg.norm(p)), 1e-300):
        return [free]
    middle = float(np.arctan2(s, c))
    half = float(np.arccos(np.clip(rest / reach, -1.0, 1.0)))
    return [middle + half, middle - half] if half > 0.0 else [middle]


def angles_to_distance(k: Array, p: Array, target: Array, distance: float, free: float = 0.0) -> list[float]:
    """The θ with |R(k, θ) p − target| = `distance`: a question of height along `target`."""
    height = (float(p @ p) + float(target @ target) - distance**2) / 2.0
    return angles_to_height(target, k, p, height, free)


def turned(k: Array, angle: float) -> Array:
    """R(k, θ)."""
    s, c = np.sin(angle), np.cos(angle)
    cross = np.array([[0.0, -k[2], k[1]], [k[2], 0.0, -k[0]], [-k[1], k[0], 0.0]])
    rotation: Array = c * np.eye(3) + s * cross + (1.0 - c) * np.outer(k, k)
    return rotation


def angle_about(k: Array, rotation: Array) -> float:
    """The angle of a rotation that is known to be about k."""
    side = any_normal(k)
    return angle_onto(k, side, rotation @ side)


def any_normal(k: Array) -> Array:
    """Some unit vector at right angles to k."""
    least = np.eye(3)[int(np.argmin(np.abs(k)))]
    across = cross(k, least)
    unit: Array = across / np.linalg.norm(across)
    return unit


# Closed-form inverse kinematics of six-axis arms with three parallel axes (the UR family).
#
# Covered: six revolute joints in a row, none coupled; axes 2, 3 and 4 parallel and apart, axes 1 and 5 not parallel
# to them; axes 5 and 6 meet and are not parallel.


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


# Closed-form inverse kinematics of six-axis arms with a spherical wrist (Pieper 1968).
#
# Covered: six revolute joints in a row, none coupled; axes 4, 5 and 6 meet in one point, neighbours not parallel; and
# either axes 2 and 3 parallel and axis 1 not parallel to them (Puma, ns16, most industrial arms), or axes 1 and 2
# meeting, not parallel, with axis 3 beside their common point. Everything else is left to the numerical solver.


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


# Axes that miss each other by less than this part of the arm's size, or differ by less than this angle (rad), are
# taken as meeting or parallel: rounding of a description passes, a built-in offset of a tenth of a millimetre does not.
_ROUNDING = 1e-7


def closed_form(tip: Tip) -> WristArm | ParallelArm | None:
    """The closed form for this tip, or None where the arm is of another kind."""
    robot, chain = tip.robot, tip.chain
    links = [robot.links[i] for i in chain]
    plain = all(link.kind == "revolute" and link.ratio == 1.0 for link in links)
    if len(links) != 6 or not plain or [link.coordinate for link in links] != list(range(6)) or robot.dof != 6:
        return None
    rotations, origins = link_poses(robot, np.zeros(6))
    h = np.array([rotations[i] @ robot.links[i].axis for i in chain])
    p = origins[chain]
    near = _ROUNDING * float(np.abs(p - p[0]).max() + 1e-300)
    return _wrist(tip, h, p, near) or _three_parallel(tip, h, p, near)


def _wrist(tip: Tip, h: Array, p: Array, near: float) -> WristArm | None:
    centre = _meeting_point(h[3], p[3], h[4], p[4], near)
    if centre is None or _distance(h[5], p[5], centre) > near or _parallel(h[4], h[5]):
        return None
    if _distance(h[2], p[2], centre) <= near:  # an elbow that does not move the wrist
        return None
    end = _from_tip(tip, centre)
    if _parallel(h[1], h[2]) and not _parallel(h[0], h[1]) and _distance(h[1], p[1], p[2]) > near:
        return WristArm("parallel", h, p[0], p[1] - p[0], p[2] - p[1], centre - p[2], *end)
    shoulder = _meeting_point(h[0], p[0], h[1], p[1], near)
    if shoulder is not None and _distance(h[2], p[2], shoulder) > near:
        return WristArm("meeting", h, shoulder, np.zeros(3), p[2] - shoulder, centre - p[2], *end)
    return None


def _three_parallel(tip: Tip, h: Array, p: Array, near: float) -> ParallelArm | None:
    if not (_parallel(h[1], h[2]) and _parallel(h[1], h[3])) or _parallel(h[0], h[1]) or _parallel(h[3], h[4]):
        return None
    centre = _meeting_point(h[4], p[4], h[5], p[5], near)
    if centre is None or _distance(h[1], p[1], p[2]) <= near or _distance(h[2], p[2], p[3]) <= near:
        return None
    return ParallelArm(h, p[0], p[1] - p[0], p[2] - p[1], p[3] - p[2], centre - p[3], *_from_tip(tip, centre))


def _from_tip(tip: Tip, centre: Array) -> tuple[Array, Array]:
    """The tip's rotation in the zero posture, and a point as seen from the tip."""
    rotation, position = tip.forward(np.zeros(6))
    return rotation, rotation.T @ (centre - position)


def _parallel(a: Array, b: Array) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _ROUNDING


def _distance(axis: Array, on_axis: Array, point: Array) -> float:
    return float(np.linalg.norm(np.cross(axis, point - on_axis)))


def _meeting_point(a: Array, on_a: Array, b: Array, on_b: Array, near: float) -> Array | None:
    """Where two lines meet; None where they are parallel or pass each other."""
    if _parallel(a, b):
        return None
    along = np.linalg.lstsq(np.column_stack([a, -b]), on_b - on_a, rcond=None)[0]
    one, other = on_a + along[0] * a, on_b + along[1] * b
    if float(np.linalg.norm(one - other)) > near:
        return None
    point: Array = (one + other) / 2.0
    return point
