"""The three questions about one rotation to which closed-form inverse kinematics comes down (Paden 1986, Kahan).

R(k, θ) is the turn by θ about the unit vector k. Where there is no exact answer the nearest one is given; the caller
checks the pose that comes out.
"""

from __future__ import annotations

import numpy as np

from steelyard.robot.spatial import Array

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
