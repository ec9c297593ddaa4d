"""`Kernel`: a traced function as machine code over rows of lanes; `Single`: the same for one state at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import CFUNCTYPE, c_int64
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import Graph
from steelyard.dynamics.native._code import Code
from steelyard.dynamics.native.emit import STRIDE, emit
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Scalar


def on_cache_lines(count: int) -> Array:
    """Allocate `count` zeros, aligned to a cache line: vectors that straddle two lines cost twice the time."""
    raw = np.zeros(count + 8)
    offset = (-raw.ctypes.data // 8) % 8
    return raw[offset : offset + count]


def aligned(rows: int) -> Array:
    """Allocate scratch for a kernel, `rows` of lanes."""
    return on_cache_lines(rows * STRIDE)


@cache
def callable_at(address: int) -> Any:
    """Return the compiled kernel `(inputs, outputs, vectors)` at `address` as a Python function of addresses."""
    return CFUNCTYPE(None, c_int64, c_int64, c_int64)(address)


class Kernel:
    """A traced function, compiled for a number of lanes on demand.

    Args:
        graph: Traced graph.
        outputs: Results of the graph, one row each.
        rows: First row of each input.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Scalar], rows: Mapping[str, int]) -> None:
        self._graph, self.outputs, self.rows = graph, list(outputs), dict(rows)
        self._codes: dict[int, Code] = {}
        self._lock = Lock()

    @property
    def compiled(self) -> bool:
        return bool(self._codes)

    def address(self, width: int) -> int:
        """Return the address of the code for `width` lanes at once; it is valid as long as this object exists."""
        with self._lock:  # two threads must not both compile: code in use would be deleted
            if width not in self._codes:
                self._codes[width] = Code(emit(self._graph, self.outputs, self.rows, "kernel", width))
            return self._codes[width].address("kernel")


def kernel_of(function: Function, rows: Mapping[str, int]) -> Kernel:
    """Return the kernel of a traced function.

    Args:
        function: Function with a vector as result.
        rows: First row of each input.
    """
    outputs: list[Scalar] = [0.0] * function.size
    for place, value in zip(function.places, function.outputs, strict=True):
        outputs[int(place)] = value
    return Kernel(function.graph, outputs, rows)


class Single:
    """A kernel for one state at a time: call it with its first inputs; the others are constant.

    It holds scratch, so use one per thread.

    Args:
        kernel: Kernel.
        widths: Length of each input.
        constants: Constant inputs by name.
        inputs: Other inputs, in the order of `widths`.
    """

    def __init__(self, kernel: Kernel, widths: Mapping[str, int], **constants: Array) -> None:
        rows = kernel.rows
        scratch = aligned(max(rows[x] + widths[x] for x in rows)), aligned(len(kernel.outputs))
        column = scratch[0].reshape(-1, STRIDE)[:, 0]
        views = {x: column[rows[x] : rows[x] + widths[x]] for x in rows}
        for x, value in constants.items():
            views[x][:] = value
        self._views = [view for x, view in views.items() if x not in constants]
        self._result = scratch[1].reshape(-1, STRIDE)[:, 0]
        self._places = (scratch[0].ctypes.data, scratch[1].ctypes.data)
        self._call = callable_at(kernel.address(1))
        self._alive = (kernel, scratch)

    def __call__(self, *inputs: Array | NDArray[np.int64]) -> Array:
        for view, value in zip(self._views, inputs, strict=True):
            view[:] = value
        self._call(*self._places, 1)
        return self._result.copy()
