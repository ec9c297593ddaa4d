"""`CompiledFunction`: a traced function as machine code, run over the samples of a batch in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import vector_width
from steelyard.dynamics.native.drivers import TILE, driver
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import Kernel, aligned
from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

_Index = NDArray[np.int64]

# Results larger than this are written past the caches [bytes].
_LARGER_THAN_CACHES = 8_000_000
# Samples per thread below which starting threads costs more time than it saves.
_SAMPLES_PER_THREAD = 4096


def default_threads() -> int:
    """Return the number of cores of this process, or $STEELYARD_THREADS."""
    chosen = os.environ.get("STEELYARD_THREADS")
    if chosen:
        return max(1, int(chosen))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Any, samples: int, threads: int | None) -> list[Any]:
    """Run work(start, stop) in threads over whole blocks that cover all samples.

    Args:
        work: Function of the first and one past the last sample.
        samples: Number of samples.
        threads: Number of threads; None: all processors.
    """
    count = min(threads or default_threads(), max(1, samples // _SAMPLES_PER_THREAD))
    if count == 1:
        return [work(0, samples)]
    size = -(-samples // count // LANES) * LANES
    ranges = [(start, min(start + size, samples)) for start in range(0, samples, size)]
    with ThreadPoolExecutor(len(ranges)) as pool:
        return [job.result() for job in [pool.submit(work, *r) for r in ranges]]


class Batch:
    """Inputs of a function as contiguous (samples, width) arrays; an input without samples axis applies to all of them.

    Args:
        function: Function.
        values: Inputs by name.
        start, stop: First and one past the last sample.
    """

    def __init__(self, function: Function, values: Mapping[str, ArrayLike]) -> None:
        missing = [name for name in function.inputs if name not in values]
        if missing:
            raise ShapeError(f"{function.name} needs the input '{missing[0]}'.")
        arrays = {name: np.asarray(values[name], dtype=np.float64) for name in function.inputs}
        for name, width in function.inputs.items():
            if arrays[name].ndim == 0 or arrays[name].shape[-1] != width:
                raise ShapeError(
                    f"{name} has shape {arrays[name].shape}; {function.name} expects (samples, {width}) or ({width},)."
                )
        try:
            self.leading = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
        except ValueError:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in arrays.items())
            raise ShapeError(f"{function.name}: the inputs must have the same number of samples: {shapes}.") from None
        self.samples = int(np.prod(self.leading, dtype=int))
        self.arrays = [self._flat(a) for a in arrays.values()]
        self.strides = np.array([0 if a.ndim == 1 else a.shape[-1] for a in self.arrays], dtype=np.int64)
        self.widths = np.array([a.shape[-1] for a in self.arrays], dtype=np.int64)
        self.pointers = np.array([a.ctypes.data for a in self.arrays], dtype=np.int64)

    def _flat(self, array: Array) -> Array:
        if array.ndim == 1:
            return np.ascontiguousarray(array)
        full = np.broadcast_to(array, (*self.leading, array.shape[-1]))
        return np.ascontiguousarray(full.reshape(self.samples, array.shape[-1]))

    def columns(self, function: Function, start: int, stop: int) -> dict[str, list[Any]]:
        """Return the inputs as lists of arrays of samples, for interpretation."""
        out: dict[str, list[Any]] = {}
        for name, array in zip(function.inputs, self.arrays, strict=True):
            block = array if array.ndim == 1 else np.ascontiguousarray(array[start:stop].T)
            out[name] = list(block)
        return out


class CompiledFunction:
    """One function as machine code, compiled on first use.

    Args:
        function: Traced function.
        batch: Inputs.
        values: Inputs by name.
        start, stop: First and one past the last sample.
        threads: Number of threads; None: all processors.
        flat: Array for the result, `(samples, size)`, with zeros at its structural zeros.
        out: Array for the result.
        firsts: First output of each equation's rows.
        widths: Number of columns of each equation.
        sizes: Number of columns of each equation, multiples of `TILE`.
        ends: Limits of the pieces: piece k has the samples `ends`[k] … `ends`[k + 1] − 1.
        scratch: Rows of one block, from `scratch()`.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self._kernel = Kernel(function.graph, function.outputs, function.input_rows)

    @property
    def ready(self) -> bool:
        return self._kernel.compiled

    @property
    def address(self) -> int:
        """Address of the code; compiles on first use."""
        return self._kernel.address(vector_width())

    def fill(self, batch: Batch, flat: Array, threads: int | None) -> None:
        """Write the dense result of every sample into `flat`."""
        way, table = self._packing
        if way == "packed" and flat.nbytes > _LARGER_THAN_CACHES and flat.ctypes.data % 64 == 0:
            way = "streamed" if self.function.size % vector_width() == 0 else "buffered"
        run = driver(way)

        def work(start: int, stop: int) -> None:
            scratch = self.scratch(1 + self._buffer)
            shared = self.shared_arguments(batch, start, stop, scratch)
            run(*shared, table.ctypes.data, flat.ctypes.data, self.function.size)

        in_threads(work, batch.samples, threads)

    def row_filler(self, batch: Batch) -> Callable[[int, int, Array], None]:
        """Return a function that writes the dense result of samples start … stop of `batch` into an array.

        It runs in the calling thread, for arrays that fit into a cache, and reuses its scratch.
        """
        way, table = self._packing
        scratch, size, run = self.scratch(1 + self._buffer), self.function.size, driver(way)

        def fill(start: int, stop: int, flat: Array) -> None:
            shared = self.shared_arguments(batch, start, stop, scratch)
            run(*shared, table.ctypes.data, flat.ctypes.data - 8 * size * start, size)

        return fill

    @cached_property
    def _packing(self) -> tuple[str, _Index]:
        # If more than half the entries are nonzero, writing whole vectors is faster than writing single entries.
        f = self.function
        packed = 2 * len(f.places) > f.size >= vector_width()
        return ("packed", self._sources) if packed else ("dense", f.places)

    @property
    def _buffer(self) -> int:
        # Number of rows that `buffered` needs for one vector of samples. They follow the rows of outputs and of zeros.
        return -(-self.function.size * vector_width() // STRIDE)

    @cached_property
    def _sources(self) -> _Index:
        """Return the output row of every entry of the dense result; one past the last is a row of zeros."""
        sources = np.full(self.function.size, len(self.function.outputs), dtype=np.int64)
        sources[self.function.places] = np.arange(len(self.function.places))
        return sources

    def lanes(self, values: Mapping[str, ArrayLike], out: Array | None = None, threads: int | None = None) -> Array:
        """Compute the structurally nonzero entries of all samples of `values` in the kernels' layout.

        The layout is `(blocks, entries, STRIDE)`: sample k, entry e is at [k // LANES, e, k % LANES]. An `out` with
        fewer blocks is used as a ring buffer by consumers of blocks. It must start on a cache line (`aligned`).
        """
        batch = Batch(self.function, values)
        count, blocks = len(self.function.outputs), -(-batch.samples // LANES)
        if out is None:
            out = aligned(blocks * count).reshape(blocks, count, STRIDE)
        if out.ndim != 3 or out.shape[1:] != (count, STRIDE) or not out.flags.c_contiguous or out.ctypes.data % 64:
            raise ShapeError(f"out has shape {out.shape}; expected an aligned, contiguous (blocks, {count}, {STRIDE}).")
        run, ring = driver("lanes"), len(out)

        def work(start: int, stop: int) -> None:
            scratch = self.scratch()
            run(*self.shared_arguments(batch, start, stop, scratch), out.ctypes.data, ring)

        in_threads(work, batch.samples, threads if ring >= blocks else 1)
        return out

    def triangles(self, batch: Batch, start: int, stop: int, firsts: _Index, widths: _Index) -> list[Array]:
        """Compute triangles R of some samples, one per equation, by reflecting block after block."""
        offsets = _offsets(widths)
        found = np.zeros(int(np.sum(widths**2)))
        self._per_equation("qr", batch, start, stop, (firsts, widths, offsets), found)
        return [found[o : o + w * w].reshape(w, w) for o, w in zip(offsets, widths, strict=True)]

    def grams(self, batch: Batch, start: int, stop: int, firsts: _Index, sizes: _Index) -> list[Array]:
        """Compute Gram matrices of some samples, one per equation."""
        if np.any(sizes % TILE):
            raise ShapeError(
                f"Gram matrices are made of tiles: sizes must be multiples of {TILE}, not {sizes.tolist()}."
            )
        offsets = _offsets(sizes)
        sums = np.zeros((int(np.sum(sizes**2)), vector_width()))
        self._per_equation("gram", batch, start, stop, (firsts, sizes, offsets), sums)
        totals = sums.sum(axis=1)
        lower = [np.tril(totals[o : o + k * k].reshape(k, k)) for o, k in zip(offsets, sizes, strict=True)]
        return [gram + np.tril(gram, -1).T for gram in lower]

    def gram_tiles(
        self, batch: Batch, ends: Sequence[int], firsts: _Index, sizes: _Index, threads: int | None = None
    ) -> Array:
        """Compute lower triangles of Gram matrices in the kernels' layout, for many pieces of a batch at once.

        Row k of the result contains the matrices of all equations of piece k in sequence, `sizes`[e]² entries each;
        entries above the diagonal's tiles are not set.
        """
        offsets, ones = _offsets(sizes), np.ones(vector_width())
        count = len(ends) - 1
        out = np.empty((count, int(np.sum(sizes**2))))

        def work(first: int, last: int) -> None:
            sums = np.empty((out.shape[1], vector_width()))
            for k in range(first, last):
                sums.fill(0.0)
                self._per_equation("gram", batch, ends[k], ends[k + 1], (firsts, sizes, offsets), sums)
                np.matmul(sums, ones, out=out[k])

        workers = max(1, min(threads or default_threads(), count))
        cuts = np.linspace(0, count, workers + 1).astype(int).tolist()
        if workers == 1:
            work(0, count)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(work, cuts[:-1], cuts[1:]))
        return out

    def _per_equation(
        self, way: str, batch: Batch, start: int, stop: int, tables: tuple[_Index, ...], result: Array
    ) -> None:
        scratch = self.scratch()
        shared = self.shared_arguments(batch, start, stop, scratch)
        driver(way)(*shared, len(tables[0]), *(table.ctypes.data for table in tables), result.ctypes.data)

    def scratch(self, more: int = 0) -> tuple[Array, Array]:
        """Allocate rows for one block of inputs and of outputs, with `more` rows of zeros behind them."""
        return aligned(sum(self.function.inputs.values())), aligned(len(self.function.outputs) + more)

    def shared_arguments(self, batch: Batch, start: int, stop: int, scratch: tuple[Array, Array]) -> tuple[int, ...]:
        """Return the first arguments of every driver: addresses, so the caller must keep `batch` and `scratch`
        alive.
        """
        return (
            self.address,
            batch.pointers.ctypes.data,
            batch.strides.ctypes.data,
            batch.widths.ctypes.data,
            len(batch.arrays),
            start,
            stop,
            scratch[0].ctypes.data,
            scratch[1].ctypes.data,
            len(self.function.outputs),
        )


def _offsets(sizes: _Index) -> _Index:
    """Return the start of each of several square matrices that are stored in sequence."""
    return np.concatenate([[0], np.cumsum(sizes**2)[:-1]]).astype(np.int64)
