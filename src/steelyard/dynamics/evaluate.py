"""Run a traced function on arrays of samples: interpreted by NumPy, or as machine code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import evaluate_graph
from steelyard.dynamics.native.compiled_function import Batch, CompiledFunction
from steelyard.dynamics.native.kernel import on_cache_lines
from steelyard.ground.arrays import Array

# Interpreting a UR10's torque takes 2.5 ms per block of 512 samples. Its machine code takes 10–40 ms to load and about
# 100 ms to compile. Below this number of blocks interpretation is faster. Counting instead of timing keeps runs exact.
_BLOCKS_BEFORE_COMPILING = 8
_INTERPRETED_BLOCK = 512


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Compile machine code before the first sample, within this context.

    Otherwise a process interprets its first samples, which rounds differently, and the last digits of results would
    depend on earlier work of the process.
    """
    global _BLOCKS_BEFORE_COMPILING
    kept, _BLOCKS_BEFORE_COMPILING = _BLOCKS_BEFORE_COMPILING, -1
    try:
        yield
    finally:
        _BLOCKS_BEFORE_COMPILING = kept


class Evaluator:
    """Runs one `function`. Small work is interpreted; once it adds up, the function is compiled."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.machine = CompiledFunction(function)
        self._interpreted = 0

    @property
    def compiled(self) -> bool:
        return self.machine.ready

    @property
    def kernel(self) -> int:
        """Address of the compiled kernel; compiles on first use."""
        return self.machine.address

    def compile(self) -> None:
        """Compile now, before work that is known to be large."""
        _ = self.kernel

    def _worth_compiling(self, samples: int) -> bool:
        self._interpreted += -(-samples // _INTERPRETED_BLOCK)
        return self._interpreted > _BLOCKS_BEFORE_COMPILING

    def __call__(self, values: Mapping[str, ArrayLike], out: Array | None = None, threads: int | None = None) -> Array:
        """Compute the dense result, `(samples…, *shape)`.

        Args:
            values: Each input by name, `(samples…, width)`, or `(width,)` for all samples.
            out: Array to fill, in C order, with zeros at the structural zeros of the result.
            threads: Number of threads; default: all processors.
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
            with np.errstate(all="ignore"):  # like machine code: inf and nan appear in the result
                results = evaluate_graph(f.graph, f.outputs, batch.columns(f, start, stop))
            for place, value in zip(f.places, results, strict=True):
                flat[start:stop, place] = value
