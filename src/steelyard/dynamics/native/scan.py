"""`Scan`: a traced function with a state from sample to sample, run over samples in one call of machine code.

    state, results ← f(sample, state)

The loop is the same for one sample as for many, so that results do not depend on batching, not even in the last bit.

`LaneScan` steps many runs at once; each run is a lane of the vector unit:

    state, results ← f(sample, state, lag, fixed)

`lag` has the results of two neighbouring earlier steps, so a delay in a loop need not be a whole number of steps.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import Text, Vectors
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import Kernel, aligned, kernel_of
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


_LANE_ARGUMENTS = (
    "kernel", "rows_in", "rows_out", "samples", "width", "states", "lagged", "lag", "results", "outputs", "count",
    "lanes",
)  # fmt: skip
_LANE_POINTERS = ("kernel", "rows_in", "rows_out", "samples", "results")
INPUTS = ("sample", "state", "lag", "fixed")


class LaneScan:
    """A function with a state over many runs. It holds scratch, so use one per thread.

    Args:
        function: Function of the inputs `sample`, `state`, `lag` and `fixed`, a vector: new state, then results.
            `lag` is twice as wide as the number of results that it repeats: first those of the nearer step.
    """

    def __init__(self, function: Function) -> None:
        if tuple(function.inputs) != INPUTS:
            raise ShapeError(f"{function.name} must have the inputs {', '.join(INPUTS)}.")
        self._widths = dict(function.inputs)
        self._rows = function.input_rows
        self._size = function.size - self._widths["state"]
        self._kernel = kernel_of(function, self._rows)
        self._in, self._out = aligned(sum(self._widths.values())), aligned(function.size)

    def __call__(self, samples: Array, state: Array, fixed: Array, before: Array, lag: int = 0) -> Array:
        """Compute the results before and after all steps, `(1 + steps, results, runs)`.

        Args:
            samples: `(steps, width, runs)`.
            state: First state, `(states, runs)`.
            fixed: Inputs that stay the same, `(fixed, runs)`.
            before: Results before the first step, `(results, runs)`; they are repeated into the past.
            lag: Steps between a result and its use.
        """
        runs = samples.shape[2]
        parts = [
            self._block(samples[:, :, a : a + LANES], state[:, a : a + LANES], fixed[:, a : a + LANES],
                        before[:, a : a + LANES], lag)
            for a in range(0, runs, LANES)
        ]  # fmt: skip
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)

    def _block(self, samples: Array, state: Array, fixed: Array, before: Array, lag: int) -> Array:
        steps, width, runs = samples.shape
        lanes = -(-runs // vector_width()) * vector_width()
        past = lag + 2
        padded = np.zeros((steps, width, lanes))
        padded[:, :, :runs] = samples
        padded[:, :, runs:] = samples[:, :, -1:]
        results = np.empty((past + steps, self._size, lanes))
        results[:past] = _filled(before, lanes)
        rows = self._in.reshape(-1, STRIDE)
        for name, values in (("state", state), ("fixed", fixed)):
            first = self._rows[name]
            rows[first : first + self._widths[name], :lanes] = _filled(values, lanes)
        _driver().call(
            self._kernel.address(vector_width()), self._in.ctypes.data, self._out.ctypes.data, padded.ctypes.data,
            width, self._widths["state"], self._widths["lag"] // 2, lag, results.ctypes.data, self._size, steps, lanes,
        )  # fmt: skip
        return results[past - 1 :, :, :runs]


def _filled(values: Array, lanes: int) -> Array:
    """Repeat the last run up to whole vectors: zeros might divide by zero."""
    return np.concatenate([values, np.repeat(values[:, -1:], lanes - values.shape[1], axis=1)], axis=1)


class _Driver:
    """The loop around the kernel, which is independent of the function."""

    def __init__(self) -> None:
        t = Vectors()

        def move(source: str, source_step: str | int, target: str, target_step: str | int, count: str) -> None:
            with t.loop(0, count) as i:
                a, b = t.at(source, t.mul(i, source_step)), t.at(target, t.mul(i, target_step))
                with t.loop(0, "%lanes", t.width) as s:
                    t.store(t.load(t.at(a, s), t.kind), t.at(b, s), t.kind)

        row = t.mul("%outputs", "%lanes")
        vectors = t.let(f"sdiv i64 %lanes, {t.width}")
        state_in = t.at("%rows_in", t.mul("%width", STRIDE))
        near = t.at(state_in, t.mul("%states", STRIDE))
        far = t.at(near, t.mul("%lagged", STRIDE))
        with t.loop(0, "%count") as k:
            move(t.at("%samples", t.mul(k, t.mul("%width", "%lanes"))), "%lanes", "%rows_in", STRIDE, "%width")
            # Row k + lag + 1 is the result before step k; lag steps earlier is row k + 1.
            move(t.at("%results", t.mul(t.add(k, 1), row)), "%lanes", near, STRIDE, "%lagged")
            move(t.at("%results", t.mul(k, row)), "%lanes", far, STRIDE, "%lagged")
            t.do(f"call void %kernel(ptr %rows_in, ptr %rows_out, i64 {vectors})")
            move("%rows_out", STRIDE, state_in, STRIDE, "%states")
            place = t.at("%results", t.mul(t.add(t.add(k, "%lag"), 2), row))
            move(t.at("%rows_out", t.mul("%states", STRIDE)), STRIDE, place, "%lanes", "%outputs")
        parameters = ", ".join(f"{'ptr' if a in _LANE_POINTERS else 'i64'} %{a}" for a in _LANE_ARGUMENTS)
        self._code = Code("\n".join([*sorted(t.declarations), t.function("lane_scan", parameters)]), optimise=True)
        self.call: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(_LANE_ARGUMENTS))(
            self._code.address("lane_scan")
        )


@cache
def _driver() -> _Driver:
    return _Driver()
