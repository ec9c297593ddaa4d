"""`GpuLanes`: a traced function along many motions at once on a GPU, with inputs and outputs stored in lanes.

Lanes are rows of samples, `(motions, width, samples)` for each group of inputs or outputs, one group after the other:
adjacent threads access adjacent memory, and a group is a stack of matrices, ready for products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from steelyard.dynamics.c_text import device_helpers, row_lines
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.dynamics.function import Function
from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra

_THREADS = 128


class LaneGroups:
    """Layout of numbers in groups of `widths`, one after the other."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)
        self.firsts = (0, *accumulate(self.widths))
        self.total = self.firsts[-1]

    def place(self, k: int) -> tuple[int, int]:
        """Return the group of number `k`, and its position there."""
        group = next(g for g in range(len(self.widths)) if k < self.firsts[g + 1])
        return group, k - self.firsts[group]

    def views(self, buffer: Any, motions: int, samples: int) -> list[Any]:
        """Return one array per group of a buffer.

        Args:
            buffer: Memory of all groups.
            motions: Number of motions.
            samples: Number of samples.
        """
        ends = [first * motions * samples for first in self.firsts]
        return [
            buffer[a:b].reshape(motions, width, samples)
            for a, b, width in zip(ends, ends[1:], self.widths, strict=False)
        ]


def lanes_text(function: Function, inputs: Mapping[str, LaneGroups], outputs: LaneGroups) -> str:
    """Write CUDA for a function with inputs and outputs in lanes.

    Args:
        function: Traced function.
        inputs: Layout of each input.
        outputs: Layout of the result.
    """
    arrays = [f"const double *__restrict__ {name}" for name in function.inputs]
    places = {**inputs, "out": outputs}
    begins = [
        f"    {'' if name == 'out' else 'const '}double *{name}_{g} = "
        f"{name} + ({groups.firsts[g]} * motions + m * {groups.widths[g]}) * samples + i;"
        for name, groups in places.items()
        for g in range(len(groups.widths))
    ]

    def at(name: str, k: int) -> str:
        group, place = places[name].place(k)
        return f"{name}_{group}[{place} * samples]"

    lines = row_lines(function, at, lambda place, value: f"{at('out', place)} = {value};")
    return f"""{device_helpers(function)}
extern "C" __global__ void __launch_bounds__({_THREADS})
lanes({", ".join(arrays)}, double *__restrict__ out, const long long motions, const long long samples)
{{
    const long long i = (long long)blockIdx.y * {_THREADS} + threadIdx.x, m = blockIdx.x;
    if (i >= samples)
        return;
{chr(10).join(begins)}
{chr(10).join("    " + line for line in lines)}
}}
"""


class GpuLanes:
    """One compiled function.

    Args:
        function: Function of one sample.
        inputs: Widths of the groups of inputs, by name; others are one group.
        outputs: Widths of the groups of the result; default: one group.
    """

    def __init__(
        self, function: Function, inputs: Mapping[str, Sequence[int]] | None = None, outputs: Sequence[int] = ()
    ) -> None:
        self._cupy = import_extra("cupy", "gpu", "Work on a GPU")
        if not has_gpu():
            raise SteelyardError("CuPy does not find an NVIDIA GPU; run without the GPU option.")
        given = inputs or {}
        self.inputs = {name: LaneGroups(given.get(name, (width,))) for name, width in function.inputs.items()}
        self.outputs = LaneGroups(outputs or (function.size,))
        self._full = len(function.outputs) == function.size and all(v != 0.0 for v in function.outputs)
        text = lanes_text(function, self.inputs, self.outputs)
        self._kernel = self._cupy.RawModule(code=text, options=("-std=c++17",)).get_function("lanes")

    def __call__(self, motions: int, samples: int, **inputs: Any) -> Any:
        """Compute the result as one buffer.

        Args:
            motions: Number of motions.
            samples: Number of samples.
            inputs: Contiguous arrays in the order of lanes, or buffers of groups.
        """
        size = self.outputs.total * motions * samples
        out = self._cupy.empty(size) if self._full else self._cupy.zeros(size)
        grid = (motions, -(-samples // _THREADS))
        given = [inputs[name] for name in self.inputs]
        self._kernel(grid, (_THREADS,), (*given, out, np.int64(motions), np.int64(samples)))
        return out
