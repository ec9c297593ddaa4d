"""Scalar functions for the formulas of physics.

A scalar is a number, a NumPy array of samples, or a node of the traced graph (`dynamics.graph.Node`). Formulas use
operators and the functions below, and work for all three. The graph removes factors of 0 and ±1 while tracing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# A number, an array or a node: they share operators, not a base class.
Scalar = Any
Vector = Sequence[Scalar]

sin = np.sin
cos = np.cos
sqrt = np.sqrt
exp = np.exp
tanh = np.tanh
atan = np.arctan
absolute = np.abs
sign = np.sign
minimum = np.minimum
maximum = np.maximum


def dot(a: Vector, b: Vector) -> Scalar:
    """Return a · b.

    Args:
        a: Vector.
        b: Vector of the same length.
    """
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Vector, b: Vector) -> list[Scalar]:
    """Return a × b.

    Args:
        a: Vector of three entries.
        b: Vector of three entries.
    """
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def plus(a: Vector, b: Vector) -> list[Scalar]:
    """Return a + b.

    Args:
        a: Vector.
        b: Vector of the same length.
    """
    return [x + y for x, y in zip(a, b, strict=True)]


def times(k: Scalar, a: Vector) -> list[Scalar]:
    """Return k · a.

    Args:
        k: Scalar.
        a: Vector.
    """
    return [k * x for x in a]


def matvec(m: Sequence[Vector], x: Vector) -> list[Scalar]:
    """Return m · x.

    Args:
        m: Matrix as a list of rows.
        x: Vector.
    """
    return [dot(row, x) for row in m]


def transposed(m: Sequence[Vector]) -> list[list[Scalar]]:
    """Return the transpose of the matrix `m`, a list of rows."""
    return [list(column) for column in zip(*m, strict=True)]


def matmul(a: Sequence[Vector], b: Sequence[Vector]) -> list[list[Scalar]]:
    """Return a · b.

    Args:
        a: Matrix as a list of rows.
        b: Matrix as a list of rows.
    """
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]
