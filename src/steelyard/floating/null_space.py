"""Null spaces of unknown forces along a stretch: N(q) with orthonormal columns and U(q) D N(q) = 0.

N removes all unknown forces and keeps white noise white. It is the projection of a fixed basis, so it varies smoothly
along a motion and preserves the spectrum of coloured noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array

# Singular values of U D below this share of the largest are zero: redundant contacts.
_DEPENDENT = 1e-8
# Smallest pivot relative to the largest for normal equations: twelve of sixteen digits remain.
_PIVOT = 1e-2
# Smallest eigenvalue of Bᵀ N Nᵀ B: below it, a sample is too far from the middle of its stretch for the fixed basis B.
_TURNED = 1e-3

# The first axis with this share of the largest remainder is next, so that rounding does not decide between equal ones.
_FIRST = 0.5


def null_space(U: Array, scale: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Compute the smooth bases N of a stretch, `(samples, joints, rows)`, and flag samples with the usual rank.

    Args:
        U: Rows of the unknown forces, `(samples, unknowns, joints)`.
        scale: D, `(joints,)`.
    """
    n = U.shape[2]
    if not U.shape[1]:
        return np.broadcast_to(np.eye(n), (len(U), n, n)), np.ones(len(U), dtype=bool)
    rows = U * scale
    columns = np.swapaxes(rows, 1, 2)
    gram = rows @ columns
    if _regular(gram):
        B, usual = _complement(np.linalg.qr(columns[len(columns) // 2])[0]), np.ones(len(U), dtype=bool)
        near = B - columns @ np.linalg.solve(gram, rows @ B)
    else:
        spanned, usual = _orthonormal(columns)
        B = _complement(spanned[len(spanned) // 2])
        near = B - spanned @ (np.swapaxes(spanned, 1, 2) @ B)
    # With W = Bᵀ near = L Lᵀ, near L⁻ᵀ has orthonormal columns; the Cholesky factor is as smooth as W.
    W = np.swapaxes(B, 0, 1) @ near
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(W))
    except np.linalg.LinAlgError:  # A sample is orthogonal to the middle of the stretch.
        turned = np.linalg.eigvalsh(W)[:, 0] <= _TURNED
        W[turned] = np.eye(W.shape[1])
        inverse = np.linalg.inv(np.linalg.cholesky(W))
        usual = usual & ~turned
    # The smallest eigenvalue of W is at least 1/‖L⁻¹‖².
    return near @ np.swapaxes(inverse, 1, 2), usual & (np.sum(inverse**2, axis=(1, 2)) < 1.0 / _TURNED)


def fixed_basis(rows: Array) -> Array | None:
    """Compute the fixed basis B of a stretch, `(joints, rows)`; None if the rows are dependent, or nearly so.

    Args:
        rows: U D in the middle of the stretch, `(unknowns, joints)`.
    """
    if len(rows) >= rows.shape[1] or not _regular((rows @ rows.T)[None]):
        return None
    return _complement(np.linalg.qr(rows.T)[0])


def precise(pivots: Array, turned: Array) -> NDArray[np.bool_]:
    """Flag samples whose normal equations keep the digits, near enough to the middle of their stretch; NaN is neither.

    Args:
        pivots: Ratio of the smallest to the largest pivot, as `ProjectedRegressor` returns it.
        turned: 1/(smallest eigenvalue of Bᵀ N Nᵀ B), or more.
    """
    return np.asarray((pivots > _PIVOT) & (turned < 1.0 / _TURNED))


def _regular(gram: Array) -> bool:
    """Whether the normal equations of unknown forces can be solved at all samples: they lose half of the digits."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(gram), axis1=1, axis2=2)
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(pivots.min(axis=1) > _PIVOT * pivots.max(axis=1)))


def _complement(spanned: Array) -> Array:
    """Return an orthonormal basis of the directions orthogonal to the orthonormal columns of `spanned`.

    Its columns are as near as possible to axes of coordinates, so that a row is nearly the equation of one coordinate,
    the same one in all stretches; any other basis would depend on rounding.
    """
    P = np.eye(len(spanned)) - spanned @ spanned.T
    chosen: list[int] = []
    rest = P.copy()
    for _ in range(len(spanned) - spanned.shape[1]):
        left = np.diagonal(rest)
        k = int(np.argmax(left >= _FIRST * left.max()))
        chosen.append(k)
        rest -= np.outer(rest[:, k], rest[:, k]) / rest[k, k]
        rest[:, k] = rest[k] = 0.0
    near = P[:, sorted(chosen)]
    u, _, v = np.linalg.svd(near, full_matrices=False)
    return np.asarray(u @ v)  # the nearest orthonormal columns


def _orthonormal(columns: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return orthonormal bases of the spans of `columns`, and flag samples with the usual rank."""
    Q, R = np.linalg.qr(columns)
    size = np.abs(np.diagonal(R, axis1=1, axis2=2))
    if Q.shape[2] <= columns.shape[1] and np.all(size.min(axis=1) > _DEPENDENT * size.max(axis=1)):
        return Q, np.ones(len(columns), dtype=bool)
    # Redundant contacts need a reliable rank, so it follows from singular values.
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    ranks = np.sum(s > _DEPENDENT * s[:, :1], axis=1)
    rank = int(np.median(ranks))
    return u[:, :, :rank], ranks == rank
