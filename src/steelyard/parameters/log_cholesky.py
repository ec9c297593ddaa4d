"""Log-Cholesky coordinates: any numbers give a possible robot, and every possible robot has just one set of numbers.

The pseudo-inertia of a link is P = L Lᵀ with L a lower triangle whose diagonal is exp(d): ten free numbers, d₁ … d₄ and
the six below the diagonal, row by row (Rucker & Wensing 2022, "Smooth parameterization of rigid-body inertia", in its
triangular form). Terms that must be positive (friction, rotors) are exponentials; all others stand as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.parameters.terms import Parameter
from steelyard.robot.spatial import Array, pseudo_inertia

_BELOW = tuple((i, j) for i in range(4) for j in range(i))
# Where a positive term is zero, its logarithm starts from this part of the largest of its kind.
_SMALLEST = 1e-3


def link_coordinates(parameters: Array) -> Array:
    """Ten numbers of a possible link: the logarithms of the diagonal, then the entries below it."""
    try:
        L = np.linalg.cholesky(pseudo_inertia(parameters))
    except np.linalg.LinAlgError:
        raise SteelyardError(
            "A link's pseudo-inertia is not positive definite: no body has such a mass and inertia; start from a "
            "possible one, e.g. that of the physically consistent fit."
        ) from None
    return np.concatenate([np.log(np.diag(L)), [L[i, j] for i, j in _BELOW]])


def link_parameters(x: Array) -> tuple[Array, Array]:
    """The ten inertial parameters of coordinates x, and their 10 × 10 derivative."""
    L = np.diag(np.exp(x[:4]))
    for k, (i, j) in enumerate(_BELOW):
        L[i, j] = x[4 + k]
    columns = []
    for k in range(10):
        D = np.zeros((4, 4))
        if k < 4:
            D[k, k] = L[k, k]
        else:
            D[_BELOW[k - 4]] = 1.0
        columns.append(_ten(D @ L.T + L @ D.T))
    return _ten(L @ L.T), np.column_stack(columns)


def _ten(P: Array) -> Array:
    """m, h and I = tr(Σ) 1 − Σ of a pseudo-inertia [[Σ, h], [hᵀ, m]]; linear."""
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
        """Terms with a lower bound of zero are positive."""
        return cls(links, tuple(p.lower == 0.0 for p in parameters[10 * links :]))

    def coordinates(self, theta: Array) -> Array:
        """x of a possible θ; positive terms that are zero or less are set to a thousandth of the largest."""
        links = [link_coordinates(theta[10 * k : 10 * k + 10]) for k in range(self.links)]
        rest = theta[10 * self.links :].copy()
        chosen = np.array(self.positive, dtype=bool)
        if chosen.any():
            floor = _SMALLEST * max(float(np.max(rest[chosen])), 1e-9)
            rest[chosen] = np.log(np.maximum(rest[chosen], floor))
        return np.concatenate([*links, rest]) if links else rest

    def parameters(self, x: Array) -> tuple[Array, Array]:
        """θ and its derivative ∂θ/∂x, square and block diagonal."""
        theta, slope = x.copy(), np.eye(len(x))
        for k in range(self.links):
            part = slice(10 * k, 10 * k + 10)
            theta[part], slope[part, part] = link_parameters(x[part])
        for k, positive in enumerate(self.positive, start=10 * self.links):
            if positive:
                theta[k] = slope[k, k] = np.exp(x[k])
        return theta, slope
