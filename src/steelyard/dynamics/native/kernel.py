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
    """As many zeros as `count`, starting on a cache line: vectors that straddle two lines cost double."""
    raw = np.zeros(count + 8)
    offset = (-raw.ctypes.data // 8) % 8
    return raw[offset : offset + count]


def aligned(rows: int) -> Array:
    """Scratch for a kernel, so many `rows` of lanes."""
    return on_cache_lines(rows * STRIDE)


@cache
def callable_at(address: int) -> Any:
    """The compiled kernel `(inputs, outputs, vectors)` at `address` as something Python can call, by addresses."""
    return CFUNCTYPE(None, c_int64, c_int64, c_int64)(address)


class Kernel:
    """A traced function, compiled for a number of lanes on demand.

    Args:
        graph: what was traced.
        outputs: its results, one row each.
        rows: the row at which each input starts.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Scalar], rows: Mapping[str, int]) -> None:
        self._graph, self.outputs, self.rows = graph, list(outputs), dict(rows)
        self._codes: dict[int, Code] = {}
        self._lock = Lock()

    @property
    def compiled(self) -> bool:
        return bool(self._codes)

    def address(self, width: int) -> int:
        """Where the code for `width` lanes at once starts; it lives as long as this object."""
        with self._lock:  # two threads must not both compile: the first one's code would be thrown away in use
            if width not in self._codes:
                self._codes[width] = Code(emit(self._graph, self.outputs, self.rows, "kernel", width))
            return self._codes[width].address("kernel")


def kernel_of(function: Function, rows: Mapping[str, int]) -> Kernel:
    """The kernel of a traced `function`, a vector; `rows` has the row at which each input starts."""
    outputs: list[Scalar] = [0.0] * function.size
    for place, value in zip(function.places, function.outputs, strict=True):
        outputs[int(place)] = value
    return Kernel(function.graph, outputs, rows)


class Single:
    """A `kernel` for one state at a time: call it with its first `inputs`; the others are set once, by name.

    `widths` has the length of each input, `constants` the values of those that are set once. Holds scratch, so one per
    thread.
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
