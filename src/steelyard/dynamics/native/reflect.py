"""Reflect rows into a triangle, sample by sample, in LLVM: the inner loop of recursive least squares.

The state is the triangle [R z; 0 ρ] of all rows [A y] so far. An update reflects m new rows into it, column by
column (Golub & Van Loan, Matrix Computations, section 5.1), in a form that keeps the diagonal positive: with the
pivot r, the column a of the new rows and n = √(r² + aᵀa),

    sⱼ = (r·rⱼ + Σ aᵢ Aᵢⱼ)/n,     Aᵢⱼ ← Aᵢⱼ − aᵢ (rⱼ + sⱼ)/(r + n),     rⱼ ← sⱼ,

which is a reflection and a change of sign, without cancellation. Lanes of a vector are columns. The triangle may be
scaled in the same pass (forgetting) at no cost. The same formulas with the other sign of aᵀa and aᵢ Aᵢⱼ remove rows
(a hyperbolic reflection), which is safe if the removed rows are a small part.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import DOUBLE, Vectors, double
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.ground.arrays import Array

# Maximum number of rows of one reflection: eight columns' factors and a vector of each row fit into registers.
MOST_ROWS = 8

# A single pointer to these is passed: a ctypes call with seven arguments would take longer than the arithmetic.
ARGUMENTS = ("triangle", "rows", "size", "pad", "updates", "scale", "theta")
_ROWS, _UPDATES, _SCALE, _THETA = (ARGUMENTS.index(x) for x in ("rows", "updates", "scale", "theta"))


def _update(rows: int, remove: bool) -> Vectors:
    t = Vectors()
    places = {name: t.at("%arguments", k) for k, name in enumerate(ARGUMENTS)}
    triangle, first, theta = (t.load(places[x], "ptr") for x in ("triangle", "rows", "theta"))
    size, pad, updates = (t.load(places[x], "i64") for x in ("size", "pad", "updates"))
    scale = t.load(places["scale"])
    scales = t.broadcast(scale)
    step = t.mul(pad, rows)
    with t.loop(0, updates) as u:
        begin = t.at(first, t.mul(u, step))
        new = [t.at(begin, t.mul(pad, i)) for i in range(rows)]
        with t.loop(0, size) as k:
            _reflect(t, t.at(triangle, t.mul(k, pad)), new, k, pad, scale, scales, remove)
    with t.when(t.let(f"icmp ne ptr {theta}, null")):
        _solve(t, triangle, theta, t.sub(size, 1), pad)
    return t


def _reflect(t: Vectors, row: str, new: list[str], k: str, pad: str, scale: str, scales: str, remove: bool) -> None:
    """Reflect column k of the new rows into row k of the triangle."""
    column = [t.load(t.at(a, k)) for a in new]
    square = t.chains([(a, a) for a in column], 2, DOUBLE)
    some = t.let(f"fcmp une double {square}, 0.0")  # also true for NaN, which must not vanish
    scaled = t.let(f"fcmp une double {scale}, 1.0")
    with t.when(t.let(f"or i1 {some}, {scaled}")):
        pivot = t.op("fmul", scale, t.load(t.at(row, k)), DOUBLE)
        signed = t.negative(square, DOUBLE) if remove else square
        norm = t.intrinsic("sqrt", t.fma(pivot, pivot, signed, DOUBLE), kind=DOUBLE)
        # Without a reflection the row is only scaled, and there is no division by a pivot, which may be zero.
        # 1/n instead of the slightly faster n·(1/n²): with few rows the remainder shrinks by 1e-16 per column, and n²
        # underflows long before n.
        share = t.let(f"select i1 {some}, double {t.let(f'fdiv double 1.0, {norm}')}, double 0.0")
        back = t.let(f"fdiv double -1.0, {t.op('fadd', pivot, norm, DOUBLE)}")
        back = t.let(f"select i1 {some}, double {back}, double 0.0")
        onwards = t.op("fmul", t.op("fmul", pivot, scale, DOUBLE), share, DOUBLE)
        keep = t.let(f"select i1 {some}, double {onwards}, double {scale}")
        kept = t.broadcast(keep)
        onto = t.negative(share, DOUBLE) if remove else share
        shares = [t.broadcast(t.op("fmul", a, onto, DOUBLE)) for a in column]
        backs = [t.broadcast(t.op("fmul", a, back, DOUBLE)) for a in column]
        with t.loop(t.let(f"and i64 {k}, {-t.width}"), pad, t.width) as j:
            place = t.at(row, j)
            old = t.load(place, t.kind)
            others = [t.at(a, j) for a in new]
            values = [t.load(p, t.kind) for p in others]
            moved = t.chains([(kept, old), *zip(shares, values, strict=True)], 2)
            t.store(moved, place, t.kind)
            both = t.fma(scales, old, moved)
            for value, factor, p in zip(values, backs, others, strict=True):
                t.store(t.fma(factor, both, value), p, t.kind)


def _solve(t: Vectors, triangle: str, theta: str, count: str, pad: str) -> None:
    """Solve R θ = z from the last block of rows to the first, by vectors, and by single numbers within a block."""
    w, zero = t.width, "zeroinitializer"
    rests = [t.variable() for _ in range(w)]
    with t.loop(0, pad, w) as j:
        t.store(zero, t.at(theta, j), t.kind)
    blocks = t.let(f"sdiv i64 {t.add(count, w - 1)}, {w}")
    sums = [t.variable(t.kind) for _ in range(w)]
    with t.loop(0, blocks) as b:
        first = t.mul(t.sub(t.sub(blocks, 1), b), w)
        rows = [t.at(triangle, t.mul(t.minimum(t.add(first, i), t.sub(count, 1)), pad)) for i in range(w)]
        for place in sums:
            t.store(zero, place, t.kind)
        with t.loop(t.add(first, w), pad, w) as j:
            known = t.load(t.at(theta, j), t.kind)
            for row, place in zip(rows, sums, strict=True):
                t.store(t.fma(t.load(t.at(row, j), t.kind), known, t.load(place, t.kind)), place, t.kind)
        for row, place, rest in zip(rows, sums, rests, strict=True):
            dot = t.add_up(t.load(place, t.kind))
            t.store(t.op("fsub", t.load(t.at(row, count)), dot, DOUBLE), rest)
        _solve_block(t, rows, rests, theta, first, count)


def _solve_block(t: Vectors, rows: list[str], rests: list[str], theta: str, first: str, count: str) -> None:
    found: list[tuple[int, str]] = []
    for i in reversed(range(t.width)):
        index = t.add(first, i)
        value = t.load(rests[i])
        for other, solved in found:
            entry = t.load(t.at(rows[i], t.add(first, other)))
            value = t.fma(t.negative(entry, DOUBLE), solved, value, DOUBLE)
        value = t.op("fdiv", value, t.load(t.at(rows[i], t.minimum(index, t.sub(count, 1)))), DOUBLE)
        inside = t.let(f"icmp slt i64 {index}, {count}")
        value = t.let(f"select i1 {inside}, double {value}, double {double(0.0)}")
        with t.when(inside):
            t.store(value, t.at(theta, index))
        found.append((i, value))


class _Driver:
    """Updates that add or remove `rows` rows each: one call with the address of `ARGUMENTS`."""

    def __init__(self, rows: int, remove: bool) -> None:
        text = _update(rows, remove)
        body = text.function("update", "ptr noalias %arguments")
        self._code = Code("\n".join([*sorted(text.declarations), body]), optimise=True)
        self.call: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._code.address("update"))


@cache
def _driver(rows: int, remove: bool) -> _Driver:
    """Return the cached driver for 1 … MOST_ROWS rows; a reference to it keeps its code alive."""
    return _Driver(rows, remove)


def wide_rows(rows: int, columns: int) -> Array:
    """Allocate zeros of whole vectors per row, aligned to cache lines.

    Args:
        rows: Number of rows.
        columns: Minimum number of columns.
    """
    pad = -(-columns // vector_width()) * vector_width()
    return on_cache_lines(rows * pad).reshape(rows, pad)


class Reflections:
    """Calls that reflect `rows` into a triangle, or out of it, and overwrite them; allocate all arrays by `wide_rows`.

    Args:
        triangle: [R z; 0 ρ], changed in place.
        rows: Buffer for new rows [A y].
        size: Number of rows of the triangle that are used.
        remove: Remove the rows instead of adding them.
        theta: Buffer for R⁻¹z, on request.
    """

    def __init__(
        self, triangle: Array, rows: Array, size: int, remove: bool = False, theta: Array | None = None
    ) -> None:
        self._alive = (triangle, rows, theta)
        self._theta = 0 if theta is None else theta.ctypes.data
        self._calls: list[tuple[Any, NDArray[np.int64], Array, int]] = []
        for first in range(0, len(rows), MOST_ROWS):
            call = _driver(min(MOST_ROWS, len(rows) - first), remove).call
            where = (triangle.ctypes.data, rows[first:].ctypes.data)
            block = np.array([*where, size, triangle.shape[1], 1, 0, 0], dtype=np.int64)
            self._calls.append((call, block, block.view(np.float64), block.ctypes.data))

    def __call__(self, scale: float = 1.0, solve: bool = False) -> None:
        """Multiply the triangle by `scale` and reflect the rows.

        Args:
            scale: Factor for the triangle.
            solve: Also compute R⁻¹z into `theta`.
        """
        last = len(self._calls) - 1
        for k, (call, block, floats, address) in enumerate(self._calls):
            floats[_SCALE] = scale if k == 0 else 1.0
            block[_THETA] = self._theta if solve and k == last else 0
            call(address)

    def update_many(self, rows: Array, scale: float) -> None:
        """Reflect updates one after the other.

        Args:
            rows: Rows `(updates, rows, columns)`, at most `MOST_ROWS` per update; they are overwritten.
            scale: Factor for the triangle before each update.
        """
        call, block, floats, address = self._calls[0]
        before = block[_ROWS]
        floats[_SCALE], block[_THETA], block[_ROWS], block[_UPDATES] = scale, 0, rows.ctypes.data, len(rows)
        call(address)
        block[_ROWS], block[_UPDATES] = before, 1
