"""`Scan`: a traced function with a state from sample to sample, run over samples in one call of machine code.

    state, results ← f(sample, state)

The loop is the same for one sample as for many, so that results do not depend on batching, not even in the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code
from steelyard.dynamics.native._text import Text
from steelyard.dynamics.native.emit import STRIDE
from steelyard.dynamics.native.kernel import Kernel, aligned
from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

_ARGUMENTS = (
    "kernel", "rows_in", "rows_out", "samples", "width", "state", "states", "dense", "size", "places", "outputs",
    "count",
)  # fmt: skip
_NUMBERS = ("width", "states", "size", "outputs", "count")


class Scan:
    """A function with a state, applied to one sample after the other.

    An object owns working memory, so every thread needs its own.

    Args:
        function: Function of the inputs `sample` and, with a state, `state`; its result is the new state, followed by
            the results of the sample.
    """

    def __init__(self, function: Function) -> None:
        if list(function.inputs) not in (["sample"], ["sample", "state"]):
            raise ShapeError(
                f"{function.name} must have the inputs sample and state, not {', '.join(function.inputs)}."
            )
        self.width, states = function.inputs["sample"], function.inputs.get("state", 0)
        self.state = np.zeros(states)
        self._size = function.size
        self._kernel = Kernel(function.graph, function.outputs, function.input_rows)
        self._rows = aligned(sum(function.inputs.values())), aligned(len(function.outputs))
        self._places = np.ascontiguousarray(function.places)
        inside, outside = (x.ctypes.data for x in self._rows)
        self._block = np.array(
            [self._kernel.address(1), inside, outside, 0, self.width, self.state.ctypes.data, states, 0, self._size,
             self._places.ctypes.data, len(function.outputs), 0],
            dtype=np.int64,
        )  # fmt: skip
        self._address = self._block.ctypes.data
        self._call = _loop().call
        # For single samples, without creating or checking an array.
        self.sample, self._dense = np.zeros(self.width), np.zeros(self._size)
        self._alone = self._block.copy()
        self._alone[3], self._alone[7], self._alone[11] = self.sample.ctypes.data, self._dense.ctypes.data, 1
        self._alone_address, self._told = self._alone.ctypes.data, self._dense[states:]

    def __call__(self, samples: Array) -> Array:
        """Compute the results of `samples`, (samples, width), as (samples, results), and update the state."""
        rows = np.ascontiguousarray(samples, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ShapeError(f"samples have shape {rows.shape}; expected (samples, {self.width}).")
        dense = np.zeros((len(rows), self._size))
        self._block[3], self._block[7], self._block[11] = rows.ctypes.data, dense.ctypes.data, len(rows)
        self._call(self._address)
        return dense[:, len(self.state) :]

    def step(self) -> Array:
        """Compute the results of the buffer `sample`, (1, results), and update the state."""
        self._call(self._alone_address)
        return self._told[None].copy()


def flat_entries(parts: Sequence[Sequence[Any]]) -> dict[tuple[int], Any]:
    """Number the scalars of several `parts` in sequence, as the entries of a traced function."""
    return {(k,): x for k, x in enumerate(x for part in parts for x in part)}


class _Loop:
    """The loop around the kernel, which is independent of the function."""

    def __init__(self) -> None:
        t = Text()
        v = {
            name: t.load(t.at("%arguments", k), "i64" if name in _NUMBERS else "ptr")
            for k, name in enumerate(_ARGUMENTS)
        }
        with t.loop(0, v["count"]) as k:
            sample, row = t.at(v["samples"], t.mul(k, v["width"])), t.at(v["dense"], t.mul(k, v["size"]))
            with t.loop(0, v["width"]) as i:
                t.store(t.load(t.at(sample, i)), t.at(v["rows_in"], t.mul(i, STRIDE)))
            behind = t.at(v["rows_in"], t.mul(v["width"], STRIDE))
            with t.loop(0, v["states"]) as i:
                t.store(t.load(t.at(v["state"], i)), t.at(behind, t.mul(i, STRIDE)))
            t.do(f"call void {v['kernel']}(ptr {v['rows_in']}, ptr {v['rows_out']}, i64 1)")
            with t.loop(0, v["outputs"]) as i:
                value = t.load(t.at(v["rows_out"], t.mul(i, STRIDE)))
                t.store(value, t.at(row, t.element(v["places"], i)))
            with t.loop(0, v["states"]) as i:
                t.store(t.load(t.at(row, i)), t.at(v["state"], i))
        self._code = Code(t.function("scan", "ptr %arguments"), optimise=True)
        self.call: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._code.address("scan"))


@cache
def _loop() -> _Loop:
    return _Loop()
