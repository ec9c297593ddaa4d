"""`Factor`: the small triangular factor of [A y], which suffices for linear estimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError, StructureError
from steelyard.ground.arrays import Array, solve_triangle
from steelyard.ground.short_repr import short_repr
from steelyard.regression.rows import Equation

# A scaled pivot is the part of a column outside the span of earlier ones. In the normal equations the square
# of a pivot has a rounding error of 1e-16, so pivots near 1e-8 are noise; a limit of 1e-6 leaves at least four digits.
# In QR the pivot itself has this rounding error.
_SMALLEST_PIVOT = {"qr": 1e-12, "normal": 1e-6}


@short_repr
@dataclass(frozen=True, eq=False)
class Factor:
    """One upper triangle per equation: triangles[e]ᵀ triangles[e] = [A_e y_e]ᵀ [A_e y_e].

    Triangles of several logs, machines or times can be merged; weights per equation need no second pass over the data.

    Args:
        equations: Equations.
        triangles: Triangle of each.
        samples: Number of samples.
        parameters: Length of the parameter vector.
        method: "qr" (accurate) or "normal" (from the normal equations, which square the condition number).
        rows: Number of rows of each equation, if different from `samples`.
        weights: Factor for each equation: 1/σ for weighted least squares.
        columns: Columns of the parameter vector; default: all that appear.
        theta: Parameters of these columns.
    """

    equations: tuple[Equation, ...]
    triangles: tuple[Array, ...]
    samples: int
    parameters: int
    method: str = "qr"
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            object.__setattr__(self, "rows", (self.samples,) * len(self.equations))

    @property
    def columns(self) -> Array:
        """Parameters that appear in any equation, in order."""
        return np.unique(np.concatenate([e.columns for e in self.equations]))

    def merge(self, *others: Factor) -> Factor:
        """Combine with `others` of the same equations."""
        samples, methods, rows = self.samples, {self.method}, np.array(self.rows)
        for other in others:
            same = len(other.equations) == len(self.equations) and all(
                a.name == b.name and np.array_equal(a.columns, b.columns)
                for a, b in zip(self.equations, other.equations, strict=True)
            )
            if not same:
                raise StructureError("Factors of different robots, terms or columns cannot be merged; use one study.")
            samples += other.samples
            rows = rows + np.array(other.rows)
            methods.add(other.method)
        method = "normal" if "normal" in methods else "qr"
        every = zip(self.triangles, *(other.triangles for other in others), strict=True)
        triangles = [triangle(np.vstack(own)) for own in every] if others else self.triangles
        return Factor(self.equations, tuple(triangles), samples, self.parameters, method, tuple(rows.tolist()))

    def combined_triangle(self, weights: ArrayLike | None = None, columns: Sequence[int] | None = None) -> Array:
        """Compute the triangle [A y] of all equations together."""
        wanted = self.columns.tolist() if columns is None else columns
        scale = np.ones(len(self.equations)) if weights is None else np.asarray(weights, dtype=float)
        if scale.shape != (len(self.equations),):
            raise ShapeError(f"Expected {len(self.equations)} weights, one per equation, not shape {scale.shape}.")
        return triangle(np.vstack([w * block for w, block in zip(scale, self.blocks(wanted), strict=True)]))

    def blocks(self, columns: Sequence[int]) -> list[Array]:
        """Return for every equation its triangle over `columns` and the right side, [A_e y_e]; missing columns are
        zero.
        """
        out = []
        for equation, r in zip(self.equations, self.triangles, strict=True):
            own, where = equation.among(columns)
            block = np.zeros((len(r), len(columns) + 1))
            block[:, where], block[:, -1] = r[:, own], r[:, -1]
            out.append(block)
        return out

    def solve(self, weights: ArrayLike | None = None, columns: Sequence[int] | None = None) -> Array:
        """Solve least squares over independent columns."""
        r = self.combined_triangle(weights, columns)
        self._check_digits(r)
        return solve_triangle(r[:-1, :-1], r[:-1, -1])

    def _check_digits(self, r: Array) -> None:
        """Refuse columns that are dependent, or too nearly so for the method of the factor."""
        pivots = np.abs(np.diag(r)[:-1])
        lengths = np.linalg.norm(r[:, :-1], axis=0)
        worst = float(np.min(pivots / np.where(lengths > 0.0, lengths, np.inf), initial=1.0))
        limit = _SMALLEST_PIVOT[self.method]
        if worst < limit:
            hint = "use method='qr', or " if self.method == "normal" else ""
            raise StructureError(
                f"The columns are dependent, or nearly so (smallest scaled pivot {worst:.1e}, limit {limit:.0e}); "
                f"{hint}choose fewer columns, such as the base parameters'."
            )

    def residual_sums(self, theta: ArrayLike, columns: Sequence[int] | None = None) -> Array:
        """Sum the squared residuals of every equation."""
        wanted = self.columns if columns is None else np.asarray(columns, dtype=np.int64)
        full = np.zeros(self.parameters)
        full[wanted] = theta
        errors = [r[:, :-1] @ full[e.columns] - r[:, -1] for e, r in zip(self.equations, self.triangles, strict=True)]
        return np.array([float(e @ e) for e in errors])


def triangle(matrix: Array) -> Array:
    """Compute the square upper triangle R of a QR factorisation of `matrix`, padded with zero rows."""
    width = matrix.shape[1]
    r = np.asarray(np.linalg.qr(matrix, mode="r"))
    if len(r) < width:
        r = np.vstack([r, np.zeros((width - len(r), width))])
    return r
