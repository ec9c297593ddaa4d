"""A substitute for a GPU: traced functions by the processor, and everything else is the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.dynamics.cuda.device import STEP_THREADS, Device, steps_text
from steelyard.dynamics.cuda.lanes import LaneGroups
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import Function


class LanesHere:
    """What `GpuLanes` does, by the processor."""

    def __init__(self, function: Function, inputs: dict[str, list[int]] | None = None, outputs: Any = ()) -> None:
        given = inputs or {}
        self.inputs = {name: LaneGroups(given.get(name, (width,))) for name, width in function.inputs.items()}
        self.outputs, self._evaluate = LaneGroups(outputs or (function.size,)), Evaluator(function)

    def __call__(self, motions: int, samples: int, **inputs: Any) -> Any:
        given = {
            name: np.concatenate(
                [np.swapaxes(x, 1, 2) for x in groups.views(inputs[name].ravel(), motions, samples)], 2
            )
            for name, groups in self.inputs.items()
        }
        found = self._evaluate({n: x.reshape(motions * samples, -1) for n, x in given.items()})
        out = np.empty(self.outputs.total * motions * samples)
        ends = self.outputs.firsts
        for view, a, b in zip(self.outputs.views(out, motions, samples), ends, ends[1:], strict=False):
            view[:] = np.swapaxes(found.reshape(motions, samples, -1)[:, :, a:b], 1, 2)
        return out


class StepsHere:
    """What `GpuSteps` does: the kernel's own text, compiled for the processor, thread by thread."""

    def __init__(self, plant: Function, law: Function) -> None:
        compiler = shutil.which("g++")
        if compiler is None:
            pytest.skip("there is no C++ compiler on this machine")
        self.joints = plant.inputs["q"]
        code = f"""#include <cmath>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(x)
static struct {{ int x; }} blockIdx, threadIdx;
{steps_text(plant, law)}
extern "C" void all(double *theta, double *table, double *settings, double *start, long long robots, long long count,
                    long long hold, long long every, double length, double *q, double *dq, double *tau)
{{
    for (blockIdx.x = 0; blockIdx.x * {STEP_THREADS} < robots; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < {STEP_THREADS}; ++threadIdx.x)
            steps(theta, table, settings, start, robots, count, hold, every, length, q, dq, tau);
}}"""
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "steps.cpp", Path(folder) / "steps.so"
            source.write_text(code, "utf-8")
            flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC"]
            subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
            self._all = ctypes.CDLL(str(library)).all

    def __call__(
        self, theta: Any, table: Any, settings: Any, start: Any, count: int, hold: int, every: int, step: float
    ) -> tuple[Any, Any, Any]:
        robots = theta.shape[1]
        out = [np.empty((count // every + 1, self.joints, robots)) for _ in range(3)]
        given = [np.ascontiguousarray(x) for x in (theta, table, settings, start)]
        sizes = [ctypes.c_longlong(x) for x in (robots, count, hold, every)]
        self._all(*map(_place, given), *sizes, ctypes.c_double(step), *map(_place, out))
        return out[0], out[1], out[2]


def _place(x: np.ndarray) -> ctypes.c_void_p:
    return x.ctypes.data_as(ctypes.c_void_p)


HERE = Device(np.asarray, np.asarray, LanesHere, StepsHere)
