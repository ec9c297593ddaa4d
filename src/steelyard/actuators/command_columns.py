"""`CommandColumns`: the signals of one actuator as a file holds them, on one clock and in SI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array

# A rollout needs some motion; fewer samples are a damaged file.
_FEWEST = 10
_SIGNALS = ("goal", "position", "velocity", "duty", "voltage", "current", "torque", "enabled", "feedforward")


@short_repr
@dataclass(frozen=True)
class CommandColumns:
    """The signals of one actuator in one log; a signal that is missing in the file is None.

    Args:
        source: File, and its episode or joint if it has several, for messages.
        joint: Name of the joint or motor.
        time: Clock [s], increasing.
        goal: Commanded position [rad].
        position: Measured position [rad].
        velocity: Measured velocity [rad/s].
        duty: Signed share of the supply voltage on the motor, from −1 to 1.
        voltage: Supply voltage [V].
        current: Motor current [A].
        torque: Torque reported by the drive [N m].
        enabled: Whether the drive is on.
        numbers: Numbers that the file states: kp, kd, mass [kg], length [m], arm_mass [kg], supply [V].
        words: Texts that the file states: motor, trajectory.
        notes: One sentence with the reason for each part of the file that is not used.
        feedforward: Commanded feed-forward torque [N m].
    """

    source: str
    joint: str
    time: Array
    goal: Array
    position: Array
    velocity: Array | None = None
    duty: Array | None = None
    voltage: Array | None = None
    current: Array | None = None
    torque: Array | None = None
    enabled: NDArray[np.bool_] | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    feedforward: Array | None = None

    def __post_init__(self) -> None:
        rows = len(self.time)
        if rows < _FEWEST:
            raise LogError(f"{self.source}: has {rows} samples; at least {_FEWEST} are needed.")
        for name in ("time", *_SIGNALS):
            values = getattr(self, name)
            if values is None:
                continue
            if np.shape(values) != (rows,):
                raise LogError(f"{self.source}: {name} has {np.size(values)} samples, the clock {rows}; record both.")
            # A goal is free while the drive is off, and slow registers have gaps.
            if name in ("time", "position") and not np.all(np.isfinite(values)):
                row = int(np.argmin(np.isfinite(values))) + 1
                raise LogError(f"{self.source}: row {row}: {name} is not a finite number; remove the row.")
        steps = np.diff(self.time)
        if np.any(steps <= 0.0):
            row = int(np.argmax(steps <= 0.0)) + 2
            raise LogError(
                f"{self.source}: row {row}: the clock does not increase; use one file per run, in the order of time."
            )

    def changed(self, **changes: Any) -> CommandColumns:
        """Return these columns with other values of some fields, by name in `changes`."""
        return replace(self, **changes)


def held(times: Array, values: Array, at: Array) -> Array:
    """Return the last value at or before each time (zero-order hold), as a drive holds its last command.

    Args:
        times: Times of the values [s], increasing.
        values: Values.
        at: Requested times [s]; the first value applies before its own time.
    """
    places = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 1)
    return np.asarray(np.asarray(values)[places])


def filled(values: Array) -> Array:
    """Fill each gap with the last finite value before it; a gap at the begin gets the first finite value.

    Args:
        values: Values with NaN where a register was not read.
    """
    finite = np.isfinite(values)
    if finite.all() or not finite.any():
        return np.asarray(values, dtype=float)
    places = np.maximum.accumulate(np.where(finite, np.arange(len(values)), -1))
    return np.asarray(np.asarray(values, dtype=float)[np.where(places < 0, int(np.argmax(finite)), places)])
