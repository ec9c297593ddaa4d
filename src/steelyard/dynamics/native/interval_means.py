"""`IntervalMeans`: both sides of the balance over one sampling interval, in one call of machine code.

For every entry, with stored (momentum or energy) and lost (remainder or dissipation) at the new and the previous
sample,

    mean = (stored − previous stored)·factor + new share·lost + old share·previous lost.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code
from steelyard.dynamics.native._text import Text
from steelyard.dynamics.native.compiled_function import CompiledFunction
from steelyard.dynamics.native.emit import STRIDE
from steelyard.ground.arrays import Array

_ARGUMENTS = (
    "kernel", "rows_in", "rows_out", "sample", "inputs", "stored", "lost", "mean", "entries", "factor", "new", "old",
)  # fmt: skip
_FLOATS = {name: _ARGUMENTS.index(name) for name in ("factor", "new", "old")}


class IntervalMeans:
    """The means of a function whose outputs are the stored entries, followed by as many lost ones.

    Args:
        function: Traced entries.
        sample: Buffer with the inputs of the function; its content at a call is the new sample.
    """

    def __init__(self, function: Function, sample: Array) -> None:
        count = len(function.outputs) // 2
        self.stored, self.lost, self.mean = np.zeros(count), np.zeros(count), np.zeros(count)
        self._sample = sample
        self._machine = CompiledFunction(function)
        self._scratch = self._machine.scratch()
        inside, outside = (x.ctypes.data for x in self._scratch)
        state = (self.stored.ctypes.data, self.lost.ctypes.data, self.mean.ctypes.data)
        first = (self._machine.address, inside, outside, sample.ctypes.data, sum(function.inputs.values()))
        self._block = np.array([*first, *state, count, 0, 0, 0], dtype=np.int64)
        self._floats = self._block.view(np.float64)
        self._address = self._block.ctypes.data
        self._call = _step().call

    def set_shares(self, new: float, old: float) -> None:
        """Set the weights of the new and the old sample in the mean of the lost entries.

        Args:
            new: Weight of the new sample.
            old: Weight of the old sample.
        """
        self._floats[_FLOATS["new"]], self._floats[_FLOATS["old"]] = new, old

    def __call__(self, factor: float) -> Array:
        """Compute the means over the interval that ends with `sample`; the next call overwrites them.

        `factor` multiplies the growth of the stored entries.
        """
        self._floats[_FLOATS["factor"]] = factor
        self._call(self._address)
        return self.mean


class _Step:
    """The loops around the kernel, which are independent of the robot."""

    def __init__(self) -> None:
        t = Text()
        kinds = {"inputs": "i64", "entries": "i64", **dict.fromkeys(_FLOATS, "double")}
        v = {name: t.load(t.at("%arguments", k), kinds.get(name, "ptr")) for k, name in enumerate(_ARGUMENTS)}
        with t.loop(0, v["inputs"]) as i:
            t.store(t.load(t.at(v["sample"], i)), t.at(v["rows_in"], t.mul(i, STRIDE)))
        t.do(f"call void {v['kernel']}(ptr {v['rows_in']}, ptr {v['rows_out']}, i64 1)")
        behind = t.at(v["rows_out"], t.mul(v["entries"], STRIDE))
        with t.loop(0, v["entries"]) as i:
            stored, lost = (t.load(t.at(rows, t.mul(i, STRIDE))) for rows in (v["rows_out"], behind))
            places = [t.at(v[name], i) for name in ("stored", "lost", "mean")]
            change = t.let(f"fsub double {stored}, {t.load(places[0])}")
            total = t.let(f"fmul double {change}, {v['factor']}")
            for share, value in (("new", lost), ("old", t.load(places[1]))):
                part = t.let(f"fmul double {v[share]}, {value}")
                total = t.let(f"fadd double {total}, {part}")
            for value, place in zip((stored, lost, total), places, strict=True):
                t.store(value, place)
        self._code = Code(t.function("balance", "ptr %arguments"), optimise=True)
        self.call: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._code.address("balance"))


@cache
def _step() -> _Step:
    return _Step()
