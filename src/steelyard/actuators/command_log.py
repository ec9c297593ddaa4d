"""`CommandLog`: one run of a drive, with its commands and positions and without torques."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.actuators.drive_load import Load
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr

# A pause this many times longer than the median step is a gap: a recorder with jitter misses a step or two, and a
# longer pause may contain a motion that is not recorded.
_GAP = 10.0
# A turn of a servo in other units: degrees have 360, the coarsest encoders 1,000 ticks. A joint that is logged in
# radians and moves over more than this many turns in one run is possible but rare; its goal is in other units.
_TURNS = 20.0
# Largest shift of two clocks in the search [s].
_SHIFT = 0.5
_SAMPLED = ("goal", "position", "velocity", "duty", "supply", "current", "torque_enable", "feedforward")


@short_repr
@dataclass(frozen=True)
class CommandLog:
    """One run of one drive: commands and positions on one clock, the firmware's gains, and the load.

    Args:
        name: Name of the run, for reports and errors.
        time: Time [s], increasing.
        goal: Commanded position [rad]; NaN where the drive had no goal (torque off).
        position: Measured position [rad].
        load: Load that the drive moves.
        velocity: Measured velocity [rad/s]; optional.
        duty: Measured duty, −1 … 1, signed: the share of the supply voltage on the motor.
        supply: Measured supply voltage [V].
        current: Measured current [A], signed.
        torque_enable: False where the drive is switched off; default: always on.
        feedforward: Commanded feed-forward torque [N m].
        kp: Position gain, in the firmware's own units or in N m/rad; NaN where unknown.
        kd: Velocity gain, in the firmware's own units or in N m s/rad; NaN where unknown.
        volts: Nominal supply voltage [V], for drives that do not measure it; NaN where unknown.
        duty_gain: Duty per unit of kp and radian of error, from the firmware's manual; NaN where unknown.
        trajectory: Name of the motion, such as "sin_sin"; "" where unknown.
        labels: Further properties of the run, by name; they may define the left-out groups.
        source: File of the run.
        notes: One sentence for each part of the file that is not used.
    """

    name: str
    time: Array
    goal: Array
    position: Array
    load: Load
    velocity: Array | None = None
    duty: Array | None = None
    supply: Array | None = None
    current: Array | None = None
    torque_enable: NDArray[np.bool_] | None = None
    feedforward: Array | None = None
    kp: float = math.nan
    kd: float = math.nan
    volts: float = math.nan
    duty_gain: float = math.nan
    trajectory: str = ""
    labels: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("time", *_SAMPLED):
            value = getattr(self, name)
            if value is not None:
                kind = bool if name == "torque_enable" else np.float64
                object.__setattr__(self, name, np.ascontiguousarray(value, dtype=kind))

    def __len__(self) -> int:
        return len(self.time)

    @property
    def enabled(self) -> NDArray[np.bool_]:
        """True where the drive was on, for each sample."""
        return np.ones(len(self), bool) if self.torque_enable is None else self.torque_enable

    @property
    def period(self) -> float:
        """Median step of the clock [s]."""
        return float(np.median(np.diff(self.time)))

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0])

    def segments(self) -> list[slice]:
        """Return the stretches between gaps, as slices of samples."""
        steps = np.diff(self.time)
        ends = [0, *(np.flatnonzero(steps > _GAP * np.median(steps)) + 1).tolist(), len(self)]
        return [slice(a, b) for a, b in pairwise(ends) if b - a > 1]

    def label(self, key: str) -> Any:
        """Return the property `key` of the run, such as kp, mass, trajectory or one of `labels`."""
        if key in self.labels:
            return self.labels[key]
        if key in ("mass", "length", "arm_mass", "inertia", "gravity", "rest_angle"):
            return getattr(self.load, key)
        if key in ("kp", "kd", "volts", "duty_gain", "trajectory", "name"):
            return getattr(self, key)
        raise LogError(
            f"Run '{self.name}' has no property '{key}'; known: kp, kd, mass, length, volts, trajectory, name"
            f"{''.join(f', {k}' for k in self.labels)}."
        )

    def part(self, which: slice) -> CommandLog:
        """Return a part of the run.

        Args:
            which: Slice of samples.
        """
        return replace(self, **{k: v[which] for k in ("time", *_SAMPLED) if (v := getattr(self, k)) is not None})

    def checked(self) -> CommandLog:
        """Return the run, or raise a `LogError` of one sentence that names the run, the signal and the remedy."""
        where = f"{self.source}: run '{self.name}'" if self.source else f"Run '{self.name}'"
        self._check_shapes(where)
        self._check_clock(where)
        self._check_goal(where)
        if self.duty is not None and np.nanmax(np.abs(self.duty), initial=0.0) > 1.05:
            raise LogError(
                f"{where} has a duty of {np.nanmax(np.abs(self.duty)):.4g}; give the share of full duty, −1 to 1 "
                "(percent / 100, PWM counts / their limit)."
            )
        if self.supply is not None and not 0.5 < float(np.nanmedian(self.supply)) < 1000.0:
            raise LogError(
                f"{where} has a median supply of {float(np.nanmedian(self.supply)):.4g} V; give it in volts."
            )
        return self

    def _check_shapes(self, where: str) -> None:
        n = len(self.time)
        if self.time.ndim != 1 or n < 20:
            raise LogError(f"{where} has {n} samples; a drive needs 20 or more in a row.")
        for name in _SAMPLED:
            value = getattr(self, name)
            if value is not None and value.shape != (n,):
                raise LogError(
                    f"{where}: {name} has {value.size} samples and the clock {n}; resample both on one clock first."
                )
        for name in ("time", "position"):
            bad = np.flatnonzero(~np.isfinite(getattr(self, name)))
            if len(bad):
                raise LogError(f"{where}: {name} is not a number in sample {bad[0]}; remove or repair that row.")
        bad = np.flatnonzero(~np.isfinite(self.goal) & self.enabled)
        if len(bad):
            raise LogError(
                f"{where}: goal is not a number in sample {bad[0]}, where the drive is on; remove or repair that row, "
                "or give torque_enable."
            )

    def _check_clock(self, where: str) -> None:
        steps = np.diff(self.time)
        bad = np.flatnonzero(steps <= 0.0)
        if len(bad):
            raise LogError(
                f"{where}: time does not increase after sample {bad[0]} ({self.time[bad[0]]:.6g} s); sort the rows, or "
                "split the file into runs by a column 'log'."
            )
        if self.period > 0.5:
            raise LogError(
                f"{where}: the median step is {self.period:.4g} s; time must be in seconds, and a drive needs 10 "
                "samples a second or more."
            )

    def _check_goal(self, where: str) -> None:
        on = self.enabled
        if not on.any():
            return
        goal, position = self.goal[on], self.position[on]
        moved, moves = float(np.std(goal)), float(np.std(position))
        if moved < 1e-9 and moves < 1e-9:
            raise LogError(f"{where}: neither goal nor position moves; record a motion.")
        # The position of a drive follows its goal: a high correlation with a slope far from 1 shows different units.
        if moved > 1e-9 and moves > 1e-9:
            correlation = float(np.corrcoef(goal, position)[0, 1])
            slope = moved / moves
            if abs(correlation) > 0.9 and not 0.1 < slope < 10.0:
                other = "goal" if slope > 1.0 else "position"
                raise LogError(
                    f"{where}: goal moves {slope:.4g} times as much as position along the same curve; {other} "
                    f"looks like {units_of(max(slope, 1.0 / slope) * 2.0 * math.pi)}; give both in radians (--units)."
                )
        if (lead := _lead(self)) > 0.0:
            raise LogError(
                f"{where}: the position moves {lead:.3f} s before its goal does, which no drive can; goal and position "
                "are on two clocks: record both in one loop, or correct the time of one."
            )
        for name, value in (("goal", goal), ("position", position)):
            if np.ptp(value) > 2.0 * math.pi * _TURNS:
                raise LogError(
                    f"{where}: {name} covers {np.ptp(value):.4g}, more than {_TURNS:.0f} turns in radians; it looks "
                    "like degrees or encoder ticks; convert it to radians (option --units)."
                )


def _lead(log: CommandLog) -> float:
    """Time by which the position leads the goal [s]; 0 if it follows, or if the motion does not determine the time."""
    best, at = 0.0, 0.0
    for part in log.segments():
        time = log.time[part]
        step = float(np.median(np.diff(time)))
        grid = np.arange(time[0], time[-1], step)
        on = np.interp(grid, time, log.enabled[part].astype(float)) > 0.99
        goal = np.where(np.isfinite(log.goal[part]), log.goal[part], log.position[part])
        moves = [np.gradient(np.interp(grid, time, x)) * on for x in (goal, log.position[part])]
        most = round(_SHIFT / step)
        if len(grid) < 4 * most or min(float(np.std(x)) for x in moves) < 1e-9:
            continue
        a, b = (x - x.mean() for x in moves)
        norm = float(np.linalg.norm(a) * np.linalg.norm(b))
        n = 1 << int(2 * len(a) - 1).bit_length()
        across = np.fft.irfft(np.fft.rfft(b, n) * np.conj(np.fft.rfft(a, n)), n) / norm
        lags = np.concatenate([np.arange(most + 1), np.arange(-most, 0)])
        values = np.concatenate([across[: most + 1], across[-most:]])
        k = int(np.argmax(values))
        if values[k] > best and values[k] > 0.8:
            best, at = float(values[k]), max(-int(lags[k]) * step, 0.0)
            at = at if at > max(3.0 * step, 0.02) and values[k] > values[0] + 0.05 else 0.0
    return at


def units_of(turn: float) -> str:
    """Name the unit whose number per revolution is about `turn`."""
    # A turn has 360 degrees; the coarsest encoders of servos have 1,000 ticks.
    return "degrees" if turn < 700.0 else "encoder ticks"


def checked_logs(logs: Sequence[CommandLog]) -> tuple[CommandLog, ...]:
    """Check each of the `logs` of one drive; their names must be unique."""
    if not logs:
        raise LogError("The list of runs is empty; give at least one log of goals and positions.")
    names = [log.name for log in logs]
    if len(set(names)) < len(names):
        repeated = next(n for n in names if names.count(n) > 1)
        raise LogError(f"Two runs have the name '{repeated}'; give each run its own name.")
    return tuple(log.checked() for log in logs)
