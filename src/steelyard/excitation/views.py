"""Views of an information matrix: in other units, another basis, or with some parameters unknown but unwanted.

A view maps G to the matrix that a criterion looks at, and carries derivatives back. Conditioning means nothing
without them, so a view can say what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from steelyard.ground.arrays import Array


class View(Protocol):
    @property
    def label(self) -> str:
        """What this does to the columns, in words."""
        ...

    def forward(self, gram: Array) -> Array: ...

    def backward(self, gram: Array, slope: Array) -> Array:
        """∂f/∂G from `slope` = ∂f/∂(forward(G))."""
        ...


class Linear:
    """Columns W T: another basis of the same parameters, or other units."""

    def __init__(self, matrix: Array, label: str) -> None:
        self.matrix, self.label = np.asarray(matrix, dtype=float), label

    def forward(self, gram: Array) -> Array:
        out: Array = self.matrix.T @ gram @ self.matrix
        return out

    def backward(self, gram: Array, slope: Array) -> Array:
        out: Array = self.matrix @ slope @ self.matrix.T
        return out


class UnitColumns:
    """Every column scaled to unit norm: G_ij / √(G_ii G_jj)."""

    label = "columns scaled to unit norm"

    def forward(self, gram: Array) -> Array:
        scale = self._scale(gram)
        return gram / np.outer(scale, scale)

    def backward(self, gram: Array, slope: Array) -> Array:
        scale = self._scale(gram)
        scaled = slope / np.outer(scale, scale)
        # ∂/∂G_ii through both factors 1/√G_ii
        through = np.sum(scaled * gram, axis=1) / scale**2
        out: Array = scaled - np.diag(through)
        return out

    @staticmethod
    def _scale(gram: Array) -> Array:
        diagonal = np.diag(gram)
        return np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))


class Wanted:
    """Only some parameters count; the others must be found too: the Schur complement G_ww − G_wo G_oo⁻¹ G_ow."""

    def __init__(self, wanted: Sequence[int], names: Sequence[str]) -> None:
        self.wanted = np.array(sorted(wanted), dtype=np.int64)
        self.label = f"for {', '.join(names[k] for k in self.wanted)}, with the others unknown"

    def _gain(self, gram: Array) -> tuple[Any, Any]:
        others = np.setdiff1d(np.arange(len(gram)), self.wanted)
        block = gram[np.ix_(others, others)]
        # What is not excited at all must not make the others look infinitely uncertain: a share of rounding.
        block = block + 1e-14 * max(float(np.trace(block)), 1e-300) * np.eye(len(others))
        return others, np.linalg.solve(block, gram[np.ix_(others, self.wanted)])

    def forward(self, gram: Array) -> Array:
        others, gain = self._gain(gram)
        out = gram[np.ix_(self.wanted, self.wanted)] - gram[np.ix_(self.wanted, others)] @ gain
        return np.asarray(0.5 * (out + out.T))

    def backward(self, gram: Array, slope: Array) -> Array:
        others, gain = self._gain(gram)
        lift = np.zeros((len(gram), len(self.wanted)))
        lift[self.wanted] = np.eye(len(self.wanted))
        lift[others] = -gain
        out: Array = lift @ slope @ lift.T
        return out
