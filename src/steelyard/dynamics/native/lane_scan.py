"""`LaneScan`: steps a traced function with a state over many runs at once; each run is a lane of the vector unit.

    state, results ← f(sample, state, lag, fixed)

`lag` has the results of two neighbouring earlier steps, so a delay in a loop need not be a whole number of steps.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from steelyard.dynamics.function import Function
from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import Vectors
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import aligned, kernel_of
from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

_ARGUMENTS = (
    "kernel", "rows_in", "rows_out", "samples", "width", "states", "lagged", "lag", "results", "outputs", "count",
    "lanes",
)  # fmt: skip
_POINTERS = ("kernel", "rows_in", "rows_out", "samples", "results")
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
        parameters = ", ".join(f"{'ptr' if a in _POINTERS else 'i64'} %{a}" for a in _ARGUMENTS)
        self._code = Code("\n".join([*sorted(t.declarations), t.function("lane_scan", parameters)]), optimise=True)
        self.call: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(_ARGUMENTS))(self._code.address("lane_scan"))


@cache
def _driver() -> _Driver:
    return _Driver()
