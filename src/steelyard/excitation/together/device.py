"""`Device`: where many motions are worked on. The arithmetic is NumPy's, which CuPy's arrays take over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steelyard.dynamics.cuda.lanes import GpuLanes
from steelyard.ground.extras import import_extra


@dataclass(frozen=True)
class Device:
    """A place for arrays and functions.

    Attributes:
        place: an array of the processor's memory, there.
        fetch: an array from there, in the processor's memory.
        lanes: compiles a traced function for it, as `GpuLanes` does.
    """

    place: Callable[[Any], Any]
    fetch: Callable[[Any], Any]
    lanes: Callable[..., Any]


def gpu() -> Device:
    """The first NVIDIA GPU."""
    cupy = import_extra("cupy", "gpu", "Work on a GPU")
    return Device(cupy.asarray, cupy.asnumpy, GpuLanes)
