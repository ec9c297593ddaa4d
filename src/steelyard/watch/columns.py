"""`LiveColumns`: converts the columns of a live source to t, q, dq and tau, with the same mapping as for a log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals._convert import NAMES, joint_signals
from steelyard.signals._layout import find_layout
from steelyard.signals.in_memory import MemoryReader
from steelyard.signals.mapping import as_mapping
from steelyard.signals.presets import with_preset
from steelyard.signals.recognise import recognise_time
from steelyard.signals.units import unit_size
from steelyard.watch.live_source import SourceError

SIGNAL_NAMES = ("position", "velocity", "effort")


class LiveColumns:
    """Converts the columns of a source to samples of a robot.

    A mapping (units, signs, gears, couplings, torque constants) is linear. Its matrix is determined by converting a
    unit value of each column as a log.

    Args:
        names: Names of the columns.
        robot: The robot.
        mapping: A file, the name of a preset, or "" if the column names suffice.
        joints: Joints that numbered columns refer to; () for the robot's.
    """

    def __init__(self, names: Sequence[str], robot: Robot, mapping: str = "", joints: Sequence[str] = ()) -> None:
        settings = with_preset(as_mapping(mapping or None), names, robot.joint_names)
        if settings.time is None and settings.rate is None and recognise_time(names) is None:
            settings = replace(settings, rate=1.0)  # any value: the time of arrival is used
        layout = find_layout(names, joints, robot, settings)
        has = {"velocity": "velocity" in layout.columns, "torque": layout.torque_kind != "none"}
        for signal in (name for name, present in has.items() if not present):
            raise SourceError(f"The source sends no joint {signal}, which the watch needs; add it to the columns.")
        motion = [name for signal, columns in layout.columns.items() if signal != "acceleration" for name in columns]
        used = list(dict.fromkeys(motion))
        units = {name: np.zeros(1 + len(used)) for name in layout.names}
        for k, name in enumerate(used):
            units[name][1 + k] = 1.0
        reader = MemoryReader("the source", units, joints)
        table = reader.table(layout.names, tuple(reader.blocks(layout.names)), 0)
        signals = joint_signals(table, layout, settings, robot, [])
        converted = np.hstack([signals[NAMES[name]] for name in ("position", "velocity", "torque")])
        self._offset, self._matrix = converted[0], converted[1:] - converted[0]
        self._used = [list(names).index(name) for name in used]
        self._time = None if layout.time is None else list(names).index(layout.time)
        self._tick = unit_size("time", settings.units.get("time", ("s",))[0])
        self.count = len(names)
        # Whether the columns need no conversion.
        inside = self._used == list(range(1, self.count)) and self._time == 0 and self._tick == 1.0
        self._as_is = inside and np.array_equal(self._matrix, np.eye(len(used))) and not self._offset.any()

    def rows(self, values: Array) -> Array:
        """Convert `values`, shape (samples, columns), to samples t, q, dq, tau, shape (samples, 1 + 3 joints).

        Without a time column, t is the present time.
        """
        if self._as_is:
            return values
        out = np.empty((len(values), 1 + len(self._offset)))
        out[:, 0] = time.time() if self._time is None else values[:, self._time] * self._tick
        with np.errstate(invalid="ignore", over="ignore"):  # the clock drops and counts such samples
            out[:, 1:] = values[:, self._used] @ self._matrix + self._offset
        return out


def state_columns(joints: Sequence[str]) -> tuple[str, ...]:
    """Return the column names of a joint-state message, as in a bag: t, and three signals of the `joints`."""
    return ("t", *(f"{signal}/{joint}" for signal in SIGNAL_NAMES for joint in joints))
