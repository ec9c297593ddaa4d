"""`Device`: the place where many motions or robots are computed, with arrays that follow NumPy's interface.

`GpuSteps` are Runge–Kutta steps of many robots under control on a GPU; one thread simulates one robot. Signals have the
layout `(samples, joints, robots)`, so that adjacent threads write adjacent memory. The steps are those of
`dynamics/native/rk4.py`: the classical method of order 4 (Kutta 1901), with the same sums in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.c_text import device_helpers, row_lines
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.dynamics.cuda.lanes import GpuLanes
from steelyard.dynamics.function import Function
from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra

# There are fewer robots than threads of a GPU: small blocks spread them over all multiprocessors.
STEP_THREADS = 32


def steps_text(plant: Function, law: Function) -> str:
    """Write CUDA for robots under control.

    Args:
        plant: Accelerations from `q`, `dq`, `tau` and each robot's `theta`.
        law: Torques from `q`, `dq`, and `reference` and `settings`, which all robots share.
    """
    n, width = plant.inputs["q"], law.inputs["reference"]

    def lines(function: Function, result: str) -> str:
        """Write the function with its torques or accelerations in the array `result`."""

        def read(name: str, k: int) -> str:
            where = {"theta": f"theta[{k} * robots + r]", "reference": f"row[{k}]", "settings": f"settings[{k}]"}
            return where.get(name, f"{name}_in[{k}]" if name in ("q", "dq") else f"{name}[{k}]")

        return "\n".join(
            f"            {line}" for line in row_lines(function, read, lambda k, x: f"{result}[{k}] = {x};")
        )

    return f"""{device_helpers(plant, law)}
extern "C" __global__ void __launch_bounds__({STEP_THREADS})
steps(const double *__restrict__ theta, const double *__restrict__ table, const double *__restrict__ settings,
      const double *__restrict__ start, const long long robots, const long long count, const long long hold,
      const long long every, const double length, double *__restrict__ q_out, double *__restrict__ dq_out,
      double *__restrict__ tau_out)
{{
    const long long r = (long long)blockIdx.x * {STEP_THREADS} + threadIdx.x;
    if (r >= robots)
        return;
    double q[{n}], dq[{n}], q_in[{n}], dq_in[{n}], q_sum[{n}], dq_sum[{n}], tau[{n}], rate[{n}];
    #pragma unroll
    for (int i = 0; i < {n}; ++i) {{
        q[i] = q_in[i] = start[i * robots + r];
        dq[i] = dq_in[i] = start[({n} + i) * robots + r];
        tau[i] = rate[i] = 0.0;
    }}
    for (long long step = 0; step <= count; ++step) {{
        if (step % hold == 0) {{
            const double *row = table + step / hold * {width};
{lines(law, "tau")}
        }}
        if (step % every == 0) {{
            const long long at = step / every * {n};
            #pragma unroll
            for (int i = 0; i < {n}; ++i) {{
                q_out[(at + i) * robots + r] = q[i];
                dq_out[(at + i) * robots + r] = dq[i];
                tau_out[(at + i) * robots + r] = tau[i];
            }}
        }}
        if (step == count)
            return;
        #pragma unroll 1
        for (int stage = 0; stage < 4; ++stage) {{
{lines(plant, "rate")}
            const double share = stage == 0 || stage == 3 ? length / 6.0 : length / 3.0;
            const double ahead = stage == 2 ? length : 0.5 * length;
            #pragma unroll
            for (int i = 0; i < {n}; ++i) {{
                q_sum[i] = fma(share, dq_in[i], stage ? q_sum[i] : q[i]);
                dq_sum[i] = fma(share, rate[i], stage ? dq_sum[i] : dq[i]);
                if (stage == 3) {{
                    q[i] = q_in[i] = q_sum[i];
                    dq[i] = dq_in[i] = dq_sum[i];
                }} else {{
                    q_in[i] = fma(ahead, dq_in[i], q[i]);
                    dq_in[i] = fma(ahead, rate[i], dq[i]);
                }}
            }}
        }}
    }}
}}
"""


class GpuSteps:
    """One compiled plant and law.

    Args:
        plant: Accelerations from `q`, `dq`, `tau` and each robot's `theta`.
        law: Torques from `q`, `dq`, and `reference` and `settings`, which all robots share.
    """

    def __init__(self, plant: Function, law: Function) -> None:
        self._cupy = import_extra("cupy", "gpu", "Work on a GPU")
        if not has_gpu():
            raise SteelyardError("CuPy does not find an NVIDIA GPU; run without the GPU option.")
        self.joints = plant.inputs["q"]
        text = steps_text(plant, law)
        self._kernel = self._cupy.RawModule(code=text, options=("-std=c++17",)).get_function("steps")

    def __call__(
        self, theta: Any, table: Any, settings: Any, start: Any, count: int, hold: int, every: int, step: float
    ) -> tuple[Any, Any, Any]:
        """Compute positions, velocities and torques of every sample, `(samples, joints, robots)`.

        Args:
            theta: Parameters, `(parameters, robots)`.
            table: References, `(instants, width)`.
            settings: Numbers of the law.
            start: First positions and velocities, `(2 · joints, robots)`.
            count: Number of steps.
            hold: Steps per control period.
            every: Steps between samples.
            step: Step [s].
        """
        cupy, robots = self._cupy, theta.shape[1]
        out = [cupy.empty((count // every + 1, self.joints, robots)) for _ in range(3)]
        given = [cupy.ascontiguousarray(x) for x in (theta, table, settings, start)]
        sizes = [np.int64(x) for x in (robots, count, hold, every)]
        self._kernel((-(-robots // STEP_THREADS),), (STEP_THREADS,), (*given, *sizes, np.float64(step), *out))
        return out[0], out[1], out[2]


@dataclass(frozen=True)
class Device:
    """A processor (GPU or CPU) that stores arrays and runs compiled functions.

    Attributes:
        place: Copies an array from the processor's memory to the device.
        fetch: Copies an array from the device to the processor's memory.
        lanes: Compiles a traced function, like `GpuLanes`.
        steps: Compiles a plant and a law, like `GpuSteps`.
        free: Returns the usable memory in bytes.
    """

    place: Callable[[Any], Any]
    fetch: Callable[[Any], Any]
    lanes: Callable[..., Any]
    steps: Callable[..., Any] = GpuSteps
    free: Callable[[], int] = lambda: 4 << 30


def gpu() -> Device:
    """Return the first NVIDIA GPU."""
    cupy = import_extra("cupy", "gpu", "Work on a GPU")
    if not has_gpu():
        raise SteelyardError("CuPy does not find an NVIDIA GPU; run without the GPU option.")
    return Device(cupy.asarray, cupy.asnumpy, GpuLanes, GpuSteps, lambda: int(cupy.cuda.Device().mem_info[0]))
