"""The fused Gram kernel in CUDA: a thread computes the rows of a sample, a warp multiplies them by its tensor cores.

Each thread of a block computes a sample and writes its rows to shared memory, one line of samples per column. Then
every warp adds XᵀX of its tiles of 8 × 8 columns in registers, four samples at a time, by the double-precision matrix
instruction of Ampere and later (m8n8k4). Lines are four samples longer than the number of threads, so that the eight
columns and four samples of an instruction are in different banks. Rows never leave the multiprocessor, sums once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.cuda.code_lines import device_helpers, row_lines
from steelyard.dynamics.function import Function
from steelyard.errors import SteelyardError

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
