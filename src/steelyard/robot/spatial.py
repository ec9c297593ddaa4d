"""Rotations, frames fixed to links (`LinkFrame`), and changes of frame of inertial parameters, in plain NumPy.

Inertial parameters are always the ten numbers m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz (Pinocchio's
order): mass, first moment, and the tensor of inertia about the frame's origin with Ixy = -∫ x y dm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.arrays import Array


def skew(v: ArrayLike) -> Array:
    """Compute the matrix [v×] of a three-vector `v`, with [v×] x = v × x."""
    x, y, z = np.asarray(v, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_about(axis: ArrayLike, angle: float) -> Array:
    """Compute a rotation; it has exact zeros and ones at multiples of a right angle.

    Args:
        axis: Unit vector.
        angle: Angle [rad].
    """
    a = np.asarray(axis, dtype=float)
    s, c = np.sin(angle), np.cos(angle)
    quarter = angle / (np.pi / 2)
    if abs(quarter - round(quarter)) < 1e-15 * max(1.0, abs(quarter)):
        s, c = np.round(s), np.round(c)
    rotation: Array = c * np.eye(3) + s * skew(a) + (1.0 - c) * np.outer(a, a)
    return rotation


def rotations_about(axis: ArrayLike, angles: Array) -> Array:
    """Compute rotations about one axis, shape `(…, 3, 3)`.

    Args:
        axis: Unit vector.
        angles: Angles [rad], any shape.
    """
    a = np.asarray(axis, dtype=float)
    s, c = np.sin(angles)[..., None, None], np.cos(angles)[..., None, None]
    rotations: Array = c * np.eye(3) + s * skew(a) + (1.0 - c) * np.outer(a, a)
    return rotations


def rotations_from_rpy(rpy: Array) -> Array:
    """Compute rotations `(…, 3, 3)` from fixed-axis roll, pitch, yaw, `rpy` (…, 3) [rad]."""
    x, y, z = np.eye(3)
    return rotations_about(z, rpy[..., 2]) @ rotations_about(y, rpy[..., 1]) @ rotations_about(x, rpy[..., 0])


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Compute the rotation Rz(yaw) Ry(pitch) Rx(roll) of URDF's fixed-axis angles.

    Args:
        roll: Angle about x [rad].
        pitch: Angle about y [rad].
        yaw: Angle about z [rad].
    """
    x, y, z = np.eye(3)
    return rotation_about(z, yaw) @ rotation_about(y, pitch) @ rotation_about(x, roll)


def rotation_from_quaternion(w: float, x: float, y: float, z: float) -> Array:
    """Compute the rotation of a quaternion in MuJoCo's order; it need not have unit length.

    Args:
        w: Scalar part.
        x: First component of the vector part.
        y: Second component.
        z: Third component.
    """
    q = np.array([w, x, y, z], dtype=float)
    w, x, y, z = q / np.linalg.norm(q)
    v = np.array([x, y, z])
    rotation: Array = (w * w - v @ v) * np.eye(3) + 2.0 * np.outer(v, v) + 2.0 * w * skew(v)
    return rotation


def snap(matrix: ArrayLike, tolerance: float) -> Array:
    """Set entries close to 0 and ±1 to exactly these values, so that tracing can drop them.

    Args:
        matrix: Array of any shape.
        tolerance: Largest change of an entry.
    """
    out = np.array(matrix, dtype=float)
    for exact in (0.0, 1.0, -1.0):
        out[np.abs(out - exact) <= tolerance] = exact
    return out


def inertia_matrix(parameters: ArrayLike) -> Array:
    """Return the symmetric 3×3 tensor [kg m²] of a body's ten `parameters`."""
    p = np.asarray(parameters, dtype=float)
    return np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])


def inertial_parameters(mass: float, first_moment: ArrayLike, inertia: ArrayLike) -> Array:
    """Combine mass properties about the frame's origin into the ten parameters.

    Args:
        mass: Mass [kg].
        first_moment: Mass times centre of mass [kg m].
        inertia: Tensor about the frame's origin [kg m²].
    """
    i = np.asarray(inertia, dtype=float)
    return np.concatenate(
        [[mass], np.asarray(first_moment, float), [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]]
    )


def parameters_from_com(mass: float, com: ArrayLike, inertia_com: ArrayLike) -> Array:
    """Compute the ten parameters from mass properties about the centre of mass.

    Args:
        mass: Mass [kg].
        com: Centre of mass [m].
        inertia_com: Tensor about the centre of mass [kg m²].
    """
    c = skew(com)
    return inertial_parameters(mass, mass * np.asarray(com, float), np.asarray(inertia_com, float) - mass * c @ c)


def move_parameters(parameters: ArrayLike, rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Express the ten parameters of a body in another frame.

    Args:
        parameters: The ten parameters in the body's own frame.
        rotation: Rotation of the body's frame in the other frame, 3×3.
        translation: Origin of the body's frame in the other frame [m].
    """
    p = np.asarray(parameters, dtype=float)
    r, t = np.asarray(rotation, float), np.asarray(translation, float)
    mass, h = p[0], r @ p[1:4]
    st, sh = skew(t), skew(h)
    inertia = r @ inertia_matrix(p) @ r.T - st @ sh - sh @ st - mass * st @ st
    return inertial_parameters(mass, h + mass * t, inertia)


def parameter_transfer(rotation: ArrayLike, translation: ArrayLike) -> Array:
    """Compute the 10×10 matrix of `move_parameters`, which is linear in the parameters.

    Args:
        rotation: Rotation of the body's frame in the other frame, 3×3.
        translation: Origin of the body's frame in the other frame [m].
    """
    return np.column_stack([move_parameters(unit, rotation, translation) for unit in np.eye(10)])


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """Compute the 4×4 pseudo-inertia [[Σ, h], [hᵀ, m]], Σ = ½ tr(I) 1 − I, of ten `parameters`.

    It is positive definite exactly for physically possible bodies. Wensing, Kim & Slotine 2018, "Linear matrix
    inequalities for physically consistent inertial parameter identification", eq. 8.
    """
    p = np.asarray(parameters, dtype=float)
    i = inertia_matrix(p)
    out = np.empty((4, 4))
    out[:3, :3] = 0.5 * np.trace(i) * np.eye(3) - i
    out[:3, 3] = out[3, :3] = p[1:4]
    out[3, 3] = p[0]
    return out


@dataclass(frozen=True, eq=False)
class LinkFrame:
    """A frame fixed to link `host` (-1: the base), with its rotation and origin [m] in that link's joint frame."""

    host: int = -1
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def at(self, rotation: ArrayLike, translation: ArrayLike) -> LinkFrame:
        """Return the frame with the given pose in this one.

        Args:
            rotation: Rotation in this frame, 3×3.
            translation: Origin in this frame [m].
        """
        r, t = np.asarray(rotation, dtype=float), np.asarray(translation, dtype=float)
        return LinkFrame(self.host, self.rotation @ r, self.translation + self.rotation @ t)


def rotation_from_z(direction: Array) -> Array:
    """Compute the smallest rotation that turns z to the unit vector `direction`."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine, cosine = float(np.linalg.norm(axis)), float(direction[2])
    if sine < 1e-10:  # parallel: identity, or half a turn about x as in MuJoCo
        return np.diag([1.0, 1.0, 1.0]) if cosine > 0.0 else np.diag([1.0, -1.0, -1.0])
    k = skew(axis / sine)
    return np.eye(3) + sine * k + (1.0 - cosine) * k @ k


def rpy_of(rotation: Array) -> Array:
    """Compute URDF's roll, pitch and yaw [rad] of a `rotation`: R = Rz(yaw) Ry(pitch) Rx(roll).

    The roll is computed after undoing the yaw. The three angles together are then exact even at a pitch of a right
    angle, where roll and yaw turn about the same axis.
    """
    r = rotation
    yaw = np.arctan2(r[1, 0], r[0, 0])
    s, c = np.sin(yaw), np.cos(yaw)
    pitch = np.arctan2(-r[2, 0], c * r[0, 0] + s * r[1, 0])
    roll = np.arctan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    return np.array([roll, pitch, yaw])


def quaternion_of(rotation: Array) -> Array:
    """Compute the unit quaternion w, x, y, z of a `rotation`, with w ≥ 0.

    Eigenvector of Bar-Itzhack 2000, "New method for extracting the quaternion from a rotation matrix"; exact for every
    angle.
    """
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
