"""Reduce samples to the triangular factor of [A y] block by block, without storing the tall matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.native.compiled_function import Batch, in_threads
from steelyard.dynamics.native.drivers import TILE
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
