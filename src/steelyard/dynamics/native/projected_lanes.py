"""Rows projected onto the null space of unknown forces, in LLVM: NᵀD[Y f] with U D N = 0, sample by sample in lanes.

The kernel gives Y, f and the rows U of the unknown forces of a vector of samples; nothing but the projected rows leaves
the processor's cache. With S = U D and a fixed orthonormal basis B of the stretch,

    S Sᵀ = L Lᵀ,   Z = L⁻¹ S B,   V = B − Sᵀ L⁻ᵀ Z,   VᵀV = I − ZᵀZ = C Cᵀ,   N = V C⁻ᵀ.

The normal equations lose half of the digits, so the ratio of the pivots of L and |C⁻¹|² are results: the caller repeats
samples with small pivots by orthogonal transformations.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import Vectors, double
from steelyard.dynamics.native.compiled_function import Batch, CompiledFunction
from steelyard.dynamics.native.drivers import gather, transpose
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.ground.arrays import Array

_Index = NDArray[np.int64]

_ARGUMENTS = (
    "ptr %kernel, ptr %inputs, ptr %strides, ptr %widths, i64 %count, i64 %start, i64 %stop, "
    "ptr noalias %rows_in, ptr noalias %rows_out, ptr noalias %jacobian, i64 %unknowns, i64 %joints, i64 %free, "
    "ptr noalias %basis, ptr noalias %scale, ptr noalias %work, i64 %groups, ptr noalias %entries, "
    "ptr noalias %coordinates, ptr noalias %sources, i64 %columns, ptr noalias %result, ptr noalias %quality"
)


class _Lanes(Vectors):
    """Small matrices whose entries are vectors of samples, one after the other in memory."""

    def entry(self, matrix: str, row: str | int, column: str | int, width: str | int) -> str:
        """Return the place of an entry."""
        return self.at(matrix, self.add(self.mul(row, width), column), self.kind)

    def get(self, place: str) -> str:
        return self.load(place, self.kind)

    def put(self, value: str, place: str) -> None:
        self.store(value, place, self.kind)

    def number(self, value: float) -> str:
        return "<" + ", ".join([f"double {double(value)}"] * self.width) + ">"

    def subtracted(self, first: str, start: str | int, stop: str | int, factors: Any) -> str:
        """Return `first` minus the sum of products of the two vectors that factors(index) returns."""
        total = self.variable(self.kind)
        self.put(first, total)
        with self.loop(start, stop) as index:
            a, b = factors(index)
            self.put(self.fma(self.negative(a), b, self.get(total)), total)
        return self.get(total)


def _project() -> Vectors:
    t = _Lanes()
    m, n, r, w = "%unknowns", "%joints", "%free", vector_width()
    S = "%work"
    L = t.at(S, t.mul(m, n), t.kind)
    Z = t.at(L, t.mul(m, m), t.kind)
    X = t.at(Z, t.mul(m, r), t.kind)
    N = t.at(X, t.mul(m, r), t.kind)
    C = t.at(N, t.mul(n, r), t.kind)
    inverse = t.at(C, t.mul(r, r), t.kind)
    with t.loop("%start", "%stop", LANES) as first:
        lanes = t.minimum(t.sub("%stop", first), LANES)
        gather(t, first, lanes)
        with t.loop(0, lanes, w) as s:
            rows = t.at("%rows_out", s)
            t.do(f"call void %kernel(ptr {t.at('%rows_in', s)}, ptr {rows}, i64 1)")
            sample = t.sub(t.add(first, s), "%start")
            _scaled_unknowns(t, rows, S)
            low, high = t.variable(t.kind), t.variable(t.kind)
            t.put(t.number(1e300), low)
            t.put(t.number(0.0), high)
            _gram(t, S, L)
            _root(t, L, m, low, high)
            t.put(t.op("fdiv", t.get(low), t.get(high)), t.at("%quality", t.mul(sample, 2)))
            _first_basis(t, S, L, Z, X, N)
            _root_of_rest(t, Z, C)
            squares = t.variable(t.kind)
            t.put(t.number(0.0), squares)
            _inverted(t, C, inverse, squares)
            t.put(t.get(squares), t.at("%quality", t.add(t.mul(sample, 2), w)))
            _orthonormal(t, N, inverse, X)
            _products(t, rows, N, sample)
    return t


def _scaled_unknowns(t: _Lanes, rows: str, S: str) -> None:
    """S = U D."""
    with t.loop(0, "%unknowns") as a, t.loop(0, "%joints") as i:
        k = t.add(t.mul(a, "%joints"), i)
        value = t.get(t.at(rows, t.element("%jacobian", k)))
        t.put(t.op("fmul", value, t.broadcast(t.element("%scale", i, "double"))), t.at(S, k, t.kind))


def _gram(t: _Lanes, S: str, L: str) -> None:
    """Lower triangle of S Sᵀ."""
    with t.loop(0, "%unknowns") as a, t.loop(0, t.add(a, 1)) as b:
        total = t.variable(t.kind)
        t.put(t.number(0.0), total)
        with t.loop(0, "%joints") as i:
            x, y = (t.get(t.entry(S, k, i, "%joints")) for k in (a, b))
            t.put(t.fma(x, y, t.get(total)), total)
        t.put(t.get(total), t.entry(L, a, b, "%unknowns"))


def _root(t: _Lanes, L: str, size: str, low: str = "", high: str = "") -> None:
    """Cholesky factor in place; its diagonal holds the inverses of the pivots. `low` and `high` bound the pivots."""
    with t.loop(0, size) as j:
        place = t.entry(L, j, j, size)

        def square(k: str) -> tuple[str, str]:
            value = t.get(t.entry(L, j, k, size))
            return value, value

        pivot = t.intrinsic("sqrt", t.subtracted(t.get(place), 0, j, square))
        if low:
            t.put(t.intrinsic("minnum", t.get(low), pivot), low)
            t.put(t.intrinsic("maxnum", t.get(high), pivot), high)
        back = t.op("fdiv", t.number(1.0), pivot)
        t.put(back, place)
        with t.loop(t.add(j, 1), size) as i:
            below = t.entry(L, i, j, size)

            def pair(k: str) -> tuple[str, str]:
                return t.get(t.entry(L, i, k, size)), t.get(t.entry(L, j, k, size))

            t.put(t.op("fmul", t.subtracted(t.get(below), 0, j, pair), back), below)


def _first_basis(t: _Lanes, S: str, L: str, Z: str, X: str, V: str) -> None:
    """Z = L⁻¹ S B, X = L⁻ᵀ Z and V = B − Sᵀ X."""
    m, n, r = "%unknowns", "%joints", "%free"

    def of_basis(i: str, k: str) -> str:
        return t.broadcast(t.load(t.at("%basis", t.add(t.mul(i, r), k))))

    with t.loop(0, m) as a, t.loop(0, r) as k:
        total = t.variable(t.kind)
        t.put(t.number(0.0), total)
        with t.loop(0, n) as i:
            t.put(t.fma(t.get(t.entry(S, a, i, n)), of_basis(i, k), t.get(total)), total)

        def earlier(b: str) -> tuple[str, str]:
            return t.get(t.entry(L, a, b, m)), t.get(t.entry(Z, b, k, r))

        rest = t.subtracted(t.get(total), 0, a, earlier)
        t.put(t.op("fmul", rest, t.get(t.entry(L, a, a, m))), t.entry(Z, a, k, r))
    with t.loop(0, m) as backwards:
        a = t.sub(t.sub(m, 1), backwards)
        with t.loop(0, r) as k:

            def later(b: str) -> tuple[str, str]:
                return t.get(t.entry(L, b, a, m)), t.get(t.entry(X, b, k, r))

            rest = t.subtracted(t.get(t.entry(Z, a, k, r)), t.add(a, 1), m, later)
            t.put(t.op("fmul", rest, t.get(t.entry(L, a, a, m))), t.entry(X, a, k, r))
    with t.loop(0, n) as i, t.loop(0, r) as k:

        def removed(b: str) -> tuple[str, str]:
            return t.get(t.entry(S, b, i, n)), t.get(t.entry(X, b, k, r))

        t.put(t.subtracted(of_basis(i, k), 0, m, removed), t.entry(V, i, k, r))


def _root_of_rest(t: _Lanes, Z: str, C: str) -> None:
    """C of C Cᵀ = I − ZᵀZ; its diagonal holds inverses."""
    r = "%free"
    with t.loop(0, r) as k, t.loop(0, t.add(k, 1)) as j:
        one = t.let(f"select i1 {t.let(f'icmp eq i64 {k}, {j}')}, double 1.0, double 0.0")

        def pair(a: str) -> tuple[str, str]:
            return t.get(t.entry(Z, a, k, r)), t.get(t.entry(Z, a, j, r))

        t.put(t.subtracted(t.broadcast(one), 0, "%unknowns", pair), t.entry(C, k, j, r))
    _root(t, C, r)


def _inverted(t: _Lanes, C: str, inverse: str, squares: str) -> None:
    """C⁻¹, column by column, and the sum of its squares."""
    r = "%free"
    with t.loop(0, r) as j, t.loop(j, r) as k:
        one = t.let(f"select i1 {t.let(f'icmp eq i64 {k}, {j}')}, double 1.0, double 0.0")

        def pair(i: str) -> tuple[str, str]:
            return t.get(t.entry(C, k, i, r)), t.get(t.entry(inverse, i, j, r))

        value = t.op("fmul", t.subtracted(t.broadcast(one), j, k, pair), t.get(t.entry(C, k, k, r)))
        t.put(value, t.entry(inverse, k, j, r))
        t.put(t.fma(value, value, t.get(squares)), squares)


def _orthonormal(t: _Lanes, V: str, inverse: str, row: str) -> None:
    """N = D V C⁻ᵀ in place of V; `row` is room for one row."""
    r = "%free"
    with t.loop(0, "%joints") as i:
        factor = t.broadcast(t.element("%scale", i, "double"))
        with t.loop(0, r) as k:
            t.put(t.op("fmul", t.get(t.entry(V, i, k, r)), factor), t.at(row, k, t.kind))
        with t.loop(0, r) as k:
            total = t.variable(t.kind)
            t.put(t.number(0.0), total)
            with t.loop(0, t.add(k, 1)) as j:
                x, y = t.get(t.at(row, j, t.kind)), t.get(t.entry(inverse, k, j, r))
                t.put(t.fma(x, y, t.get(total)), total)
            t.put(t.get(total), t.entry(V, i, k, r))


def _products(t: _Lanes, rows: str, N: str, sample: str) -> None:
    """Write Nᵀ[Y f]: squares of a vector's columns, two rows of Nᵀ at a time, transposed to samples."""
    r, w = "%free", t.width
    with t.loop(0, "%groups") as g:
        column = t.minimum(t.mul(g, w), t.sub("%columns", w))  # the last square overlaps the one before
        begin, end = t.element("%entries", g), t.element("%entries", t.add(g, 1))
        with t.loop(0, r, 2) as k:
            pair = (k, t.minimum(t.add(k, 1), t.sub(r, 1)))
            sums = [[t.variable(t.kind) for _ in range(w)] for _ in pair]
            for place in (x for some in sums for x in some):
                t.put(t.number(0.0), place)
            with t.loop(begin, end) as e:
                i = t.element("%coordinates", e)
                factors = [t.get(t.entry(N, i, x, r)) for x in pair]
                source = t.at("%sources", t.mul(e, w), "i64")
                for c in range(w):
                    value = t.get(t.at(rows, t.element(source, c)))
                    for factor, some in zip(factors, sums, strict=True):
                        t.put(t.fma(factor, value, t.get(some[c])), some[c])
            for x, some in zip(pair, sums, strict=True):
                for lane, value in enumerate(transpose(t, [t.get(place) for place in some])):
                    row = t.add(t.mul(t.add(sample, lane), r), x)
                    t.put(value, t.at("%result", t.add(t.mul(row, "%columns"), column)))


@cache
def _driver() -> tuple[Code, Any]:
    text = _project()
    body = text.function("project", _ARGUMENTS)
    code = Code("\n".join([*sorted(text.declarations), body]), optimise=True)
    return code, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _ARGUMENTS.count("%"))(code.address("project"))


@dataclass(frozen=True, eq=False)
class _Tables:
    """Rows of the kernel's results: of U, and of the squares of columns to project with their coordinates."""

    jacobian: _Index
    entries: _Index
    coordinates: _Index
    sources: _Index


class NullSpaceRows:
    """Projected rows of one function.

    Args:
        function: Traced function of the shape (joints, columns + unknowns): the columns to project, and Uᵀ.
        batch: Inputs.
        columns: Columns of the function to project, at least the doubles of a vector register.
        unknowns: Columns of the function with the rows of U.
        basis: B, `(joints, rows)`.
        scale: D, `(joints,)`.
    """

    def __init__(self, function: Function) -> None:
        self._compiled = CompiledFunction(function)
        sources = np.full(function.size, len(function.outputs), dtype=np.int64)  # one past the last: zeros
        sources[function.places] = np.arange(len(function.places))
        self._places: _Index = sources.reshape(function.shape) * STRIDE
        self._zero = len(function.outputs) * STRIDE
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], _Tables] = {}
        self._scratch = self._compiled.scratch(1)

    @staticmethod
    def possible(columns: int) -> bool:
        """Whether so many `columns` fill a vector register."""
        return columns >= vector_width()

    def _tables(self, columns: tuple[int, ...], unknowns: tuple[int, ...]) -> _Tables:
        key = (columns, unknowns)
        if key not in self._known:
            own, w = self._places[:, columns], vector_width()
            squares = [own[:, c : c + w] for c in np.minimum(np.arange(0, len(columns), w), len(columns) - w)]
            used = [np.flatnonzero(np.any(square != self._zero, axis=1)) for square in squares]
            self._known[key] = _Tables(
                np.ascontiguousarray(self._places[:, unknowns].T),
                np.cumsum([0, *(len(rows) for rows in used)], dtype=np.int64),
                np.concatenate(used).astype(np.int64),
                np.concatenate([square[rows] for square, rows in zip(squares, used, strict=True)]),
            )
        return self._known[key]

    def __call__(
        self, batch: Batch, columns: tuple[int, ...], unknowns: tuple[int, ...], basis: Array, scale: Array
    ) -> tuple[Array, Array, Array]:
        """Compute the rows, `(samples, rows, columns)`, the ratio of the pivots of L, and |C⁻¹|², `(samples,)`."""
        tables, width = self._tables(columns, unknowns), len(columns)
        m, (n, r), w = len(unknowns), basis.shape, vector_width()
        padded = -(-batch.samples // w) * w
        out = np.empty((padded, r, width))
        quality = np.empty((padded // w, 2, w))
        work = on_cache_lines((m * n + m * m + 2 * m * r + n * r + 2 * r * r) * w)
        basis, scale = np.ascontiguousarray(basis), np.ascontiguousarray(scale)
        shared = self._compiled.shared_arguments(batch, 0, batch.samples, self._scratch)[:-1]
        pointers = (x.ctypes.data for x in (tables.entries, tables.coordinates, tables.sources))
        _driver()[1](
            *shared, tables.jacobian.ctypes.data, m, n, r, basis.ctypes.data, scale.ctypes.data, work.ctypes.data,
            len(tables.entries) - 1, *pointers, width, out.ctypes.data, quality.ctypes.data,
        )  # fmt: skip
        ratio, size = (quality[:, k].reshape(-1)[: batch.samples] for k in range(2))
        return out[: batch.samples], ratio, size
