"""`GpuGrams`: Gram matrices of a traced function's outputs over the samples of many logs, on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.dynamics.cuda.gram_text import TILE_EDGE, gram_plan, gram_text, unpack_grams
from steelyard.dynamics.function import Function
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra

# Minimum number of samples of a log per block, so that its start and end take a negligible share of time.
_MIN_SAMPLES = 4096
# Blocks per multiprocessor: they end at different times, and the next one fills the gap.
_BLOCKS_EACH = 4


class GpuGrams:
    """Computes Gram matrices of one function; call it with logs.

    Args:
        function: Computes the rows of a sample, one group of outputs after the other.
        firsts: First output of each group.
        widths: Number of columns of each group.
    """

    def __init__(self, function: Function, firsts: Sequence[int], widths: Sequence[int]) -> None:
        self._cupy = import_extra("cupy", "gpu", "Work on a GPU")
        if not has_gpu():
            raise SteelyardError("CuPy does not find an NVIDIA GPU; run without the GPU option.")
        self.function, self.widths, self.plan = function, list(widths), gram_plan(widths)
        module = self._cupy.RawModule(code=gram_text(function, firsts, self.plan), options=("-std=c++17",))
        self._grams, self._total = module.get_function("grams"), module.get_function("total")
        self._grams.max_dynamic_shared_size_bytes = self.plan.shared
        self._units = int(self._cupy.cuda.Device().attributes["MultiProcessorCount"])

    def __call__(self, logs: Sequence[Mapping[str, Any]]) -> list[list[Array]]:
        """Compute XᵀX of every group, for every log.

        Args:
            logs: Inputs of the function by name, `(samples, width)`, in the memory of the processor or the GPU.
        """
        sums = self.on_device(self.join(logs), [len(next(iter(log.values()))) for log in logs]).get()
        return [unpack_grams(self.plan, self.widths, one) for one in sums]

    def join(self, logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Concatenate the inputs of all `logs` on the GPU."""
        cupy = self._cupy
        moved = {name: [cupy.asarray(log[name], dtype=cupy.float64) for log in logs] for name in self.function.inputs}
        return {
            name: cupy.ascontiguousarray(parts[0]) if len(parts) == 1 else cupy.concatenate(parts)
            for name, parts in moved.items()
        }

    def on_device(self, inputs: Mapping[str, Any], counts: Sequence[int]) -> Any:
        """Compute the sums of logs, as tiles on the GPU.

        Args:
            inputs: Concatenated inputs of all logs, on the GPU.
            counts: Number of samples of each log.
        """
        cupy, plan = self._cupy, self.plan
        begins, ends, starts = self._parts(counts)
        size = plan.warps * plan.max_tiles * TILE_EDGE * TILE_EDGE
        parts = cupy.empty((len(begins), size))
        given = [inputs[name] for name in self.function.inputs]
        where = [cupy.asarray(x) for x in (begins, ends, starts)]
        self._grams((len(begins),), (plan.threads,), (*given, *where[:2], parts), shared_mem=plan.shared)
        sums = cupy.empty((len(counts), size))
        self._total((len(counts), -(-size // 256)), (256,), (parts, where[2], sums, np.int64(size)))
        return sums.reshape(len(counts), plan.warps, plan.max_tiles, TILE_EDGE * TILE_EDGE)

    def _parts(self, counts: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return begin and end of each block's samples, and the first block of each log; no block spans two logs."""
        total = sum(counts)
        each = max(_MIN_SAMPLES, -(-total // (_BLOCKS_EACH * self._units)))
        each = -(-each // self.plan.threads) * self.plan.threads
        begins: list[int] = []
        starts, at = [0], 0
        ends: list[int] = []
        for count in counts:
            own = list(range(at, at + count, each))
            begins += own
            ends += [min(b + each, at + count) for b in own]
            starts.append(len(begins))
            at += count
        return tuple(np.array(x, dtype=np.int64) for x in (begins, ends, starts))  # type: ignore[return-value]


def has_gpu() -> bool:
    """Return whether CuPy finds a GPU."""
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # without CuPy, driver or card, many kinds of errors are possible
        return False
