"""The quickest way from 0 to 1 and rest to rest: trapezoids of velocity, and S-curves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class ToolLimits:
    """Acceleration and jerk of the tool along lines and circles (m/s², m/s³) and of its turning (rad/s, …).

    The speed along the path is each move's own.
    """

    acceleration: float = 3.0
    jerk: float = 30.0
    turn_speed: float = 2.0
    turn_acceleration: float = 6.0
    turn_jerk: float = 60.0


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Bounds of every joint `(joints,)`: position (rad or m), velocity, acceleration and jerk.

    An infinite jerk gives trapezoidal profiles, a finite one S-curves.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    tool: ToolLimits = field(default_factory=ToolLimits)

    @staticmethod
    def of(
        robot: Robot,
        acceleration: ArrayLike,
        velocity: ArrayLike | None = None,
        jerk: ArrayLike = np.inf,
        tool: ToolLimits | None = None,
    ) -> MotionLimits:
        """Positions as the description of `robot` has them; `velocity` too where it is None (rad/s, m/s).

        `acceleration` (per s²) and `jerk` (per s³) are one number or one per joint; `tool` bounds moves along lines and
        arcs.
        """
        own = [joint.velocity for joint in robot.joints]
        return MotionLimits(
            frozen([joint.lower for joint in robot.joints]),
            frozen([joint.upper for joint in robot.joints]),
            _row(robot, "velocity", own if velocity is None else velocity),
            _row(robot, "acceleration", acceleration),
            _row(robot, "jerk", jerk),
            tool or ToolLimits(),
        )


def _row(robot: Robot, name: str, values: ArrayLike) -> Array:
    given = np.asarray(values, dtype=float)
    if given.shape not in ((), (robot.dof,)):
        raise ShapeError(f"The limits of {name} have shape {given.shape}; expected one number or ({robot.dof},).")
    row = np.broadcast_to(given, (robot.dof,))
    for joint, value in zip(robot.joint_names, row, strict=True):
        if not value > 0.0 or (np.isinf(value) and name != "jerk"):
            wanted = "positive" if name == "jerk" else "positive, finite"
            raise ProgramError(f"Joint '{joint}' has a limit of {name} of {value}; a profile needs a {wanted} one.")
    return frozen(row)


@dataclass(frozen=True)
class Ramp:
    """Bounds while speeding up or slowing down (per s², per s³); an infinite jerk gives a straight ramp of velocity."""

    acceleration: float
    jerk: float = np.inf

    def rise(self, velocity: float) -> float:
        """How long (s) the acceleration rises, and as long falls, on the way to a `velocity`."""
        return float(min(self.acceleration / self.jerk, self.time(velocity) / 2.0))

    def time(self, velocity: float) -> float:
        """How long (s) it takes from rest to a `velocity`; on average it goes half as quick."""
        if velocity * self.jerk < self.acceleration**2:  # the full acceleration is not reached
            return 2.0 * float(np.sqrt(velocity / self.jerk))
        return velocity / self.acceleration + self.acceleration / self.jerk

    def soften(self, factor: float) -> Ramp:
        """The same ramp, `factor` times slower."""
        return Ramp(self.acceleration / factor**2, self.jerk / factor**3)


@dataclass(frozen=True, eq=False)
class Profile:
    """s(t) from 0 to 1 as polynomial pieces: `breaks` (s) and `table` (pieces, 4) of powers of u, 0 to 1 per piece.

    `speeding` and `slowing` are the durations of its ramps.
    """

    breaks: Array
    table: Array
    speeding: float
    slowing: float

    @property
    def duration(self) -> float:
        return float(self.breaks[-1])


def profile(velocity: float, up: Ramp, down: Ramp | None = None) -> Profile:
    """The quickest profile over the distance 1 (Biagiotti & Melchiorri 2008, chapter 3). `velocity` (1/s) is the
    greatest; `up` bounds speeding up, `down` slowing down (None: the same)."""
    down = up if down is None else down
    peak = _peak(velocity, up, down)
    speeding, slowing = up.time(peak), down.time(peak)
    cruise = max(0.0, 1.0 / peak - (speeding + slowing) / 2.0)
    phases = [*_phases(peak, up), (cruise, 0.0, 0.0), *((h, -a, -j) for h, a, j in reversed(_phases(peak, down, True)))]
    return _integrate(phases, speeding, slowing)


def _peak(velocity: float, up: Ramp, down: Ramp) -> float:
    """The velocity that is reached: the bound, or where the ramps alone cover the distance."""
    from scipy.optimize import brentq

    def covered(v: float) -> float:
        return v * (up.time(v) + down.time(v)) / 2.0 - 1.0

    if covered(velocity) <= 0.0:
        return velocity
    return float(brentq(covered, 0.0, velocity, xtol=1e-15 * velocity, rtol=1e-15))


def _phases(velocity: float, ramp: Ramp, mirrored: bool = False) -> list[tuple[float, float, float]]:
    """(length, acceleration at its start, jerk) of the phases from rest to a velocity; mirrored: as seen backwards."""
    time, rise = ramp.time(velocity), ramp.rise(velocity)
    if rise == 0.0:
        return [(time, velocity / time, 0.0)]
    top = velocity / (time - rise)
    jerk = top / rise
    if mirrored:  # Phases of slowing down are those of speeding up run backwards: accelerations at the other end.
        return [(rise, top, -jerk), (time - 2.0 * rise, top, 0.0), (rise, 0.0, jerk)]
    return [(rise, 0.0, jerk), (time - 2.0 * rise, top, 0.0), (rise, top, -jerk)]


def _integrate(phases: list[tuple[float, float, float]], speeding: float, slowing: float) -> Profile:
    s, v = 0.0, 0.0
    breaks, rows = [0.0], []
    for h, a, j in phases:
        # Phases of no length (or of what rounding leaves of it) are left out.
        if h <= 1e-12 * (speeding + slowing):
            continue
        rows.append([s, v * h, a * h * h / 2.0, j * h**3 / 6.0])
        s, v = sum(rows[-1]), v + a * h + j * h * h / 2.0
        breaks.append(breaks[-1] + h)
    return Profile(np.array(breaks), np.array(rows) / s, speeding, slowing)
