"""`NormalMatrix`: normal equations H, of which some directions may not be identifiable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr

# Eigenvalues below this share of the largest are treated as zero (columns scaled).
_LEAST_EIGENVALUE = 1e-10
# A parameter is identifiable if at most this share of it is in unidentifiable directions.
_MISSING = 1e-3


@short_repr
@dataclass(frozen=True, eq=False)
class NormalMatrix:
    """Identifiable subspace of normal equations H, or of many along the first axes.

    Attributes:
        size: Lengths of the columns, √H_kk.
        values: Eigenvalues of H with columns of length 1; zero where not identifiable.
        vectors: Eigenvectors.
    """

    size: Array
    values: Array
    vectors: Array

    @classmethod
    def of(cls, H: Array) -> NormalMatrix:
        """Decompose `H`."""
        size = np.sqrt(np.maximum(np.diagonal(H, axis1=-2, axis2=-1), 0.0))
        scale = _reciprocal(size)
        values, vectors = np.linalg.eigh(H * scale[..., :, None] * scale[..., None, :])
        largest = np.maximum(values[..., -1:], 1e-300)
        return cls(size, np.where(values > _LEAST_EIGENVALUE * largest, values, 0.0), vectors)

    @property
    def root(self) -> Array:
        """L with H = L Lᵀ on the identifiable subspace."""
        return np.asarray(self.size[..., None] * self.vectors * np.sqrt(self.values)[..., None, :])

    @property
    def root_inverse(self) -> Array:
        """The left inverse of `root`."""
        backs = np.swapaxes(self.vectors * _reciprocal(np.sqrt(self.values))[..., None, :], -2, -1)
        return np.asarray(backs * _reciprocal(self.size)[..., None, :])

    @cached_property
    def inverse(self) -> Array:
        """The pseudo-inverse of H."""
        scaled = (self.vectors * _reciprocal(self.values)[..., None, :]) @ np.swapaxes(self.vectors, -2, -1)
        scale = _reciprocal(self.size)
        return np.asarray(scaled * scale[..., :, None] * scale[..., None, :])

    @property
    def rank(self) -> NDArray[np.int64]:
        return np.asarray(np.sum(self.values > 0.0, axis=-1))

    @property
    def identifiable(self) -> NDArray[np.bool_]:
        """Whether H determines each parameter."""
        part = np.sum(np.where(self.values[..., None, :] > 0.0, self.vectors, 0.0) ** 2, axis=-1)
        return np.asarray((np.abs(part - 1.0) < _MISSING) & (self.size > 0.0))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant on the identifiable subspace."""
        positive = self.values[self.values > 0.0], self.size[self.size > 0.0]
        return float(np.sum(np.log(positive[0])) + 2.0 * np.sum(np.log(positive[1])))


def _reciprocal(x: Array) -> Array:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.0)
