"""`design_sweeps`: the motion that shows friction: constant speeds, both directions, symmetric about a posture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SteelyardError
from steelyard.excitation.constraints.limits import Limits, limits_from
from steelyard.excitation.interpolator import JointMove, MotionLimits, Move, Program, ProgramMotion, interpolate
from steelyard.excitation.trajectories.trajectory import motion_rows
from steelyard.friction.coordinates import Coordinates, FrictionSide
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Outcome
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console


# Kozłowski & Dutkiewicz 1996, section 4: 5, 10, 20, …, 100 % of the greatest speed.
FRACTIONS = (0.05, *(0.1 * k for k in range(1, 11)))


@dataclass(frozen=True, eq=False)
class FrictionExperiment(Outcome):
    """A motion that plays one joint (or drive: `on`) after the other at constant `speeds` (rad/s, m/s), there and back.

    `dwell` is how long each speed lasts at least, s; `rate` (Hz) is that of motion.csv. It has `sample(t)`
    and `duration` like every trajectory, and can be given to `simulate` as reference.
    """

    robot: Robot
    motion: ProgramMotion
    speeds: dict[str, Array]
    dwell: float
    rate: float = 100.0
    on: FrictionSide = "joint"

    @property
    def duration(self) -> float:
        return self.motion.duration

    def sample(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇, q̈ (rad, m, s) at times `t` (s), each `(samples, joints)`."""
        return self.motion.sample(t)

    def times(self, rate: float) -> Array:
        return np.arange(int(np.floor(self.duration * rate + 1e-9)) + 1) / rate

    def to_csv(self, rate: float | None = None) -> str:
        """Columns t, q_…, dq_…, ddq_… of every joint, a row per sample; `rate` in Hz."""
        t = self.times(rate or self.rate)
        return csv_text(motion_rows(self.robot.joint_names, t, *self.sample(t)))

    def to_json(self) -> dict[str, Any]:
        return {
            "robot": self.robot.name,
            "duration": self.duration,
            "dwell": self.dwell,
            "on": self.on,
            "speeds": {name: v.tolist() for name, v in self.speeds.items()},
        }

    def files(self) -> dict[str, Content]:
        return {"motion.csv": self.to_csv()}

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        places = Coordinates.of(self.robot, self.on)
        for name, speeds in self.speeds.items():
            unit = "rad" if places.each[places.index(name)].revolute else "m"
            say(out, f"{name}: {len(speeds)} speeds from {speeds[0]:.3g} to {speeds[-1]:.3g} {unit}/s")
        where = f" Written to {folder}: motion.csv, result.json" if folder else ""
        say(out, f"{self.duration:.0f} s in all.{where}")


def design_sweeps(
    robot: RobotLike,
    joints: Sequence[str] = (),
    *,
    on: FrictionSide = "joint",
    posture: ArrayLike | None = None,
    fractions: Sequence[float] = FRACTIONS,
    dwell: float = 0.5,
    rate: float = 100.0,
    limits: dict[str, Any] | Limits | None = None,
) -> FrictionExperiment:
    """Sweeps of each of `joints` (default: all) at fractions of the greatest speed that its limits leave room for.

    Args:
        robot: whose joints move, one at a time, the others standing at `posture`.
        on: "joint", or "drive": motors turn one at a time while the others stand, and with them whatever joints each
            moves; `joints` are then names of motors.
        posture: the middle of all sweeps; default: that of the position limits. With the joint's gravity torque odd
            about it (a link about its vertical posture), gravity averages out of every sweep by itself.
        fractions: of the speed limit, or of the fastest speed whose ramps and `dwell` fit in the position limits.
        dwell: seconds at each speed at least.
        rate: samples a second of the written motion.csv, Hz.
        limits: as for `excite`: q, dq, ddq, jerk.
    """
    robot = as_robot(robot)
    if not dwell > 0.0:
        raise SteelyardError(f"A dwell of {dwell:g} s is no constant speed; give a positive time.")
    if not fractions or not all(0.0 < f <= 1.0 for f in fractions):
        raise SteelyardError("The fractions of the greatest speed lie above 0 and not beyond 1.")
    bounds = limits_from(robot, limits)
    middle = bounds.middle if posture is None else np.asarray(posture, dtype=float)
    if middle.shape != (robot.dof,):
        raise SteelyardError(f"The posture has shape {middle.shape}; '{robot.name}' has {robot.dof} joints.")
    places = Coordinates.of(robot, on)
    moves: list[Move] = []
    speeds: dict[str, Array] = {}
    for k in [places.index(name) for name in joints] or range(len(places.each)):
        name = places.names[k]
        alone = _Alone.of(places.way(k), middle, bounds)
        if not alone.room > 0.0:
            raise SteelyardError(f"'{name}' has no room about the posture {middle}; choose another.")
        top = alone.fastest(dwell)
        speeds[name] = np.array([f * top for f in fractions])
        moves += alone.sweeps(middle, bounds, speeds[name], dwell)
    program = Program(tuple(middle), tuple(moves))
    allowed = MotionLimits(bounds.lower, bounds.upper, bounds.dq, bounds.ddq, bounds.jerk)
    return FrictionExperiment(robot, interpolate(robot, program, allowed), speeds, dwell, rate, on)


@dataclass(frozen=True, eq=False)
class _Alone:
    """A joint or drive that moves while the others stand: the joints go along `way`, and the narrowest of their limits
    (positions about the posture, velocity, acceleration, jerk) are its own."""

    way: Array
    room: float
    speed: float
    acceleration: float
    jerk: float

    @classmethod
    def of(cls, way: Array, middle: Array, bounds: Limits) -> _Alone:
        moved = np.abs(way) > 1e-12
        room = np.minimum(middle - bounds.lower, bounds.upper - middle)
        each = (room, bounds.dq, bounds.ddq, bounds.jerk)
        return cls(way, *(float(np.min(x[moved] / np.abs(way[moved]))) for x in each))

    def ramp(self, speed: float) -> float:
        """The way of speeding up to a speed: half of it times how long it takes."""
        if speed * self.jerk < self.acceleration**2:
            return float(speed * np.sqrt(speed / self.jerk))
        return 0.5 * speed * (speed / self.acceleration + self.acceleration / self.jerk)

    def half_way(self, speed: float, dwell: float) -> float:
        return self.ramp(speed) + 0.5 * speed * dwell

    def fastest(self, dwell: float) -> float:
        """The speed limit, or the speed whose two ramps and dwell just fit in twice the room."""
        low, high = 0.0, self.speed
        if self.half_way(high, dwell) <= self.room:
            return high
        for _ in range(60):
            half = 0.5 * (low + high)
            low, high = (half, high) if self.half_way(half, dwell) <= self.room else (low, half)
        return low

    def sweeps(self, middle: Array, bounds: Limits, speeds: Array, dwell: float) -> list[Move]:
        """From the middle to one end, to the other and back at every speed; then to the middle again."""
        moves: list[Move] = []
        # Joints go straight and together: a part of the speed limit of the slowest of them is one of all.
        for speed in speeds:
            reach = self.half_way(float(speed), dwell)
            for end in (-reach, reach, -reach):
                # Rounding must not carry the end of a sweep beyond a limit that it touches.
                target = np.clip(middle + end * self.way, bounds.lower, bounds.upper)
                moves.append(JointMove(tuple(target), speed=min(float(speed / self.speed), 1.0)))
        return [*moves, JointMove(tuple(middle), speed=float(max(speeds) / self.speed) if len(speeds) else 1.0)]
