"""The recursive kernel method, on sixteen parameters per link.

Urrea & Pascal 2017, "Parameter identification methods for real redundant manipulators", section 4.1, (32)–(34). The
sixteen are mass, first moment, the second moments of the centre of mass π = m·(x², y², z², xy, yz, zx), and the
tensor J about the centre of mass. The tensor about the frame's origin is linear in them, I = J + (tr Π)·1 − Π with
the matrix Π of the π, so the regressor of the sixteen follows from that of the ten.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.parameters.terms import Parameter
from steelyard.regression._elimination import DEPENDENT, from_null_space, null_space

SIXTEEN = (
    *("m", "mx", "my", "mz"),
    *("mxx", "myy", "mzz", "mxy", "myz", "mzx"),
    *("Jxx", "Jxy", "Jyy", "Jxz", "Jyz", "Jzz"),
)
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m²",) * 12)
# Rows: the tensor in the order xx, xy, yy, xz, yz, zz. Columns: π in the order of (34).
_PARALLEL_AXES = np.array(
    [
        [0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, -1.0, 0.0, 0.0],
        [1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0, -1.0, 0.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


def ten_from_sixteen(links: int, terms: int) -> Array:
    """The matrix A with θ = A λ: ten from sixteen parameters per link; the terms' stay what they are."""
    one = np.zeros((10, 16))
    one[:4, :4] = np.eye(4)
    one[4:, 4:10] = _PARALLEL_AXES
    one[4:, 10:] = np.eye(6)
    A = np.zeros((10 * links + terms, 16 * links + terms))
    A[: 10 * links, : 16 * links] = np.kron(np.eye(links), one)
    A[10 * links :, 16 * links :] = np.eye(terms)
    return A


def sixteen_parameters(links: int, of_terms: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Names and units: m1, mx1, …, mxx1 (m·x² of the centre of mass), …, Jxx1 (about the centre of mass), …"""
    of_links = tuple(
        Parameter(f"{name}{i + 1}", unit) for i in range(links) for name, unit in zip(SIXTEEN, _UNITS, strict=True)
    )
    return of_links + tuple(of_terms)


def by_kernel(
    visible: Array, links: int, order: Sequence[int], tolerance: float | None = None
) -> tuple[list[int], Array]:
    """Independent columns and echelon form of the ten-parameter regressor, by recursion over the sixteen.

    From the last link to the first (terms before all), the kernel of the link's columns and of those still
    standing behind it tells which parameters can be added to which; those that are added fall.

    Args:
        visible: rows that span the row space of the regressor.
        links: how many links there are; the columns after theirs belong to terms.
        order: the preferred order of the columns. Of the sixteen, the π come last within their link.
        tolerance: what is less is zero; None where that is plain.
    """
    terms = visible.shape[1] - 10 * links
    A = ten_from_sixteen(links, terms)
    wide = visible @ A
    sizes = np.linalg.norm(wide, axis=0)
    sizes[sizes <= (tolerance or DEPENDENT) * (np.linalg.norm(visible, axis=0) @ np.abs(A))] = (
        0.0  # columns that cancel
    )
    wide = np.where(sizes > 0.0, wide / np.where(sizes > 0.0, sizes, 1.0), 0.0)
    groups = np.eye(wide.shape[1])  # row k: the parameters that have been added to parameter k
    standing: list[int] = []
    for block in reversed(_blocks(links, order)):
        candidates = block + standing
        independent, T = from_null_space(null_space(wide[:, candidates], tolerance), len(candidates))
        dependent = [k for k in range(len(candidates)) if k not in set(independent)]
        standing = [candidates[k] for k in independent]
        fallen = [candidates[k] for k in dependent]
        groups[standing] += T[:, dependent] @ groups[fallen]
    echelon = groups[standing] * sizes / sizes[standing, None]
    ten = [_sixteenth(k, links) for k in range(visible.shape[1])]
    place = {wide_index: k for k, wide_index in enumerate(ten)}
    return [place[k] for k in standing], echelon[:, ten]


def _sixteenth(k: int, links: int) -> int:
    """The column among the sixteen that equals column k among the ten."""
    if k >= 10 * links:
        return 6 * links + k
    link, within = divmod(k, 10)
    return 16 * link + (within if within < 4 else within + 6)


def _blocks(links: int, order: Sequence[int]) -> list[list[int]]:
    """Runs of columns of one link, in order of preference; the π follow the last run of their link."""
    blocks: list[list[int]] = []
    owner = -2
    last: dict[int, int] = {}
    for k in order:
        link = k // 10 if k < 10 * links else -1
        if link != owner:
            blocks.append([])
            owner = link
        blocks[-1].append(_sixteenth(k, links))
        last[link] = len(blocks) - 1
    for link in range(links):
        blocks[last[link]].extend(range(16 * link + 4, 16 * link + 10))
    return blocks
