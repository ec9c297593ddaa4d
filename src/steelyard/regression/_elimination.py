"""Independent columns, and the dependence of the others on them: three algorithms for the same echelon form.

All take a matrix `E` whose columns are in order of preference, and return the independent columns and the reduced
echelon form T: one row per independent column, identity there, E = E[:, independent] · T. Values below `tolerance` are
zero; without a tolerance they must be clearly zero or clearly not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steelyard.errors import StructureError, UnknownNameError
from steelyard.ground.arrays import Array, independent_columns
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.parameters.terms import Parameter

# Order of preference: the first of a group of dependent columns becomes independent.


Order = Sequence[str] | Callable[[Parameter], Any] | None


def preference_order(parameters: Sequence[Parameter], links: int, order: Order = None) -> list[int]:
    """Sort the indices of the parameters by preference.

    Args:
        parameters: Ten per link, then those of the terms.
        links: Number of links.
        order: None for link by link in Pinocchio's order, then the terms; the ten names m … Izz in another order
            within each link; names of parameters to put in front of all others; or a sort key.
    """
    natural = list(range(len(parameters)))
    if order is None:
        return natural
    if callable(order):
        return sorted(natural, key=lambda k: order(parameters[k]))
    names = tuple(order)
    for name in names:
        if names.count(name) > 1:
            raise StructureError(f"order names '{name}' twice; name each parameter once.")
    if set(names) == set(INERTIAL_NAMES):
        within = [INERTIAL_NAMES.index(name) for name in names]
        return [10 * link + k for link in range(links) for k in within] + natural[10 * links :]
    known = [p.name for p in parameters]
    for name in names:
        if name not in known:
            raise UnknownNameError("parameter", name, known)
    first = [known.index(name) for name in names]
    return first + [k for k in natural if k not in set(first)]


# E has orthonormal rows, so a column's distance to the span of the columns before it is a number between 0 and 1.
# Over seventy robots independent columns have 1e-4 or more. Dependent ones have 1e-11 or less, or up to 1e-7 if the
# structure omits something hidden.
INDEPENDENT = 1e-5
DEPENDENT = 1e-6

Echelon = tuple[list[int], Array]


def by_qr(E: Array, tolerance: float | None = None) -> Echelon:
    """Orthogonalise from left to right; a column without remainder is dependent."""
    independent = independent_columns(E, lambda _, size: is_nonzero(size, tolerance))
    T: Array = np.linalg.solve(E[:, independent], E).astype(np.float64)
    return independent, T


def by_rref(E: Array, tolerance: float | None = None) -> Echelon:
    """Eliminate by Gauss–Jordan (Szabó & Szádeczky-Kardoss 2021, section 3)."""
    T = E.copy()
    independent: list[int] = []
    for k in range(T.shape[1]):
        row = len(independent)
        if row == T.shape[0]:
            break
        pivot = row + int(np.argmax(np.abs(T[row:, k])))
        if not is_nonzero(abs(float(T[pivot, k])), tolerance):
            continue
        T[[row, pivot]] = T[[pivot, row]]
        T[row] /= T[row, k]
        others = np.arange(T.shape[0]) != row
        T[others] -= np.outer(T[others, k], T[row])
        independent.append(k)
    return independent, T[: len(independent)]


def by_svd(E: Array, tolerance: float | None = None) -> Echelon:
    """Use the null space: a column is dependent iff a null vector ends in it (after Gautier & Khalil 1990)."""
    return from_null_space(null_space(E, tolerance), E.shape[1])


def null_space(E: Array, tolerance: float | None = None) -> Array:
    """Compute an orthonormal basis of the vectors with E x = 0, one per row."""
    _, s, v = np.linalg.svd(E)
    rank = sum(is_nonzero(float(x), tolerance) for x in s)
    basis: Array = v[rank:]
    return basis


def from_null_space(basis: Array, columns: int) -> Echelon:
    """Compute the echelon form of a null space.

    Reduced from the right, each null vector has a 1 in a separate column, its last nonzero one. That column is minus
    the sum of the others, weighted by the vector.
    """
    reversed_dependent, reduced = by_rref(basis[:, ::-1])
    dependent = [columns - 1 - k for k in reversed_dependent]
    independent = [k for k in range(columns) if k not in set(dependent)]
    T = np.zeros((len(independent), columns))
    T[:, independent] = np.eye(len(independent))
    T[:, dependent] = -reduced[:, ::-1][:, independent].T
    return independent, T


def is_nonzero(size: float, tolerance: float | None = None) -> bool:
    """Return whether a number is nonzero; without a tolerance, raise an error for values that are not clearly one or
    the other.
    """
    if tolerance is not None:
        return size > tolerance
    if DEPENDENT < size < INDEPENDENT:
        raise StructureError(
            f"It is not clear whether a column is independent: the share {size:.0e} of it is. Try another order of the "
            f"columns, a tolerance, or --snap 1e-4 (in Python: load_robot(…, snap=1e-4))."
        )
    return size >= INDEPENDENT


METHODS: dict[str, Callable[[Array, float | None], Echelon]] = {"qr": by_qr, "rref": by_rref, "svd": by_svd}
