"""`GpuGrams`: Gram matrices of a traced function's outputs over the samples of many logs, on a GPU.

In the fused kernel a thread computes the rows of a sample, and a warp multiplies them by its tensor cores. Each thread
of a block writes its rows to shared memory, one line of samples per column. Then every warp adds XᵀX of its tiles of
8 × 8 columns in registers, four samples at a time, by the double-precision matrix instruction of Ampere and later
(m8n8k4). Lines are four samples longer than the number of threads, so that the eight columns and four samples of an
instruction are in different banks. Rows never leave the multiprocessor; sums leave it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.c_text import device_helpers, row_lines
from steelyard.dynamics.function import Function
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra

# Columns and rows of a tile, samples of an instruction, threads of a warp.
TILE_EDGE, _STEP, _WARP = 8, 4, 32
# Shared memory of a block on Hopper [bytes], and the maximum number of warps per block, limited by registers.
_SHARED, _MOST_WARPS = 227 * 1024, 4

_MULTIPLY = """
__device__ __forceinline__ void multiply(double (&c)[2], double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}
"""
# Sums of the parts of each log in a fixed order, so that results repeat exactly.
_TOTAL = """
extern "C" __global__ void total(const double *parts, const long long *starts, double *sums, long long size)
{
    const long long at = (long long)blockIdx.y * blockDim.x + threadIdx.x;
    if (at >= size)
        return;
    double sum = 0.0;
    for (long long k = starts[blockIdx.x]; k < starts[blockIdx.x + 1]; ++k)
        sum += parts[k * size + at];
    sums[blockIdx.x * size + at] = sum;
}
"""


@dataclass(frozen=True)
class GramPlan:
    """Layout of the work of a block.

    Args:
        columns: Number of columns of all groups.
        warps: Warps of a block; each takes 32 samples at a time.
        tiles: Group, row and column of each tile of every warp.
    """

    columns: int
    warps: int
    tiles: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def threads(self) -> int:
        return _WARP * self.warps

    @property
    def line(self) -> int:
        """Distance between columns in shared memory, in numbers."""
        return self.threads + _STEP

    @property
    def shared(self) -> int:
        """Size of the shared memory [bytes]; the last tile may read beyond the last column."""
        return 8 * self.line * (self.columns + TILE_EDGE - 1)

    @property
    def max_tiles(self) -> int:
        """Maximum number of tiles per warp."""
        return max(map(len, self.tiles))


def gram_plan(widths: Sequence[int]) -> GramPlan:
    """Create the layout for groups of `widths` columns."""
    columns = sum(widths)
    fit = (_SHARED // (8 * (columns + TILE_EDGE - 1)) - _STEP) // _WARP
    if fit < 1:
        raise SteelyardError(f"Rows of {columns} numbers exceed a GPU's shared memory; run without the GPU option.")
    warps = min(fit, _MOST_WARPS)
    tiles = [(g, i, j) for g, w in enumerate(widths) for i in range(-(-w // TILE_EDGE)) for j in range(i + 1)]
    each = -(-len(tiles) // warps)
    return GramPlan(columns, warps, tuple(tuple(tiles[k * each : (k + 1) * each]) for k in range(warps)))


def gram_text(function: Function, firsts: Sequence[int], plan: GramPlan) -> str:
    """Write CUDA for the Gram matrices of groups of a function's outputs.

    Args:
        function: Traced function.
        firsts: First output of each group.
        plan: Layout.
    """
    arrays = ", ".join(f"const double *__restrict__ {name}" for name in function.inputs)
    lines = row_lines(
        function,
        lambda name, k: f"{name}[sample * {function.inputs[name]} + {k}]",
        lambda place, value: f"X[{place * plan.line} + s] = inside ? {value} : 0.0;",
    )
    body = "\n".join(f"        {line}" for line in lines)
    sums = "\n".join(_sums(plan, firsts))
    count = plan.max_tiles
    return f"""{device_helpers(function)}{_MULTIPLY}{_TOTAL}
extern "C" __global__ void __launch_bounds__({plan.threads}, 1)
grams({arrays}, const long long *__restrict__ begins, const long long *__restrict__ ends, double *__restrict__ out)
{{
    extern __shared__ double X[];
    const int s = threadIdx.x, lane = s & 31, warp = s >> 5, place = (lane >> 2) * {plan.line} + (lane & 3);
    double c[{count}][2];
    #pragma unroll
    for (int k = 0; k < {count}; ++k)
        c[k][0] = c[k][1] = 0.0;
    for (int k = s; k < {plan.line * (plan.columns + TILE_EDGE - 1)}; k += {plan.threads})
        X[k] = 0.0;
    const long long end = ends[blockIdx.x];
    for (long long at = begins[blockIdx.x]; at < end; at += {plan.threads}) {{
        __syncthreads();
        const bool inside = at + s < end;
        const long long sample = inside ? at + s : end - 1;
{body}
        __syncthreads();
{sums}
    }}
    #pragma unroll
    for (int k = 0; k < {count}; ++k) {{
        double *o = out + (((long long)blockIdx.x * {plan.warps} + warp) * {count} + k) * {TILE_EDGE * TILE_EDGE};
        o[(lane >> 2) * {TILE_EDGE} + (lane & 3) * 2] = c[k][0];
        o[(lane >> 2) * {TILE_EDGE} + (lane & 3) * 2 + 1] = c[k][1];
    }}
}}
"""


def _sums(plan: GramPlan, firsts: Sequence[int]) -> Iterator[str]:
    """Write the products of every warp's tiles; the eight columns of each edge are read once."""
    for warp, tiles in enumerate(plan.tiles):
        edges = sorted({(g, i) for g, i, _ in tiles} | {(g, j) for g, _, j in tiles})
        yield f"        {'else ' if warp else ''}if (warp == {warp})"
        yield "            #pragma unroll 2"
        yield f"            for (int k = 0; k < {plan.threads}; k += {_STEP}) {{"
        for g, i in edges:
            yield f"                const double f{g}_{i} = X[{(firsts[g] + TILE_EDGE * i) * plan.line} + place + k];"
        for k, (g, i, j) in enumerate(tiles):
            yield f"                multiply(c[{k}], f{g}_{i}, f{g}_{j});"
        yield "            }"


def unpack_grams(plan: GramPlan, widths: Sequence[int], sums: np.ndarray) -> list[np.ndarray]:
    """Convert the kernel's sums to Gram matrices.

    Args:
        plan: Layout.
        widths: Columns of each group.
        sums: Result of the kernel, `(warps, tiles, 64)`.
    """
    edge = TILE_EDGE
    found = [np.zeros((-(-w // edge) * edge,) * 2) for w in widths]
    for warp, tiles in enumerate(plan.tiles):
        for k, (g, i, j) in enumerate(tiles):
            found[g][edge * i : edge * (i + 1), edge * j : edge * (j + 1)] = sums[warp, k].reshape(edge, edge)
    return [(np.tril(x) + np.tril(x, -1).T)[:w, :w] for x, w in zip(found, widths, strict=True)]


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
