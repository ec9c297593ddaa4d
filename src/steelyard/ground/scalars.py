"""The scalar language that physics is written in.

A scalar is a number, a NumPy array of samples, or a node of the traced graph (`dynamics.graph.Node`).
Formulas use ordinary operators and the functions below, and run on all three; the graph drops every zero and
every ±1 while it is traced, so formulas need not care.
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
    """`a` · `b`."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def cross(a: Vector, b: Vector) -> list[Scalar]:
    """`a` × `b`, of three entries each."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def plus(a: Vector, b: Vector) -> list[Scalar]:
    """`a` + `b`."""
    return [x + y for x, y in zip(a, b, strict=True)]


def times(k: Scalar, a: Vector) -> list[Scalar]:
    """`k` · `a`: a vector times a scalar."""
    return [k * x for x in a]


def matvec(m: Sequence[Vector], x: Vector) -> list[Scalar]:
    """`m` · `x`: a matrix, row by row, times a vector."""
    return [dot(row, x) for row in m]


def transposed(m: Sequence[Vector]) -> list[list[Scalar]]:
    """`m`ᵀ of a matrix given row by row."""
    return [list(column) for column in zip(*m, strict=True)]


def matmul(a: Sequence[Vector], b: Sequence[Vector]) -> list[list[Scalar]]:
    """`a` · `b` of matrices given row by row."""
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]
