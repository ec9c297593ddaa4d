"""`CommandColumns`: the signals of one actuator as a file holds them, on one clock and in SI.

Servo registers have their own units and number codes: ticks, per mille, counts with a sign bit, two's complement, rpm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, UnknownNameError
from steelyard.ground.short_repr import short_repr
from steelyard.signals.units import LOG_UNITS, unit_size

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array


# How a register stores negative numbers: as they are; two's complement of 16 bits; a sign bit before the amount.
Code = Literal["signed", "int16", "bit10", "bit15"]
_SIGN_BITS: dict[str, int] = {"bit10": 1 << 10, "bit15": 1 << 15}
# Ticks per turn of most servos with a magnetic encoder of 12 bits (Dynamixel X and MX, Feetech STS and SCS).
USUAL_TICKS = 4096
_TICKS = re.compile(r"ticks(?:/(\d{2,9}))?(/s)?")
_COUNTS = re.compile(r"counts/(\d{1,7})")
# Size of a unit of duty; 1 is the full supply voltage.
_DUTY = {"1": 1.0, "": 1.0, "%": 1e-2, "percent": 1e-2, "permille": 1e-3, "per mille": 1e-3, "‰": 1e-3}
_VOLTS = {"V": 1.0, "mV": 1e-3, "0.1 V": 0.1}
_MORE = {
    "duty": ("1", "percent", "per mille", "counts/885"),
    "voltage": tuple(_VOLTS),
    "position": ("ticks", "ticks/1024"),
    "velocity": ("ticks/s", "ticks/1024/s"),
}


def command_unit_size(signal: str, unit: str) -> float:
    """Return the size of a unit of a command log in SI units.

    Command logs have further units: "ticks" (4096 per turn), "ticks/N" (N per turn) and both with "/s"; for duty "1",
    "percent", "per mille" and "counts/N" (N counts are the full supply voltage); for voltage V, mV and "0.1 V".

    Args:
        signal: "time", "position", "velocity", "duty", "voltage", "current" or "torque".
        unit: Unit.
    """
    plain = unit.strip()
    if signal in ("position", "velocity") and (match := _TICKS.fullmatch(plain)):
        if bool(match[2]) == (signal == "velocity"):
            return 2.0 * math.pi / float(match[1] or USUAL_TICKS)
    elif signal == "duty":
        if plain in _DUTY:
            return _DUTY[plain]
        if (match := _COUNTS.fullmatch(plain)) and int(match[1]):
            return 1.0 / float(match[1])
    elif signal == "voltage" and plain in _VOLTS:
        return _VOLTS[plain]
    if signal in LOG_UNITS:
        try:
            return unit_size(signal, plain)
        except UnknownNameError:
            pass
    known = [*LOG_UNITS.get(signal, ()), *_MORE.get(signal, ())]
    if signal == "position" and plain in ("percent", "%"):
        raise LogError(
            "position: percent of a range cannot be converted to radians; record degrees (in LeRobot: use_degrees), or "
            "convert the column by the range of the calibration."
        )
    raise UnknownNameError(f"unit of {signal}", unit, known)


def decode(values: Array, code: Code) -> Array:
    """Return signed numbers from the raw numbers of a register.

    Args:
        values: Raw numbers.
        code: How negative numbers are stored: "signed", "int16" (two's complement), "bit10" or "bit15" (sign bit).
    """
    if code not in get_args(Code):
        raise UnknownNameError("number code", str(code), get_args(Code))
    raw = np.asarray(values, dtype=float)
    if code == "signed":
        return raw
    if code == "int16":
        return np.where(raw >= 1 << 15, raw - (1 << 16), raw)
    bit = float(_SIGN_BITS[code])
    return np.where(raw >= bit, bit - raw, raw)


def guess_code(values: Array) -> Code | None:
    """Guess how a register stores negative numbers; None if its numbers were averaged across a change of sign.

    Only non-negative whole numbers can be coded. Numbers of 32768 and more are two's complement or have a sign in
    bit 15; the code with the smaller magnitudes is chosen. Numbers between 1024 and 2047 have a sign in bit 10 if the
    other numbers leave a gap below 1024. Interpolation across the wrap creates fractions between the two halves, which
    contradict every code.

    Args:
        values: Raw numbers.
    """
    raw = np.asarray(values, dtype=float)
    raw = raw[np.isfinite(raw)]
    if not raw.size or raw.min() < 0.0 or raw.max() < 1 << 10:
        return "signed"
    whole = bool(np.all(raw == np.round(raw)))
    if raw.max() >= 1 << 15:
        if not whole:
            return None
        amounts = {code: float(np.median(np.abs(decode(raw, code)))) for code in ("int16", "bit15")}
        return "int16" if amounts["int16"] <= amounts["bit15"] else "bit15"
    if raw.max() < 1 << 11 and whole:
        # A register without sign rises through 1024; one with a sign bit jumps there from small numbers.
        crossings = np.flatnonzero(np.diff((raw >= 1 << 10).astype(int)))
        steps = np.abs(np.diff(raw))[crossings]
        return "bit10" if crossings.size == 0 or np.median(steps) > 1 << 9 else "signed"
    return "signed"


def unwrapped_ticks(values: Array, ticks: int = USUAL_TICKS) -> Array:
    """Return positions without the jump of a single-turn encoder from its last tick to zero.

    Args:
        values: Positions [ticks], one turn.
        ticks: Ticks per turn.
    """
    return np.unwrap(np.asarray(values, dtype=float), period=float(ticks))


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
