"""The ten inertial parameters of links: names, units, unconstrained coordinates, and the nearest possible body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import Parameter
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import inertial_parameters, pseudo_inertia

# Log-Cholesky coordinates: any values give a possible robot, and every possible robot has one set of values.
#
# The pseudo-inertia of a link is P = L Lᵀ with L a lower triangle whose diagonal is exp(d): ten free numbers, d₁ … d₄
# and the six below the diagonal, row by row (Rucker & Wensing 2022, "Smooth parameterization of rigid-body inertia",
# in its triangular form). Terms that must be positive (friction, rotors) are exponentials; all others are unchanged.


_BELOW = tuple((i, j) for i in range(4) for j in range(i))
# The logarithm of a positive term with value zero starts from this fraction of the largest one of its kind.
_SMALLEST = 1e-3


def link_coordinates(parameters: Array) -> Array:
    """Compute the coordinates of a possible link's ten `parameters`: logarithms of L's diagonal, then the entries below
    it.
    """
    try:
        L = np.linalg.cholesky(pseudo_inertia(parameters))
    except np.linalg.LinAlgError:
        raise SteelyardError(
            "A link's pseudo-inertia is not positive definite: no body has such a mass and inertia; start from "
            "possible values, e.g. those of the physically consistent fit."
        ) from None
    return np.concatenate([np.log(np.diag(L)), [L[i, j] for i, j in _BELOW]])


def link_parameters(x: Array) -> tuple[Array, Array]:
    """Compute the ten inertial parameters of the ten coordinates `x`, and their 10 × 10 derivative."""
    L = _triangle(x)
    columns = []
    for k in range(10):
        D = np.zeros((4, 4))
        if k < 4:
            D[k, k] = L[k, k]
        else:
            D[_BELOW[k - 4]] = 1.0
        columns.append(_ten(D @ L.T + L @ D.T))
    return _ten(L @ L.T), np.column_stack(columns)


def _triangle(x: Array) -> Array:
    """Compute L from the ten coordinates."""
    L = np.diag(np.exp(x[:4]))
    for k, (i, j) in enumerate(_BELOW):
        L[i, j] = x[4 + k]
    return L


def _ten(P: Array) -> Array:
    """Compute m, h and I = tr(Σ) 1 − Σ of a pseudo-inertia [[Σ, h], [hᵀ, m]]; linear."""
    S = P[:3, :3]
    inertia = np.trace(S) * np.eye(3) - S
    order = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    return np.array([P[3, 3], *P[:3, 3], *(inertia[place] for place in order)])


@dataclass(frozen=True)
class LogCholesky:
    """The map between coordinates x and full parameters θ of a robot with `links` links and its terms."""

    links: int
    positive: tuple[bool, ...]

    @classmethod
    def of(cls, parameters: Sequence[Parameter], links: int) -> LogCholesky:
        """Create the map; terms with a lower bound of zero are positive.

        Args:
            parameters: All parameters of the robot.
            links: Number of links.
        """
        return cls(links, tuple(p.lower == 0.0 for p in parameters[10 * links :]))

    def coordinates(self, theta: Array) -> Array:
        """Compute x of a possible `theta`; positive terms that are zero or less start at a thousandth of the
        largest.
        """
        links = [link_coordinates(theta[10 * k : 10 * k + 10]) for k in range(self.links)]
        rest = theta[10 * self.links :].copy()
        chosen = np.array(self.positive, dtype=bool)
        if chosen.any():
            floor = _SMALLEST * max(float(np.max(rest[chosen])), 1e-9)
            rest[chosen] = np.log(np.maximum(rest[chosen], floor))
        return np.concatenate([*links, rest]) if links else rest

    def values(self, x: Array) -> Array:
        """Compute θ from the coordinates `x`."""
        triangles = [_triangle(x[10 * k : 10 * k + 10]) for k in range(self.links)]
        rest = x[10 * self.links :]
        return np.concatenate([*(_ten(L @ L.T) for L in triangles), np.where(self.positive, np.exp(rest), rest)])

    def parameters(self, x: Array) -> tuple[Array, Array]:
        """Compute θ from the coordinates `x`, and its derivative ∂θ/∂x, square and block diagonal."""
        theta, slope = x.copy(), np.eye(len(x))
        for k in range(self.links):
            part = slice(10 * k, 10 * k + 10)
            theta[part], slope[part, part] = link_parameters(x[part])
        for k, positive in enumerate(self.positive, start=10 * self.links):
            if positive:
                theta[k] = slope[k, k] = np.exp(x[k])
        return theta, slope


# The physically possible body nearest to ten estimated parameters.


# Distance of the body to the boundary of possible ones, relative to its pseudo-inertia.
_MARGIN = 1e-6


def parameters_of_pseudo_inertia(matrix: Array) -> Array:
    """Compute the ten parameters of a 4×4 pseudo-inertia `matrix`; the inverse of `pseudo_inertia`."""
    sigma = np.asarray(matrix[:3, :3], dtype=float)
    return inertial_parameters(float(matrix[3, 3]), matrix[:3, 3], np.trace(sigma) * np.eye(3) - sigma)


def nearest_possible_body(parameters: Array, covariance: Array) -> tuple[Array, bool]:
    """Minimise (θ − θ̂)ᵀ C⁻¹ (θ − θ̂) over possible bodies; also return whether θ̂ was impossible.

    The pseudo-inertia is written as L Lᵀ plus a small multiple of the identity in the body's own scale, so that every
    L is possible (Rucker & Wensing 2022 use logarithms of L's diagonal; without them the boundary is reachable).

    Args:
        parameters: The estimate θ̂.
        covariance: Covariance C of the estimate.
    """
    from scipy.optimize import least_squares

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
    """Return a typical size of the body [m]."""
    mass = max(abs(float(parameters[0])), 1e-9)
    reach = float(np.linalg.norm(parameters[1:4])) / mass
    gyration = float(np.sqrt(np.max(np.abs(parameters[[4, 6, 9]])) / mass))
    return max(reach, gyration, 1e-3)


def _regular(covariance: Array) -> Array:
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = covariance / np.outer(std, std)
    return np.asarray((correlation + 1e-9 * np.eye(len(std))) * np.outer(std, std))


INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m²",) * 6)


def inertial_parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """List ten parameters per link of `robot`, numbered as the links: m1, mx1, …, Izz1, m2, …"""
    return tuple(
        Parameter(f"{name}{i + 1}", unit, lower=0.0 if name in ("m", "Ixx", "Iyy", "Izz") else -np.inf)
        for i in range(len(robot.links))
        for name, unit in zip(INERTIAL_NAMES, _UNITS, strict=True)
    )


def smallest_pseudo_eigenvalues(parameters: Array) -> Array:
    """Compute the smallest eigenvalue of each link's pseudo-inertia from ten `parameters` per link; possible iff
    positive.
    """
    blocks = np.asarray(parameters, dtype=float).reshape(-1, 10)
    return np.array([np.linalg.eigvalsh(pseudo_inertia(block))[0] for block in blocks])
