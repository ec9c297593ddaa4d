"""`Device`: where many motions or robots are worked on. The arithmetic is NumPy's, which CuPy's arrays take over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.dynamics.cuda.grams import gpu_found
from steelyard.dynamics.cuda.lanes import GpuLanes
from steelyard.dynamics.cuda.steps import GpuSteps
from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra


@dataclass(frozen=True)
class Device:
    """A place for arrays and functions.

    Attributes:
        place: an array of the processor's memory, there.
        fetch: an array from there, in the processor's memory.
        lanes: compiles a traced function for it, as `GpuLanes` does.
        steps: compiles a plant and a law for it, as `GpuSteps` does.
        free: bytes of memory that may be used there.
    """

    place: Callable[[Any], Any]
    fetch: Callable[[Any], Any]
    lanes: Callable[..., Any]
    steps: Callable[..., Any] = GpuSteps
    free: Callable[[], int] = lambda: 4 << 30


def gpu() -> Device:
    """The first NVIDIA GPU."""
    cupy = import_extra("cupy", "gpu", "Work on a GPU")
    if not gpu_found():
        raise SteelyardError("There is no NVIDIA GPU here that CuPy can use; leave out the GPU.")
    return Device(cupy.asarray, cupy.asnumpy, GpuLanes, GpuSteps, lambda: int(cupy.cuda.Device().mem_info[0]))
