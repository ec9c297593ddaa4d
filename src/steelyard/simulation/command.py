"""`Command`: what drives a simulated robot, in one form: a table of references and a law that turns them to torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.function import Trace
from steelyard.errors import ShapeError, SimulationError
from steelyard.robot.spatial import Array
from steelyard.simulation.controllers import Controller
from steelyard.simulation.plant import Kernel, Single
from steelyard.simulation.schedule import Schedule

TorqueFunction = Callable[[float, Array, Array], ArrayLike]
Drive = ArrayLike | TorqueFunction | Controller | None


class Reference(Protocol):
    """A motion to follow: positions, velocities and accelerations `(samples, joints)` at times t."""

    def sample(self, t: Array) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, eq=False)
class Command:
    """Row k of `table` `(robots or 1, instants, width)` is the reference of control instant k.

    With a controller it is q, q̇, q̈ to follow; without one it is the torque itself; with a function, which is
    asked at every instant, it is unused.
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
        """How many numbers the controller remembers."""
        return 0 if self.controller is None else self.controller.states

    def widths(self) -> dict[str, int]:
        n = self.joints
        return {"q": n, "dq": n, "reference": self.table.shape[-1], "settings": len(self.settings)}

    def kernel(self, first_row: int) -> Kernel:
        """The law as a kernel whose reference and settings start at a row of a plant's table."""
        structure = None if self.controller is None else self.controller.structure
        key = (structure, self.joints, first_row)
        if key not in _kernels:
            trace = Trace(self.widths())
            q, dq, reference, settings = trace.all()
            n = self.joints
            if self.controller is None:
                torque: list[Any] = list(reference)
            else:
                parts = reference[:n], reference[n : 2 * n], reference[2 * n :]
                torque = self.controller.law(q, dq, *parts, settings)
            rows = {"q": 0, "dq": n, "reference": first_row, "settings": first_row + len(reference)}
            while len(_kernels) >= _KERNELS_KEPT:
                del _kernels[next(iter(_kernels))]
            _kernels[key] = Kernel(trace, torque, rows)
        return _kernels[key]

    def torque(self, robot: int, instant: int, t: float, q: Array, dq: Array) -> Array:
        """The torque of one robot from a control instant on."""
        if self.function is not None:
            return self.ask(t, q, dq)
        row: Array = self.table[min(robot, len(self.table) - 1), instant]
        if self.controller is None:
            return row
        if robot not in self._laws:
            self._laws[robot] = Single(self.kernel(2 * self.joints), self.widths(), settings=self.settings)
        return self._laws[robot](q, dq, row)

    def ask(self, t: float, q: Array, dq: Array) -> Array:
        """The torque that the function wants, checked."""
        assert self.function is not None
        torque = np.asarray(self.function(t, q.copy(), dq.copy()), dtype=float)
        if torque.shape != q.shape:
            raise ShapeError(f"The drive returned torques of shape {torque.shape} at t = {t:g} s; expected {q.shape}.")
        if not np.all(np.isfinite(torque)) and np.all(np.isfinite(q)):
            raise SimulationError(f"The drive returned {torque} at t = {t:g} s; torques must be finite.")
        return torque


_kernels: dict[Any, Kernel] = {}
_KERNELS_KEPT = 32


def command_of(drive: Drive, reference: Any, schedule: Schedule, joints: int) -> Command:
    if isinstance(drive, Controller):
        if len(drive.kp) != joints:
            raise ShapeError(f"The controller has gains for {len(drive.kp)} joints; the robot has {joints}.")
        if reference is None:
            raise SimulationError("A controller needs a `reference` to follow: a posture, arrays, or .sample(t).")
        return Command(joints, _references(reference, schedule, joints), drive)
    if reference is not None:
        raise SimulationError("A `reference` is for controllers; the drive given here makes torques by itself.")
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


def _table(values: ArrayLike, schedule: Schedule, joints: int, what: str) -> Array:
    """(robots or 1, instants, joints); a single row is held throughout, a missing last row repeats the one before."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 1:
        array = np.broadcast_to(array, (schedule.instants, *array.shape))
    if array.ndim == 2:
        array = array[None]
    rows = (schedule.intervals, schedule.instants)
    if array.ndim != 3 or array.shape[2] != joints or array.shape[1] not in rows:
        raise ShapeError(
            f"{what} has shape {np.shape(values)}; expected ({joints},) or ({rows[0]}, {joints}): "
            f"one row per control period of {schedule.hold * schedule.step:g} s"
            + (" (one more, for the last sample, may follow)." if rows[0] != rows[1] else ".")
        )
    if not np.all(np.isfinite(array)):
        robot, row, joint = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise SimulationError(f"{what} is not finite in row {row}, joint {joint + 1} (robot {robot}).")
    if array.shape[1] < schedule.instants:
        array = np.concatenate([array, array[:, -1:] if array.shape[1] else np.zeros((len(array), 1, joints))], axis=1)
    return np.ascontiguousarray(array)
