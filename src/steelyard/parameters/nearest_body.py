"""The body that can exist and comes nearest to ten estimated parameters."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from steelyard.robot.spatial import Array, inertial_parameters, pseudo_inertia

# How far inside what is possible the body stays, as a part of the size of its pseudo-inertia.
_MARGIN = 1e-6


def parameters_of_pseudo_inertia(matrix: Array) -> Array:
    """The ten parameters of a 4×4 pseudo-inertia; the inverse of `pseudo_inertia`."""
    sigma = np.asarray(matrix[:3, :3], dtype=float)
    return inertial_parameters(float(matrix[3, 3]), matrix[:3, 3], np.trace(sigma) * np.eye(3) - sigma)


def nearest_body(parameters: Array, covariance: Array) -> tuple[Array, bool]:
    """The possible body with the smallest (θ − θ̂)ᵀ C⁻¹ (θ − θ̂), and whether θ̂ itself was impossible.

    The pseudo-inertia is written as L Lᵀ plus a small multiple of the identity in the body's own scale, so that every
    L is possible (Rucker & Wensing 2022 take logarithms of L's diagonal; without them the boundary is within reach).
    """
    guess = np.asarray(parameters, dtype=float)
    length = _length(guess)
    scale = np.array([length, length, length, 1.0])
    size = max(abs(guess[0]), 1e-9)
    scaled = pseudo_inertia(guess) / np.outer(scale, scale) / size
    values, vectors = np.linalg.eigh(scaled)
    if values[0] > _MARGIN:
        return guess, False
    root = np.linalg.inv(np.linalg.cholesky(_regular(covariance)))
    start = vectors * np.sqrt(np.maximum(values, 1e-3))
    corner = np.tril_indices(4)

    def body(x: Array) -> Array:
        triangle = np.zeros((4, 4))
        triangle[corner] = x
        inner = triangle @ triangle.T + _MARGIN * np.eye(4)
        return parameters_of_pseudo_inertia(size * inner * np.outer(scale, scale))

    first = np.linalg.cholesky(start @ start.T)[corner]
    found = least_squares(lambda x: root @ (body(x) - guess), first, method="trf", xtol=1e-12, ftol=1e-12, gtol=1e-12)
    return body(found.x), True


def _length(parameters: Array) -> float:
    """A typical size of the body, m."""
    mass = max(abs(float(parameters[0])), 1e-9)
    reach = float(np.linalg.norm(parameters[1:4])) / mass
    spread = float(np.sqrt(np.max(np.abs(parameters[[4, 6, 9]])) / mass))
    return max(reach, spread, 1e-3)


def _regular(covariance: Array) -> Array:
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance / np.outer(deviation, deviation)
    return np.asarray((correlation + 1e-9 * np.eye(len(deviation))) * np.outer(deviation, deviation))
