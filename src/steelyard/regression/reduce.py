"""Reduce samples to the triangular factor of [A y], block by block: the tall matrix never exists."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.native.drivers import TILE
from steelyard.dynamics.native.run import Batch, in_threads
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.factor import Factor, triangle
from steelyard.regression.rows import Rows

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
    """The factor of the given samples. Memory beyond the inputs does not depend on their number.

    Args:
        rows: the traced equations.
        q, dq, ddq, tau: positions (rad, m), their rates, and torques (N m, N), `(samples, joints)` each.
        method: "qr" is accurate whatever the conditioning. "normal" adds up one Gram matrix per equation, several times
            faster; the factor then refuses to be solved where conditioning would cost too many digits.
        threads: how many work at once; None: $STEELYARD_THREADS, or the cores there are.
    """
    batch = Batch(rows.function, {"q": q, "dq": dq, "ddq": ddq, "tau": tau})
    if batch.samples == 0:
        raise SteelyardError("There is no sample to reduce.")
    if method == "qr":
        parts = in_threads(lambda a, b: _qr(rows, batch, a, b), batch.samples, threads)
        with one_blas_thread():
            triangles = [triangle(np.vstack(same)) if len(parts) > 1 else same[0] for same in zip(*parts, strict=True)]
    elif method == "normal":
        grams = in_threads(lambda a, b: gram_matrices(rows, batch, a, b), batch.samples, threads)
        with one_blas_thread():
            triangles = [gram_root(np.sum(same, axis=0)) for same in zip(*grams, strict=True)]
    else:
        raise SteelyardError(f"There is no method '{method}'; choose 'qr' or 'normal'.")
    return Factor(rows.equations, tuple(triangles), batch.samples, rows.parameters, method)


def _qr(rows: Rows, batch: Batch, start: int, stop: int) -> list[Array]:
    """Triangles of the samples start…stop: every block is reflected into the triangle so far."""
    widths = np.array([e.width for e in rows.equations], dtype=np.int64)
    return rows.evaluator.machine.triangles(batch, start, stop, rows.firsts, widths)


def gram_matrices(rows: Rows, batch: Batch, start: int, stop: int) -> list[Array]:
    """Gram matrices [A y]ᵀ[A y] of `rows` at the samples `start` to `stop` of `batch`, one per equation."""
    if rows.pad % TILE:
        raise SteelyardError(f"The normal equations need Rows(..., pad={TILE}).")
    grams = rows.evaluator.machine.grams(batch, start, stop, rows.firsts, rows.sizes)
    return [gram[: e.width, : e.width] for gram, e in zip(grams, rows.equations, strict=True)]


def gram_root(gram: Array) -> Array:
    """A triangle R with RᵀR = `gram`, by Cholesky with complete pivoting of the matrix scaled to a unit diagonal.

    One joint's columns are often dependent although those of all joints together are not. Pivoting stops where
    only rounding is left (Higham 2002, section 10.3), so that nothing is lost that was known.
    """
    from scipy.linalg.lapack import dpstrf

    scale = np.sqrt(np.diag(gram))
    scale[scale == 0.0] = 1.0
    packed, pivots, rank, _ = dpstrf(gram / np.outer(scale, scale))
    root = np.zeros_like(gram)
    root[:, pivots - 1] = np.triu(packed) * (np.arange(len(gram)) < rank)[:, None]
    return triangle(root) * scale
