"""Two loops over blocks of lanes in LLVM: Gram matrices of rows, and rows multiplied by small matrices.

A motion's rows stay in the kernels' layout, `(blocks, rows, STRIDE)`, between the two passes of a gradient:
first WᵀW of every equation, then W·S with the small S = ∂criterion/∂(WᵀW). For 1000 samples of a six-axis arm each
takes a tenth of a millisecond; NumPy's batched products take several times as long.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import Text, Vectors
from steelyard.dynamics.native.compiled_function import CompiledFunction
from steelyard.dynamics.native.drivers import TILE, add_tile
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import aligned, callable_at
from steelyard.ground.arrays import Array

_Index = NDArray[np.int64]
# Samples of a block.
SAMPLES = LANES

_EQUATIONS = "i64 %equations, ptr %firsts, ptr %sizes, ptr %offsets"
_SIGNATURES = {
    "gram": f"ptr noalias %rows, i64 %stride, i64 %blocks, {_EQUATIONS}, ptr noalias %sums",
    "weigh": (
        f"ptr noalias %rows, i64 %stride, i64 %blocks, {_EQUATIONS}, ptr noalias %weights, "
        "ptr noalias %result, i64 %result_stride"
    ),
}


def _gram() -> Text:
    """Compute sums[e][r, c] += Σ over lanes and blocks of row r · row c, by tiles of the lower triangle."""
    t = Vectors()
    with t.loop(0, "%equations") as e:
        first, size, offset = (t.element(f"%{x}", e) for x in ("firsts", "sizes", "offsets"))
        with t.loop(0, "%blocks") as b:
            rows = t.at("%rows", t.add(t.mul(b, "%stride"), t.mul(first, STRIDE)))
            with t.loop(0, size, TILE) as r, t.loop(0, t.add(r, 1), TILE) as c:
                x, y = t.at(rows, t.mul(r, STRIDE)), t.at(rows, t.mul(c, STRIDE))
                add_tile(t, x, y, t.add(offset, t.add(t.mul(r, size), c)), size)
    return t


def _weigh() -> Text:
    """Compute result[e][r] = Σ_c weights[e][r, c] · row c, by tiles of rows and of vectors of lanes."""
    t = Vectors()
    kind, w = t.kind, t.width
    vectors = min(TILE, LANES // w)
    with t.loop(0, "%equations") as e, t.loop(0, "%blocks") as b:
        first, size, offset = (t.element(f"%{x}", e) for x in ("firsts", "sizes", "offsets"))
        rows = t.at("%rows", t.add(t.mul(b, "%stride"), t.mul(first, STRIDE)))
        result = t.at("%result", t.add(t.mul(b, "%result_stride"), t.mul(first, STRIDE)))
        with t.loop(0, size, TILE) as r, t.loop(0, LANES, w * vectors) as s:
            weights = t.at("%weights", t.add(offset, t.mul(r, size)))
            zeros = ["zeroinitializer"] * (TILE * vectors)
            with t.repeat(size, 1, kind, zeros) as (c, totals, grown):  # type: ignore[arg-type]
                row = t.at(rows, t.add(t.mul(c, STRIDE), s))
                values = [t.load(t.at(row, k * w), kind) for k in range(vectors)]
                for i in range(TILE):
                    weight = t.broadcast(t.load(t.at(weights, t.add(t.mul(i, size), c))))
                    grown += [t.fma(weight, values[k], totals[i * vectors + k]) for k in range(vectors)]
            for i in range(TILE):
                target = t.at(result, t.add(t.mul(t.add(r, i), STRIDE), s))
                for k in range(vectors):
                    t.store(grown[i * vectors + k], t.at(target, k * w), kind)
    return t


@cache
def _code() -> Code:
    texts = {"gram": _gram(), "weigh": _weigh()}
    functions = [text.function(name, _SIGNATURES[name]) for name, text in texts.items()]
    declarations = sorted(set().union(*(text.declarations for text in texts.values())))
    return Code("\n\n".join([*declarations, *functions]), optimise=True)


@cache
def _call(name: str) -> Any:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * _SIGNATURES[name].count("%"))(_code().address(name))


def blocks_of(columns: Array) -> Array:
    """Convert `columns` `(samples, k)` to blocks of `SAMPLES` in the kernels' layout, `(blocks, k, …)`, padded with
    zeros.
    """
    samples, k = columns.shape
    blocks = -(-samples // SAMPLES)
    out = np.zeros((blocks, k, STRIDE))
    padded = np.zeros((blocks * SAMPLES, k))
    padded[:samples] = columns
    out[:, :, :SAMPLES] = padded.reshape(blocks, SAMPLES, -1).transpose(0, 2, 1)
    return out


def samples_of(blocks: Array, samples: int) -> Array:
    """Convert blocks back to `(samples, k)`.

    Args:
        blocks: Blocks in the kernels' layout.
        samples: Number of samples.
    """
    flat = blocks[:, :, :SAMPLES].transpose(0, 2, 1).reshape(len(blocks) * SAMPLES, -1)[:samples]
    return np.ascontiguousarray(flat)


def empty_blocks(blocks: int, rows: int) -> Array:
    """Allocate blocks `(blocks, rows, …)`, aligned to cache lines.

    Args:
        blocks: Number of blocks.
        rows: Number of rows.
    """
    return aligned(blocks * rows).reshape(blocks, rows, STRIDE)


class BlockFunction:
    """A function over blocks; its outputs are in `result`.

    Args:
        function: Traced function.
        source: Inputs, `(blocks, rows, …)`.
    """

    def __init__(self, function: Function, source: Array) -> None:
        self._compiled, self._source = CompiledFunction(function), source
        self.result = empty_blocks(len(source), max(1, len(function.outputs)))

    def __call__(self, samples: int) -> Array:
        """Compute the results of the first `samples`, one block per `SAMPLES` of them, padded with zeros."""
        kernel, vectors = callable_at(self._compiled.address), SAMPLES // vector_width()
        source, step = self._source.ctypes.data, self._source.strides[0]
        result, result_step = self.result.ctypes.data, self.result.strides[0]
        blocks = -(-samples // SAMPLES)
        for b in range(blocks):
            kernel(source + b * step, result + b * result_step, vectors)
        out = self.result[:blocks]
        out[-1, :, samples - (blocks - 1) * SAMPLES :] = 0.0
        return out


class BlockEquations:
    """Rows of several equations of `widths` columns, one after the other and padded to whole tiles."""

    def __init__(self, widths: list[int]) -> None:
        self.widths = widths
        self.sizes: _Index = np.array([-(-w // TILE) * TILE for w in widths], dtype=np.int64)
        self.firsts: _Index = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)
        self.offsets: _Index = np.concatenate([[0], np.cumsum(self.sizes**2)[:-1]]).astype(np.int64)
        self.rows = int(self.sizes.sum())
        # Only lower triangles are summed: entry (r, c) of a Gram matrix is at (max, min).
        self._entries = [
            offset + np.maximum.outer(np.arange(w), np.arange(w)) * size + np.minimum.outer(np.arange(w), np.arange(w))
            for offset, size, w in zip(self.offsets, self.sizes, widths, strict=True)
        ]
        self._tables = (len(widths), self.firsts.ctypes.data, self.sizes.ctypes.data, self.offsets.ctypes.data)

    def grams(self, rows: Array) -> list[Array]:
        """Compute RᵀR of each equation; `rows` `(blocks, rows, STRIDE)` must be zero beyond the last sample."""
        sums = np.zeros((int(np.sum(self.sizes**2)), vector_width()))
        _call("gram")(rows.ctypes.data, rows.strides[0] // 8, len(rows), *self._tables, sums.ctypes.data)
        totals = sums @ np.ones(vector_width())
        return [totals[entries] for entries in self._entries]

    def weigh(self, rows: Array, weights: list[Array], result: Array) -> None:
        """Compute `result` ← weights[e] times the rows of equation e.

        Args:
            rows: Rows, `(blocks, ≥ rows, STRIDE)`.
            weights: Matrix of each equation.
            result: Array of the same layout.
        """
        flat = np.zeros(int(np.sum(self.sizes**2)))
        for offset, size, width, S in zip(self.offsets, self.sizes, self.widths, weights, strict=True):
            flat[offset : offset + size * size].reshape(size, size)[:width, :width] = S
        _call("weigh")(
            rows.ctypes.data,
            rows.strides[0] // 8,
            len(rows),
            *self._tables,
            flat.ctypes.data,
            result.ctypes.data,
            result.strides[0] // 8,
        )
