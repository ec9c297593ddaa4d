"""`Command`: the input of a simulated robot: a table of references, and a law that turns them into torques."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.function import Function, Trace, dense
from steelyard.dynamics.native.kernel import Kernel, Single, kernel_of
from steelyard.errors import ShapeError, SimulationError
from steelyard.ground.arrays import Array
from steelyard.ground.recent_values import Recent
from steelyard.simulation.controllers import Controller


@dataclass(frozen=True)
class Schedule:
    """Time grid: `steps` steps of `step` seconds from `start`; a new torque every `hold` steps, a sample every
    `every`.
    """

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
        """Number of control instants, including the last sample if it coincides with one."""
        return self.steps // self.hold + 1

    @property
    def intervals(self) -> int:
        """Number of torques that act on the motion."""
        return -(-self.steps // self.hold)

    @property
    def times(self) -> Array:
        """Times of the samples, computed as start + k·step so that rounding does not accumulate."""
        return self._after(np.arange(self.samples) * self.every)

    @property
    def instant_times(self) -> Array:
        return self._after(np.arange(self.instants) * self.hold)

    def _after(self, steps: NDArray[np.int64]) -> Array:
        return np.asarray(self.start + steps * self.step, dtype=np.float64)


def schedule_of(
    duration: float | None, times: ArrayLike | None, step: float, control_period: float | None, record_every: int
) -> Schedule:
    """Build the time grid from the arguments of `simulate`.

    Args:
        duration: Duration [s]; None if `times` are given.
        times: Times of the samples [s]; steps are shortened so that a whole number fits between two samples.
        step: Integration step [s].
        control_period: Time between changes of the torque [s]; default: every step, with `times` every sample.
        record_every: Steps between samples.
    """
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
    # Accept the rounding of decimal numbers (0.3/0.001), but not half a step.
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


TorqueFunction = Callable[[float, Array, Array], ArrayLike]
Drive = ArrayLike | TorqueFunction | Controller | None


class Reference(Protocol):
    """A motion to follow: positions, velocities and accelerations `(samples, joints)` at times `t` [s]."""

    def sample(self, t: Array) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, eq=False)
class Command:
    """Row k of `table` `(robots or 1, instants, width)` is the reference of control instant k.

    With a controller it is q, q̇, q̈ to follow; without one it is the torque itself. With a function, which is called at
    every instant, it is unused.
    """

    joints: int
    table: Array
    controller: Controller | None = None
    function: TorqueFunction | None = None
    _laws: dict[int, Single] = field(default_factory=dict)

    @property
    def settings(self) -> Array:
        return np.zeros(0) if self.controller is None else self.controller.settings

    @property
    def states(self) -> int:
        """Number of states of the controller."""
        return 0 if self.controller is None else self.controller.states

    def widths(self) -> dict[str, int]:
        n = self.joints
        return {"q": n, "dq": n, "reference": self.table.shape[-1], "settings": len(self.settings)}

    def kernel(self, first_row: int) -> Kernel:
        """Compile the law; its reference and settings start at `first_row` of a plant's table."""
        structure = None if self.controller is None else self.controller.structure
        return _kernels.get((structure, self.joints, first_row), lambda: self._traced(first_row))

    def _traced(self, first_row: int) -> Kernel:
        rows = {"q": 0, "dq": self.joints, "reference": first_row, "settings": first_row + self.table.shape[-1]}
        return kernel_of(self.traced(), rows)

    def traced(self) -> Function:
        """The traced law."""
        trace = Trace(self.widths())
        q, dq, reference, settings = trace.all()
        n = self.joints
        if self.controller is None:
            torque: list[Any] = list(reference)
        else:
            parts = reference[:n], reference[n : 2 * n], reference[2 * n :]
            torque = self.controller.law(q, dq, *parts, settings)
        return dense("law", trace.graph, self.widths(), torque)

    def torque(self, robot: int, instant: int, t: float, q: Array, dq: Array) -> Array:
        """Compute the torque from one control instant on.

        Args:
            robot: Index of the robot.
            instant: Index of the control instant.
            t: Time [s].
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
        """
        if self.function is not None:
            return self.call_function(t, q, dq)
        row: Array = self.table[min(robot, len(self.table) - 1), instant]
        if self.controller is None:
            return row
        if robot not in self._laws:
            self._laws[robot] = Single(self.kernel(2 * self.joints), self.widths(), settings=self.settings)
        return self._laws[robot](q, dq, row)

    def call_function(self, t: float, q: Array, dq: Array) -> Array:
        """Call the torque function and check its result.

        Args:
            t: Time [s].
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
        """
        assert self.function is not None
        torque = np.asarray(self.function(t, q.copy(), dq.copy()), dtype=float)
        if torque.shape != q.shape:
            raise ShapeError(f"The drive returned torques of shape {torque.shape} at t = {t:g} s; expected {q.shape}.")
        if not np.all(np.isfinite(torque)) and np.all(np.isfinite(q)):
            raise SimulationError(f"The drive returned {torque} at t = {t:g} s; torques must be finite.")
        return torque


_kernels: Recent[Kernel] = Recent(32)


def command_of(drive: Drive, reference: Any, schedule: Schedule, joints: int) -> Command:
    """Build the command of a run.

    Args:
        drive: Drive, as in `simulate`.
        reference: Reference, as in `simulate`.
        schedule: Time grid.
        joints: Number of joints of the robot.
    """
    if isinstance(drive, Controller):
        if len(drive.kp) != joints:
            raise ShapeError(f"The controller has gains for {len(drive.kp)} joints; the robot has {joints}.")
        if reference is None:
            raise SimulationError("A controller needs a `reference` to follow: a posture, arrays, or .sample(t).")
        return Command(joints, _references(reference, schedule, joints), drive)
    if reference is not None:
        raise SimulationError("A `reference` needs a controller, but this drive states torques; remove one of the two.")
    if callable(drive):
        return Command(joints, np.zeros((1, 1, joints)), function=drive)
    torque = np.zeros(joints) if drive is None else drive
    return Command(joints, _table(torque, schedule, joints, "The torque array"))


def _references(reference: Any, schedule: Schedule, joints: int) -> Array:
    if hasattr(reference, "sample"):
        parts = reference.sample(schedule.instant_times)
    elif isinstance(reference, tuple):
        parts = reference
    else:
        parts = (reference, np.zeros(joints), np.zeros(joints))
    if len(parts) != 3:
        raise ShapeError(f"A reference has three parts (q, dq, ddq), not {len(parts)}.")
    tables = [
        _table(part, schedule, joints, f"The reference's {name}")
        for part, name in zip(parts, ("q", "dq", "ddq"), strict=True)
    ]
    robots = max(len(table) for table in tables)
    out = np.empty((robots, schedule.instants, 3 * joints))
    for k, table in enumerate(tables):
        out[..., k * joints : (k + 1) * joints] = table
    return out


def _table(values: ArrayLike, schedule: Schedule, joints: int, name: str) -> Array:
    """Shape values as (robots or 1, instants, joints); repeat a single row, or the last one if it is missing."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 1:
        array = np.broadcast_to(array, (schedule.instants, *array.shape))
    if array.ndim == 2:
        array = array[None]
    rows = (schedule.intervals, schedule.instants)
    if array.ndim != 3 or array.shape[2] != joints or array.shape[1] not in rows:
        raise ShapeError(
            f"{name} has shape {np.shape(values)}; expected ({joints},) or ({rows[0]}, {joints}): "
            f"one row per control period of {schedule.hold * schedule.step:g} s"
            + (" (one more, for the last sample, may follow)." if rows[0] != rows[1] else ".")
        )
    if not np.all(np.isfinite(array)):
        robot, row, joint = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise SimulationError(f"{name} is not finite in row {row}, joint {joint + 1} (robot {robot}).")
    if array.shape[1] < schedule.instants:
        array = np.concatenate([array, array[:, -1:] if array.shape[1] else np.zeros((len(array), 1, joints))], axis=1)
    return np.ascontiguousarray(array)
