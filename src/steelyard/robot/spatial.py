"""Rotations, frames fixed to links (`Place`), and inertial parameters seen from another frame, in plain NumPy.

Inertial parameters are always the ten numbers m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz (Pinocchio's
order): mass, first moment, and the tensor of inertia about the frame's origin with the sign convention
Ixy = -∫ x y dm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array


def skew(v: ArrayLike) -> Array:
    """The matrix [v×] of a vector `v` of three, with [v×] x = v × x."""
    x, y, z = np.asarray(v, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_about(axis: ArrayLike, angle: float) -> Array:
    """Rotation by `angle` (rad) about the unit vector `axis`; exact zeros and ones at multiples of a right angle."""
    a = np.asarray(axis, dtype=float)
    s, c = np.sin(angle), np.cos(angle)
    quarter = angle / (np.pi / 2)
    if abs(quarter - round(quarter)) < 1e-15 * max(1.0, abs(quarter)):
        s, c = np.round(s), np.round(c)
    rotation: Array = c * np.eye(3) + s * skew(a) + (1.0 - c) * np.outer(a, a)
    return rotation


def rotations_about(axis: ArrayLike, angles: Array) -> Array:
    """Rotations `(…, 3, 3)` by any batch of `angles` (rad) about one unit vector `axis`."""
    a = np.asarray(axis, dtype=float)
    s, c = np.sin(angles)[..., None, None], np.cos(angles)[..., None, None]
    rotations: Array = c * np.eye(3) + s * skew(a) + (1.0 - c) * np.outer(a, a)
    return rotations


def rotations_from_rpy(rpy: Array) -> Array:
    """Rotations `(…, 3, 3)` of fixed-axis roll, pitch, yaw, `rpy` (…, 3; rad)."""
    x, y, z = np.eye(3)
    return rotations_about(z, rpy[..., 2]) @ rotations_about(y, rpy[..., 1]) @ rotations_about(x, rpy[..., 0])


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """URDF's fixed-axis `roll`, `pitch`, `yaw` (rad): Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.eye(3)
    return rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll)


def rotation_from_quaternion(w: float, x: float, y: float, z: float) -> Array:
    """Rotation of a (not necessarily unit) quaternion in MuJoCo's order `w`, `x`, `y`, `z`."""
    q = np.array([w, x, y, z], dtype=float)
    w, x, y, z = q / np.linalg.norm(q)
    v = np.array([x, y, z])
    rotation: Array = (w * w - v @ v) * np.eye(3) + 2.0 * np.outer(v, v) + 2.0 * w * skew(v)
    return rotation


def snap(matrix: ArrayLike, tolerance: float) -> Array:
    """`matrix` with entries within `tolerance` of 0 and ±1 set to exactly that, so that tracing can drop them."""
    out = np.array(matrix, dtype=float)
    for exact in (0.0, 1.0, -1.0):
        out[np.abs(out - exact) <= tolerance] = exact
    return out


def inertia_matrix(parameters: ArrayLike) -> Array:
    """The symmetric 3×3 tensor (kg m²) of a body's ten `parameters`."""
    p = np.asarray(parameters, dtype=float)
    return np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])


def inertial_parameters(mass: float, first_moment: ArrayLike, inertia: ArrayLike) -> Array:
    """The ten parameters from `mass` (kg), `first_moment` (kg m) and `inertia` (kg m²) about the frame's origin."""
    i = np.asarray(inertia, dtype=float)
    return np.concatenate(
        [[mass], np.asarray(first_moment, float), [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]]
    )


def parameters_from_com(mass: float, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """The ten parameters from `mass` (kg), centre of mass `com` (m) and the tensor `inertia_com` (kg m²) about that."""
    c = skew(com)
    return inertial_parameters(mass, mass * np.asarray(com, float), np.asarray(inertia_com, float) - mass * c @ c)


def move_parameters(parameters: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """The ten `parameters` seen from a frame in which the body's own stands at `rotation` (3×3), `translation` (m)."""
    p = np.asarray(parameters, dtype=float)
    r, t = np.asarray(rotation, float), np.asarray(translation, float)
    mass, h = p[0], r @ p[1:4]
    st, sh = skew(t), skew(h)
    inertia = r @ inertia_matrix(p) @ r.T - st @ sh - sh @ st - mass * st @ st
    return inertial_parameters(mass, h + mass * t, inertia)


def parameter_transfer(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """The 10×10 matrix of `move_parameters` by `rotation` and `translation` (m), which is linear in the parameters."""
    return np.column_stack([move_parameters(unit, rotation, translation) for unit in np.eye(10)])


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """The 4×4 pseudo-inertia [[Σ, h], [hᵀ, m]], Σ = ½ tr(I) 1 − I, of ten `parameters`; positive definite iff possible.

    Wensing, Kim & Slotine 2018, "Linear matrix inequalities for physically consistent inertial parameter
    identification", eq. 8.
    """
    p = np.asarray(parameters, dtype=float)
    i = inertia_matrix(p)
    out = np.empty((4, 4))
    out[:3, :3] = 0.5 * np.trace(i) * np.eye(3) - i
    out[:3, 3] = out[3, :3] = p[1:4]
    out[3, 3] = p[0]
    return out


@dataclass(frozen=True, eq=False)
class Place:
    """A frame fixed to link `host` (−1: the base), at (`rotation`, `translation`) in that link's joint frame."""

    host: int = -1
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def at(self, rotation: ArrayLike, translation: ArrayLike) -> Place:
        """The frame that stands at `rotation` (3×3) and `translation` (m) in this one."""
        r, t = np.asarray(rotation, dtype=float), np.asarray(translation, dtype=float)
        return Place(self.host, self.rotation @ r, self.translation + self.rotation @ t)


def rpy_of(rotation: Array) -> Array:
    """Roll, pitch and yaw (rad) of a `rotation`, as URDF has them: R = Rz(yaw) Ry(pitch) Rx(roll).

    The roll is taken from what is left after the yaw is undone, so that the three together are exact also where
    the pitch is a right angle and roll and yaw turn about the same axis.
    """
    r = rotation
    yaw = np.arctan2(r[1, 0], r[0, 0])
    s, c = np.sin(yaw), np.cos(yaw)
    pitch = np.arctan2(-r[2, 0], c * r[0, 0] + s * r[1, 0])
    roll = np.arctan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    return np.array([roll, pitch, yaw])


def quaternion_of(rotation: Array) -> Array:
    """The unit quaternion w, x, y, z of a `rotation`, with w ≥ 0, as the eigenvector of Bar-Itzhack 2000, "New method
    for extracting the quaternion from a rotation matrix", which is exact for every angle."""
    r = rotation
    k = np.array(
        [
            [r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1]],
        ]
    )
    q: Array = np.linalg.eigh(k)[1][:, -1]
    return -q if q[0] < 0.0 else q
