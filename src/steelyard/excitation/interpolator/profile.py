"""The fastest motion from 0 to 1, at rest at both ends: trapezoids of velocity, and S-curves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ProgramError, ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class ToolLimits:
    """Limits of the tool along lines and circles; each move has its own speed.

    Attributes:
        acceleration: [m/s²].
        jerk: [m/s³].
        turn_speed: [rad/s].
        turn_acceleration: [rad/s²].
        turn_jerk: [rad/s³].
    """

    acceleration: float = 3.0
    jerk: float = 30.0
    turn_speed: float = 2.0
    turn_acceleration: float = 6.0
    turn_jerk: float = 60.0


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of every joint, shape (joints,), and of the tool.

    Attributes:
        lower: Lower position limits [rad, m].
        upper: Upper position limits [rad, m].
        velocity: [rad/s, m/s].
        acceleration: [rad/s², m/s²].
        jerk: [rad/s³, m/s³]; infinite: trapezoidal velocities, finite: S-curves.
        tool: Limits of the tool.
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
        """Return limits with the positions of the robot's description.

        Args:
            robot: The robot.
            acceleration: One number or one per joint [rad/s², m/s²].
            velocity: One number or one per joint [rad/s, m/s]; None: the description's.
            jerk: One number or one per joint [rad/s³, m/s³].
            tool: Limits of moves along lines and arcs.
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
    array = np.asarray(values, dtype=float)
    if array.shape not in ((), (robot.dof,)):
        raise ShapeError(f"The limits of {name} have shape {array.shape}; expected one number or ({robot.dof},).")
    row = np.broadcast_to(array, (robot.dof,))
    for joint, value in zip(robot.joint_names, row, strict=True):
        if not value > 0.0 or (np.isinf(value) and name != "jerk"):
            kind = "positive" if name == "jerk" else "positive, finite"
            raise ProgramError(f"Joint '{joint}' has a limit of {name} of {value}; give a {kind} one.")
    return frozen(row)


@dataclass(frozen=True)
class Ramp:
    """Bounds of acceleration [1/s²] and jerk [1/s³] of a ramp; an infinite jerk gives a linear ramp of velocity."""

    acceleration: float
    jerk: float = np.inf

    def rise(self, velocity: float) -> float:
        """Return the time [s] in which the acceleration rises (and then falls) on a ramp to `velocity`."""
        return float(min(self.acceleration / self.jerk, self.time(velocity) / 2.0))

    def time(self, velocity: float) -> float:
        """Return the time from rest to `velocity` [s]; the mean velocity is half of it."""
        if velocity * self.jerk < self.acceleration**2:  # the full acceleration is not reached
            return 2.0 * float(np.sqrt(velocity / self.jerk))
        return velocity / self.acceleration + self.acceleration / self.jerk

    def soften(self, factor: float) -> Ramp:
        """Return the same ramp, `factor` times slower."""
        return Ramp(self.acceleration / factor**2, self.jerk / factor**3)


@dataclass(frozen=True, eq=False)
class Profile:
    """s(t) from 0 to 1 as polynomial pieces.

    Attributes:
        breaks: Ends of the pieces [s].
        table: Coefficients of powers of u, 0 to 1 per piece, shape (pieces, 4).
        speeding: Duration of the first ramp [s].
        slowing: Duration of the last ramp [s].
    """

    breaks: Array
    table: Array
    speeding: float
    slowing: float

    @property
    def duration(self) -> float:
        return float(self.breaks[-1])


def profile(velocity: float, up: Ramp, down: Ramp | None = None) -> Profile:
    """Compute the fastest profile over the distance 1 (Biagiotti & Melchiorri 2008, chapter 3).

    Args:
        velocity: Largest velocity [1/s].
        up: Bounds while speeding up.
        down: Bounds while slowing down; None: the same.
    """
    down = up if down is None else down
    peak = _peak(velocity, up, down)
    speeding, slowing = up.time(peak), down.time(peak)
    cruise = max(0.0, 1.0 / peak - (speeding + slowing) / 2.0)
    phases = [*_phases(peak, up), (cruise, 0.0, 0.0), *((h, -a, -j) for h, a, j in reversed(_phases(peak, down, True)))]
    return _integrate(phases, speeding, slowing)


def _peak(velocity: float, up: Ramp, down: Ramp) -> float:
    """Return the peak velocity: the bound, or the velocity at which the ramps alone cover the distance."""
    from scipy.optimize import brentq

    def excess_distance(v: float) -> float:
        return v * (up.time(v) + down.time(v)) / 2.0 - 1.0

    if excess_distance(velocity) <= 0.0:
        return velocity
    return float(brentq(excess_distance, 0.0, velocity, xtol=1e-15 * velocity, rtol=1e-15))


def _phases(velocity: float, ramp: Ramp, mirrored: bool = False) -> list[tuple[float, float, float]]:
    """Return (length, initial acceleration, jerk) of the phases from rest to a velocity; mirrored: in reverse time."""
    time, rise = ramp.time(velocity), ramp.rise(velocity)
    if rise == 0.0:
        return [(time, velocity / time, 0.0)]
    top = velocity / (time - rise)
    jerk = top / rise
    if mirrored:  # in reverse time, a phase starts with the acceleration of its other end
        return [(rise, top, -jerk), (time - 2.0 * rise, top, 0.0), (rise, 0.0, jerk)]
    return [(rise, 0.0, jerk), (time - 2.0 * rise, top, 0.0), (rise, top, -jerk)]


def _integrate(phases: list[tuple[float, float, float]], speeding: float, slowing: float) -> Profile:
    s, v = 0.0, 0.0
    breaks, rows = [0.0], []
    for h, a, j in phases:
        # Skip phases whose length is zero up to rounding.
        if h <= 1e-12 * (speeding + slowing):
            continue
        rows.append([s, v * h, a * h * h / 2.0, j * h**3 / 6.0])
        s, v = sum(rows[-1]), v + a * h + j * h * h / 2.0
        breaks.append(breaks[-1] + h)
    return Profile(np.array(breaks), np.array(rows) / s, speeding, slowing)
