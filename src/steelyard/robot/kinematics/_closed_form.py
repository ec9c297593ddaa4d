"""Closed-form inverse kinematics, for arms whose axes allow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.numerical import Tip
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.spatial import rotations_about, skew

# The three subproblems of closed-form inverse kinematics (Paden 1986, Kahan), for batches of poses: axes are single
# vectors, everything else may have leading dimensions. R(k, θ) is the rotation by θ about the unit vector k. Without an
# exact solution the functions return the nearest one; the caller checks the resulting pose.


# The direction of a vector shorter than this (relative to its partner) is unreliable: the angle is then free.
_NO_DIRECTION = 1e-9


def _parts(k: Array, p: Array) -> tuple[Array, Array]:
    """Compute both directions of R(k, θ) p = sin θ·(k × p) + cos θ·(p − k kᵀp) + k kᵀp."""
    return p @ skew(k).T, p - k * (p @ k)[..., None]


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.sum(a * b, axis=-1))


def _size(a: Array) -> Array:
    return np.asarray(np.maximum(np.linalg.norm(a, axis=-1), 1e-300))


def angle_onto(k: Array, p: Array, target: Array, free: Array) -> Array:
    """Compute θ with R(k, θ) p as near as possible to `target`; `free` if p or target is parallel to k."""
    across, along = _parts(k, p)
    s, c = _dot(across, target), _dot(along, target)
    return np.where(np.hypot(s, c) <= _NO_DIRECTION * _size(p) * _size(target), free, np.arctan2(s, c))


def angles_to_height(h: Array, k: Array, p: Array, height: Array, free: Array) -> Array:
    """Compute the two θ with hᵀ R(k, θ) p = `height`, `(…, 2)`; they may coincide."""
    across, along = _parts(k, p)
    s, c = across @ h, along @ h
    rest = height - float(h @ k) * (p @ k)
    reach = np.hypot(s, c)
    middle = np.arctan2(s, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.arccos(np.clip(rest / reach, -1.0, 1.0))
    pair = np.stack([middle + half, middle - half], axis=-1)
    return np.where((reach <= _NO_DIRECTION * _size(p))[..., None], free[..., None], pair)


def angles_to_distance(k: Array, p: Array, target: Array, distance: Array, free: Array) -> Array:
    """Compute the two θ with |R(k, θ) p − target| = `distance`, from the height along `target`."""
    height = (_dot(p, p) + float(target @ target) - distance**2) / 2.0
    return angles_to_height(target, k, p, height, free)


def angle_about(k: Array, rotation: Array) -> Array:
    """Compute the angle of a rotation about k."""
    side = any_normal(k)
    return angle_onto(k, side, rotation @ side, np.zeros(rotation.shape[:-2]))


def any_normal(k: Array) -> Array:
    """Return a unit vector perpendicular to k."""
    least = np.eye(3)[int(np.argmin(np.abs(k)))]
    across = np.cross(k, least)
    unit: Array = across / np.linalg.norm(across)
    return unit


def _inverse(rotation: Array) -> Array:
    """Transpose rotations."""
    return np.swapaxes(rotation, -1, -2)


def _at(free: Array, joint: int, more: int) -> Array:
    """Return a joint's free angles with `more` trailing dimensions."""
    return free[:, joint].reshape(-1, *(1,) * more)


# Closed-form inverse kinematics of six-axis arms with three parallel axes (the UR family).
#
# Conditions: six revolute joints in a row, none coupled; axes 2, 3 and 4 parallel but not collinear, axes 1 and 5 not
# parallel to them; axes 5 and 6 intersect.


@dataclass(frozen=True, eq=False)
class ParallelArm:
    """An arm with three parallel axes in its zero posture.

    `axes` is (6, 3) and `column` a point on axis 1. `upper`, `fore`, `under` and `hand` lead from there to axis 2, axis
    3, axis 4 and the intersection of axes 5 and 6. Then come the tip's rotation and that intersection in the tip frame.
    """

    axes: Array
    column: Array
    upper: Array
    fore: Array
    under: Array
    hand: Array
    tip_rotation: Array
    centre_in_tip: Array

    def branches(self, rotation: Array, position: Array, free: Array) -> Array:
        """Compute candidate postures `(poses, 8, 6)`.

        Only joint 1 moves the intersection point along the parallel axes, and only joint 5 tilts axis 6. Joints 2, 3
        and 4 provide the remaining rotation, and reach the position as a planar arm.

        Args:
            rotation: Tip rotations (poses, 3, 3).
            position: Tip positions (poses, 3) [m].
            free: Angles for joints that a singular posture leaves undetermined (poses, 6) [rad].
        """
        h1, h2, _, _, h5, h6 = self.axes
        centre = position + rotation @ self.centre_in_tip - self.column
        aim = rotation @ self.tip_rotation.T
        height = np.asarray(h2 @ (self.upper + self.fore + self.under + self.hand))
        q1 = angles_to_height(h2, -h1, centre, height, free[:, 0])
        back = rotations_about(h1, -q1)
        wrist, tip_turn = (back @ centre[:, None, :, None])[..., 0] - self.upper, back @ aim[:, None]
        q5 = angles_to_height(h2, h5, h6, tip_turn @ h6 @ h2, _at(free, 4, 1))
        bent, tip_turns = rotations_about(h5, q5), tip_turn[:, :, None]
        third, fourth = self._signs()
        turn = angle_onto(
            h2, bent @ h6, tip_turns @ h6, _at(free, 1, 2) + third * _at(free, 2, 2) + fourth * _at(free, 3, 2)
        )
        q6 = angle_about(h6, _inverse(bent) @ rotations_about(h2, -turn) @ tip_turns)
        # The planar arm only depends on components perpendicular to its axes.
        reach, fore, under = (
            v - h2 * (v @ h2)[..., None]
            for v in (wrist[:, :, None] - rotations_about(h2, turn) @ self.hand, self.fore, self.under)
        )
        h3 = self.axes[2]
        q3 = angles_to_distance(h3, under, -fore, np.linalg.norm(reach, axis=-1), _at(free, 2, 2))
        q2 = angle_onto(h2, fore + rotations_about(h3, q3) @ under, reach[..., None, :], _at(free, 1, 3))
        q4 = fourth * (turn[..., None] - q2 - third * q3)
        return _together(q1[:, :, None, None], q2, q3, q4, q5[..., None], q6[..., None])

    def _signs(self) -> tuple[float, float]:
        """Whether axes 3 and 4 point along axis 2 or against it."""
        return float(np.sign(self.axes[2] @ self.axes[1])), float(np.sign(self.axes[3] @ self.axes[1]))


def _together(*angles: Array) -> Array:
    """Stack all joints' angles over all branches, `(poses, 8, 6)`."""
    full = np.stack(np.broadcast_arrays(*angles), axis=-1)
    return full.reshape(len(full), int(np.prod(full.shape[1:-1])), len(angles))  # -1 would fail without poses


# Closed-form inverse kinematics of six-axis arms with a spherical wrist (Pieper 1968).
#
# Conditions: six revolute joints in a row, none coupled; axes 4, 5 and 6 meet in one point, neighbours not parallel;
# and either axes 2 and 3 parallel and axis 1 not parallel to them (Puma, ns16, most industrial arms), or axes 1 and 2
# intersecting, with axis 3 not through their common point. The numerical solver handles everything else.


@dataclass(frozen=True, eq=False)
class WristArm:
    """An arm with a spherical wrist in its zero posture.

    `axes` is (6, 3) and `column` a point on axis 1. `upper`, `fore` and `hand` lead from there to axis 2, axis 3 and
    the wrist's centre. Then come the tip's rotation and the wrist's centre in the tip frame.
    """

    shoulder: Literal["parallel", "meeting"]
    axes: Array
    column: Array
    upper: Array
    fore: Array
    hand: Array
    tip_rotation: Array
    centre_in_tip: Array

    def branches(self, rotation: Array, position: Array, free: Array) -> Array:
        """Compute candidate postures `(poses, 8, 6)`.

        Args:
            rotation: Tip rotations (poses, 3, 3).
            position: Tip positions (poses, 3) [m].
            free: Angles for joints that a singular posture leaves undetermined (poses, 6) [rad].
        """
        centre = position + rotation @ self.centre_in_tip
        solve = self._parallel if self.shoulder == "parallel" else self._meeting
        first = solve(centre - self.column, free)
        h1, h2, h3, h4, h5, h6 = self.axes
        arm = rotations_about(h1, first[0]) @ rotations_about(h2, first[1]) @ rotations_about(h3, first[2])
        wrist = _inverse(arm) @ (rotation @ self.tip_rotation.T)[:, None, None]
        q5 = angles_to_height(h4, h5, h6, wrist @ h6 @ h4, _at(free, 4, 2))
        bent, held = rotations_about(h5, q5), wrist[:, :, :, None]
        q4 = angle_onto(h4, bent @ h6, held @ h6, _at(free, 3, 3))
        q6 = angle_about(h6, _inverse(bent) @ _inverse(rotations_about(h4, q4)) @ held)
        return _together(*(q[..., None] for q in first), q4, q5, q6)

    def _parallel(self, centre: Array, free: Array) -> tuple[Array, Array, Array]:
        """Solve joint 1 from the height along axes 2 and 3, the elbow from the distance, then joint 2."""
        h1, h2, h3 = self.axes[:3]
        height = np.asarray(h2 @ (self.upper + self.fore + self.hand))
        q1 = angles_to_height(h2, -h1, centre, height, free[:, 0])
        wrist = (rotations_about(h1, -q1) @ centre[:, None, :, None])[..., 0] - self.upper
        q3 = angles_to_distance(h3, self.hand, -self.fore, np.linalg.norm(wrist, axis=-1), _at(free, 2, 1))
        q2 = angle_onto(h2, self.fore + rotations_about(h3, q3) @ self.hand, wrist[:, :, None], _at(free, 1, 2))
        return np.broadcast_to(q1[:, :, None], q3.shape), q2, q3

    def _meeting(self, centre: Array, free: Array) -> tuple[Array, Array, Array]:
        """Solve the elbow from the distance to the shoulder, then joints 1 and 2 (`upper` is zero here)."""
        h1, h2, h3 = self.axes[:3]
        q3 = angles_to_distance(h3, self.hand, -self.fore, np.linalg.norm(centre, axis=-1), free[:, 2])
        reach = self.fore + rotations_about(h3, q3) @ self.hand
        q2 = angles_to_height(h1, h2, reach, (centre @ h1)[:, None], _at(free, 1, 1))
        aimed = (rotations_about(h2, q2) @ reach[:, :, None, :, None])[..., 0]
        q1 = angle_onto(h1, aimed, centre[:, None, None], _at(free, 0, 2))
        return q1, q2, np.broadcast_to(q3[:, :, None], q2.shape)


# Axes intersect if their distance is below this fraction of the arm's size, and are parallel below this angle [rad]:
# above the rounding of a description, below an offset of a tenth of a millimetre.
_ROUNDING = 1e-7


def closed_form(tip: Tip) -> WristArm | ParallelArm | None:
    """Return the closed form for this tip; None if the arm is of another kind."""
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
    """The tip's rotation in the zero posture, and a point as wrist from the tip."""
    rotation, position = tip.forward(np.zeros(6))
    return rotation, rotation.T @ (centre - position)


def _parallel(a: Array, b: Array) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _ROUNDING


def _distance(axis: Array, on_axis: Array, point: Array) -> float:
    return float(np.linalg.norm(np.cross(axis, point - on_axis)))


def _meeting_point(a: Array, on_a: Array, b: Array, on_b: Array, near: float) -> Array | None:
    """Return the intersection of two lines; None if they are parallel or skew."""
    if _parallel(a, b):
        return None
    along = np.linalg.lstsq(np.column_stack([a, -b]), on_b - on_a, rcond=None)[0]
    one, other = on_a + along[0] * a, on_b + along[1] * b
    if float(np.linalg.norm(one - other)) > near:
        return None
    point: Array = (one + other) / 2.0
    return point
