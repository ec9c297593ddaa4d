"""`LiveColumns`: how the columns of a live source become t, q, dq and tau, by the same mapping as those of a log."""

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
from steelyard.watch.source import SourceError

SIGNAL_NAMES = ("position", "velocity", "effort")


class LiveColumns:
    """The way from a source's columns to samples of a robot.

    All that a mapping can say of a log (units, signs, gears, couplings, torque constants) is linear: it is found out by
    converting one unit of each column as a log would be, and is one product with a matrix from then on.

    Args:
        names: of the columns.
        robot: whose samples they are.
        mapping: a file, the name of a preset, or "" where names alone tell.
        joints: the joints that numbered columns speak of; () for the robot's.
    """

    def __init__(self, names: Sequence[str], robot: Robot, mapping: str = "", joints: Sequence[str] = ()) -> None:
        known = with_preset(as_mapping(mapping or None), names, robot.joint_names)
        if known.time is None and known.rate is None and recognise_time(names) is None:
            known = replace(known, rate=1.0)  # any: the clock is the time of arrival
        layout = find_layout(names, joints, robot, known)
        for wanted, there in (("velocity", "velocity" in layout.columns), ("torque", layout.torque_kind != "none")):
            if not there:
                raise SourceError(f"The source has no {wanted} of the joints; a robot is watched by it: send it, too.")
        motion = [name for signal, some in layout.columns.items() if signal != "acceleration" for name in some]
        used = list(dict.fromkeys(motion))
        units = {name: np.zeros(1 + len(used)) for name in layout.names}
        for k, name in enumerate(used):
            units[name][1 + k] = 1.0
        reader = MemoryReader("the source", units, joints)
        table = reader.table(layout.names, tuple(reader.blocks(layout.names)), 0)
        signals = joint_signals(table, layout, known, robot, [])
        found = np.hstack([signals[NAMES[name]] for name in ("position", "velocity", "torque")])
        self._offset, self._matrix = found[0], found[1:] - found[0]
        self._used = [list(names).index(name) for name in used]
        self._time = None if layout.time is None else list(names).index(layout.time)
        self._tick = unit_size("time", known.units.get("time", ("s",))[0])
        self.count = len(names)
        # Whether columns are what is wanted, as they stand: then there is nothing to be worked out.
        inside = self._used == list(range(1, self.count)) and self._time == 0 and self._tick == 1.0
        self._as_is = inside and np.array_equal(self._matrix, np.eye(len(used))) and not self._offset.any()

    def rows(self, values: Array) -> Array:
        """Samples t, q, dq, tau, (samples, 1 + 3 joints), of `values`, (samples, columns). Without a column of times
        they are those of now."""
        if self._as_is:
            return values
        out = np.empty((len(values), 1 + len(self._offset)))
        out[:, 0] = time.time() if self._time is None else values[:, self._time] * self._tick
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is left out by the clock, and counted
            out[:, 1:] = values[:, self._used] @ self._matrix + self._offset
        return out


def state_columns(joints: Sequence[str]) -> tuple[str, ...]:
    """The columns of a message of joint states, as those of a bag are called: t, and three signals of the `joints`."""
    return ("t", *(f"{signal}/{joint}" for signal in SIGNAL_NAMES for joint in joints))
