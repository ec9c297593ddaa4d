"""`Factor`: the small triangular factor of [A y], which suffices for linear estimation.

Samples are reduced to it block by block, without storing the tall matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.native.compiled_function import Batch, in_threads
from steelyard.dynamics.native.drivers import TILE
from steelyard.errors import ShapeError, SteelyardError, StructureError
from steelyard.ground.arrays import Array, one_blas_thread, solve_triangle
from steelyard.ground.short_repr import short_repr
from steelyard.regression.rows import Equation, Rows

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


_Method = Literal["qr", "normal"]


def reduce(
    rows: Rows,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    tau: ArrayLike,
    method: _Method = "qr",
    threads: int | None = None,
) -> Factor:
    """Compute the factor of samples. The memory needed in addition to the inputs does not grow with their number.

    Args:
        rows: Traced equations.
        q, dq, ddq, tau: Positions [rad, m], velocities, accelerations, and torques [N m, N], each `(samples, joints)`.
        method: "qr" is accurate for any conditioning. "normal" sums one Gram matrix per equation and is several times
            faster; its factor refuses to be solved if conditioning would cost too many digits.
        threads: Number of threads; default: $STEELYARD_THREADS, or all cores.
    """
    batch = Batch(rows.function, {"q": q, "dq": dq, "ddq": ddq, "tau": tau})
    if batch.samples == 0:
        raise SteelyardError("The arrays contain no samples; give at least one.")
    if method == "qr":
        parts = in_threads(lambda a, b: _qr(rows, batch, a, b), batch.samples, threads)
        with one_blas_thread():
            triangles = [triangle(np.vstack(same)) if len(parts) > 1 else same[0] for same in zip(*parts, strict=True)]
    elif method == "normal":
        grams = in_threads(lambda a, b: gram_matrices(rows, batch, a, b), batch.samples, threads)
        with one_blas_thread():
            triangles = [gram_root(np.sum(same, axis=0)) for same in zip(*grams, strict=True)]
    else:
        raise SteelyardError(f"Unknown method '{method}'; choose 'qr' or 'normal'.")
    return Factor(rows.equations, tuple(triangles), batch.samples, rows.parameters, method)


def _qr(rows: Rows, batch: Batch, start: int, stop: int) -> list[Array]:
    """Compute triangles of the samples start…stop by reflecting block after block."""
    widths = np.array([e.width for e in rows.equations], dtype=np.int64)
    return rows.evaluator.machine.triangles(batch, start, stop, rows.firsts, widths)


def gram_matrices(rows: Rows, batch: Batch, start: int, stop: int) -> list[Array]:
    """Compute Gram matrices [A y]ᵀ[A y] of some samples, one per equation.

    Args:
        rows: Traced equations.
        batch: Inputs.
        start: First sample.
        stop: One past the last sample.
    """
    if rows.pad % TILE:
        raise SteelyardError(f"The normal equations need Rows(..., pad={TILE}).")
    grams = rows.evaluator.machine.grams(batch, start, stop, rows.firsts, rows.sizes)
    return [gram[: e.width, : e.width] for gram, e in zip(grams, rows.equations, strict=True)]


def gram_root(gram: Array) -> Array:
    """Compute a triangle R with RᵀR = `gram`, by Cholesky with complete pivoting after scaling to a unit diagonal.

    One joint's columns are often dependent although those of all joints together are not. Pivoting stops at rounding
    (Higham 2002, section 10.3), without loss of information.
    """
    from scipy.linalg.lapack import dpstrf

    scale = np.sqrt(np.diag(gram))
    scale[scale == 0.0] = 1.0
    packed, pivots, rank, _ = dpstrf(gram / np.outer(scale, scale))
    root = np.zeros_like(gram)
    root[:, pivots - 1] = np.triu(packed) * (np.arange(len(gram)) < rank)[:, None]
    return triangle(root) * scale
