"""`Device`: the place where many motions or robots are computed, with arrays that follow NumPy's interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.dynamics.cuda.lanes import GpuLanes
from steelyard.dynamics.cuda.steps import GpuSteps
from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra


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
