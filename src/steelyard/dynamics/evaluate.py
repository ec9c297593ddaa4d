"""Run a traced function on arrays of samples: at once with NumPy, or by machine code made for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import evaluate_graph
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.dynamics.native.run import Batch, Compiled
from steelyard.ground.arrays import Array

# Interpreting a UR10's torque takes 2.5 ms a block of 512 samples; its machine code 10–40 ms from the disk, and some
# 100 ms when it is made. Below this many blocks it is only in the way. Counted, not timed, so that runs repeat exactly.
_BLOCKS_BEFORE_COMPILING = 8
_INTERPRETED_BLOCK = 512


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Within, machine code is made before the first sample.

    A process else interprets its first samples, which rounds differently, and what comes out would depend, in the last
    digits, on what the process did before.
    """
    global _BLOCKS_BEFORE_COMPILING
    kept, _BLOCKS_BEFORE_COMPILING = _BLOCKS_BEFORE_COMPILING, -1
    try:
        yield
    finally:
        _BLOCKS_BEFORE_COMPILING = kept


class Evaluator:
    """One `function`, ready to run. Small work is interpreted; once it adds up, the function is compiled."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.machine = Compiled(function)
        self._interpreted = 0

    @property
    def compiled(self) -> bool:
        return self.machine.ready

    @property
    def kernel(self) -> int:
        """The address of the compiled kernel; compiles on first use."""
        return self.machine.address

    def compile(self) -> None:
        """Make machine code now, where it is known that much is to come."""
        _ = self.kernel

    def _worth_compiling(self, samples: int) -> bool:
        self._interpreted += -(-samples // _INTERPRETED_BLOCK)
        return self._interpreted > _BLOCKS_BEFORE_COMPILING

    def __call__(self, values: Mapping[str, ArrayLike], out: Array | None = None, threads: int | None = None) -> Array:
        """The dense result, `(samples…, *shape)`.

        `values` holds each input by name, `(samples…, width)` or `(width,)` for all samples. `out` (in C order, and
        zero where the result always is) is filled if given. `threads`: None takes as many as the machine has.
        """
        batch = Batch(self.function, values)
        f = self.function
        if out is None:
            out = on_cache_lines(batch.samples * f.size)
        flat = out.reshape(batch.samples, f.size)
        if self.compiled or self._worth_compiling(batch.samples):
            self.machine.fill(batch, flat, threads)
        else:
            self._interpret(batch, flat)
        return out.reshape(*batch.leading, *f.shape)

    def _interpret(self, batch: Batch, flat: Array) -> None:
        f = self.function
        for start in range(0, batch.samples, _INTERPRETED_BLOCK):
            stop = min(start + _INTERPRETED_BLOCK, batch.samples)
            with np.errstate(all="ignore"):  # as machine code: the caller sees inf and nan in the result
                results = evaluate_graph(f.graph, f.outputs, batch.columns(f, start, stop))
            for place, value in zip(f.places, results, strict=True):
                flat[start:stop, place] = value
