"""`Schedule`: which steps a simulation makes, when its torque changes and when it is looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.errors import SimulationError
from steelyard.robot.spatial import Array


@dataclass(frozen=True)
class Schedule:
    """`steps` steps of `step` seconds from `start`; every `hold` steps a new torque, every `every` steps a sample."""

    start: float
    step: float
    steps: int
    hold: int
    every: int

    @property
    def samples(self) -> int:
        return self.steps // self.every + 1

    @property
    def instants(self) -> int:
        """How often the torque is set, the last sample included if it falls on such an instant."""
        return self.steps // self.hold + 1

    @property
    def intervals(self) -> int:
        """How many torques act on the motion."""
        return -(-self.steps // self.hold)

    @property
    def times(self) -> Array:
        """Times of the samples, computed as start + k·step so that no error adds up."""
        return self._after(np.arange(self.samples) * self.every)

    @property
    def instant_times(self) -> Array:
        return self._after(np.arange(self.instants) * self.hold)

    def _after(self, steps: NDArray[np.int64]) -> Array:
        return np.asarray(self.start + steps * self.step, dtype=np.float64)


def schedule_of(
    duration: float | None, times: ArrayLike | None, step: float, control_period: float | None, record_every: int
) -> Schedule:
    """From what `simulate` is told. With `times`, steps are shortened so that a whole number fits between two."""
    if (duration is None) == (times is None):
        raise SimulationError("State either `duration` (s) or `times` (of the samples, equally spaced).")
    if not (np.isfinite(step) and step > 0.0):
        raise SimulationError(f"step must be a positive number of seconds, not {step}.")
    if record_every < 1 or record_every != int(record_every):
        raise SimulationError(f"record_every must be a whole number from 1 on, not {record_every}.")
    if times is None:
        assert duration is not None
        if not (np.isfinite(duration) and duration >= 0.0):
            raise SimulationError(f"duration must be a number of seconds from 0 on, not {duration}.")
        start, steps, every = 0.0, _whole(duration, step, "duration"), int(record_every)
        hold = 1
    else:
        start, spacing, count = _spacing(times)
        hold = max(1, int(np.ceil(spacing / step - 1e-9)))
        step, steps, every = spacing / hold, count * hold, hold * int(record_every)
    if control_period is not None:
        if not (np.isfinite(control_period) and control_period > 0.0):
            raise SimulationError(f"control_period must be a positive number of seconds, not {control_period}.")
        hold = _whole(control_period, step, "control_period")
    return Schedule(start, step, steps, hold, every)


def _whole(length: float, step: float, name: str) -> int:
    count = round(length / step)
    # Rounding of decimal numbers (0.3/0.001) is forgiven, half a step is not.
    if abs(count * step - length) > 1e-6 * step * max(1, count) or (count == 0 and length > 0.0):
        raise SimulationError(f"{name} {length} s is not a whole number of steps of {step} s; change one of them.")
    return count


def _spacing(times: ArrayLike) -> tuple[float, float, int]:
    t = np.asarray(times, dtype=float)
    if t.ndim != 1 or len(t) < 2 or not np.all(np.isfinite(t)):
        raise SimulationError("times must be two or more finite numbers of seconds.")
    spacing = float(t[-1] - t[0]) / (len(t) - 1)
    if spacing <= 0.0 or np.max(np.abs(np.diff(t) - spacing)) > 1e-6 * spacing + 1e-12 * abs(float(t[-1])):
        raise SimulationError("times must increase in equal steps; resample the signals onto such a clock first.")
    return float(t[0]), spacing, len(t) - 1
