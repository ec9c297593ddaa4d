"""The wrench that a sensor must give a body it carries, linear in the body's ten parameters.

Kozłowski & Dutkiewicz 1996, equations (8)–(13), with their misprints mended: the last block of the regressor has six
columns, [•ω̇] + [ω×][•ω], and g is the vector of gravity (0, 0, −9.81 with z up). The wrench is that of the sensor on
the load; parameters are about the sensor's origin, in its axes, in the order that all links have.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import cumulative_trapezoid

from steelyard.dynamics.frame_motion import FrameMotion
from steelyard.robot.spatial import Array


def wrench_regressor(m: FrameMotion) -> Array:
    """K with W = K θ, `(samples, 6, 10)`: forces, then torques about the origin."""
    spin, turn = crossing(m.spin), crossing(m.turn)
    out = np.zeros((len(m.spin), 6, 10))
    out[:, :3, 0] = m.pull
    out[:, :3, 1:4] = turn + spin @ spin
    out[:, 3:, 1:4] = -crossing(m.pull)
    out[:, 3:, 4:] = tensor_columns(m.turn) + spin @ tensor_columns(m.spin)
    return out


def integral_regressor(m: FrameMotion, period: float) -> Array:
    """∫K dt from the first sample to every sample, without any acceleration, `(samples, 6, 10)`.

    The acceleration of the origin is v̇ + ω×v, so that ∫(a − g) = v − v₀ + ∫(ω×v − g); [ω̇×] and [•ω̇] integrate to
    differences of [ω×] and [•ω].
    """
    spin = crossing(m.spin)
    out = np.zeros((len(m.spin), 6, 10))
    b = m.velocity - m.velocity[0] + running(np.cross(m.spin, m.velocity) - m.gravity, period)
    out[:, :3, 0] = b
    out[:, :3, 1:4] = spin - spin[0] + running(spin @ spin, period)
    out[:, 3:, 1:4] = -crossing(b)
    tensor = tensor_columns(m.spin)
    out[:, 3:, 4:] = tensor - tensor[0] + running(spin @ tensor, period)
    return out


def running(x: Array, period: float) -> Array:
    """The integral from the first sample to each, by trapezoids."""
    return np.asarray(cumulative_trapezoid(x, dx=period, axis=0, initial=0.0))


def crossing(v: Array) -> Array:
    """[v×] of many vectors, `(samples, 3, 3)`."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def tensor_columns(w: Array) -> Array:
    """[•ω] with [•ω] (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) = I ω, `(samples, 3, 6)`."""
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    zero = np.zeros_like(x)
    rows = [[x, y, zero, z, zero, zero], [zero, x, y, zero, z, zero], [zero, zero, zero, x, y, z]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
