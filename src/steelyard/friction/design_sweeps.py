"""`design_sweeps`: a motion for measuring friction: constant speeds in both directions, symmetric about a posture."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console


# Kozłowski & Dutkiewicz 1996, section 4: 5, 10, 20, …, 100 % of the top speed.
FRACTIONS = (0.05, *(0.1 * k for k in range(1, 11)))


@short_repr
@dataclass(frozen=True, eq=False)
class FrictionExperiment(Outcome):
    """A motion of one joint or drive after the other at constant speeds, in both directions.

    It has `sample(t)` and `duration` like every trajectory, so it can be the reference of `simulate`.

    Attributes:
        robot: Robot.
        motion: Motion of all joints.
        speeds: Speeds by joint or drive [rad/s or m/s].
        dwell: Least duration of each speed [s].
        rate: Sampling rate of motion.csv [Hz].
        on: "joint" or "drive".
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
        """Return positions, velocities and accelerations [rad, m, s] at times `t` [s], each (samples, joints)."""
        return self.motion.sample(t)

    def times(self, rate: float) -> Array:
        """Return the sample times [s] at `rate` [Hz]."""
        return np.arange(int(np.floor(self.duration * rate + 1e-9)) + 1) / rate

    def to_csv(self, rate: float | None = None) -> str:
        """Write columns t, q_…, dq_…, ddq_… of every joint, one row per sample, at `rate` [Hz]."""
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

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say

        coordinates = Coordinates.of(self.robot, self.on)
        for name, speeds in self.speeds.items():
            unit = "rad" if coordinates.each[coordinates.index(name)].revolute else "m"
            say(out, f"{name}: {len(speeds)} speeds from {speeds[0]:.3g} to {speeds[-1]:.3g} {unit}/s")
        where = f" Written to {folder}: motion.csv, result.json" if folder else ""
        say(out, f"{self.duration:.0f} s in total.{where}")


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
    """Design sweeps of one joint after the other, at fractions of the top speed that its limits allow.

    Args:
        robot: Robot, as `load_robot` takes it.
        joints: Names of the joints, or of the motors if `on` is "drive"; default: all.
        on: "joint": joints move one at a time; "drive": motors move one at a time, with all joints that each drives.
        posture: Centre of all sweeps [rad or m]; default: the centre of the position limits. If the gravity torque is
            odd about it, as for a link in its vertical posture, gravity cancels in every sweep.
        fractions: Speeds relative to the speed limit, or to the highest speed whose ramps and dwell fit into the
            position limits.
        dwell: Least duration of each speed [s].
        rate: Sampling rate of motion.csv [Hz].
        limits: As for `excite`: q, dq, ddq, jerk.
    """
    robot = as_robot(robot)
    if not dwell > 0.0:
        raise SteelyardError(f"The dwell is {dwell:g} s; give a positive time.")
    if not fractions or not all(0.0 < f <= 1.0 for f in fractions):
        raise SteelyardError("The fractions of the top speed must be above 0 and at most 1.")
    bounds = limits_from(robot, limits)
    middle = bounds.middle if posture is None else np.asarray(posture, dtype=float)
    if middle.shape != (robot.dof,):
        raise SteelyardError(f"The posture has shape {middle.shape}; '{robot.name}' has {robot.dof} joints.")
    coordinates = Coordinates.of(robot, on)
    moves: list[Move] = []
    speeds: dict[str, Array] = {}
    for k in [coordinates.index(name) for name in joints] or range(len(coordinates.each)):
        name = coordinates.names[k]
        single = _SingleMotion.of(coordinates.direction(k), middle, bounds)
        if not single.room > 0.0:
            raise SteelyardError(f"'{name}' cannot move about the posture {middle}; choose another posture.")
        top = single.fastest(dwell)
        speeds[name] = np.array([f * top for f in fractions])
        moves += single.sweeps(middle, bounds, speeds[name], dwell)
    program = Program(tuple(middle), tuple(moves))
    allowed = MotionLimits(bounds.lower, bounds.upper, bounds.dq, bounds.ddq, bounds.jerk)
    return FrictionExperiment(robot, interpolate(robot, program, allowed), speeds, dwell, rate, on)


@dataclass(frozen=True, eq=False)
class _SingleMotion:
    """Motion of one joint or drive: direction in joint space, and the strictest limits of the joints along it."""

    direction: Array
    room: float
    speed: float
    acceleration: float
    jerk: float

    @classmethod
    def of(cls, direction: Array, middle: Array, bounds: Limits) -> _SingleMotion:
        moved = np.abs(direction) > 1e-12
        room = np.minimum(middle - bounds.lower, bounds.upper - middle)
        each = (room, bounds.dq, bounds.ddq, bounds.jerk)
        return cls(direction, *(float(np.min(x[moved] / np.abs(direction[moved]))) for x in each))

    def ramp(self, speed: float) -> float:
        """Return the distance of accelerating to a speed: half the speed times the duration."""
        if speed * self.jerk < self.acceleration**2:
            return float(speed * np.sqrt(speed / self.jerk))
        return 0.5 * speed * (speed / self.acceleration + self.acceleration / self.jerk)

    def half_distance(self, speed: float, dwell: float) -> float:
        return self.ramp(speed) + 0.5 * speed * dwell

    def fastest(self, dwell: float) -> float:
        """Return the speed limit, or the speed whose two ramps and dwell just fit into twice the room."""
        low, high = 0.0, self.speed
        if self.half_distance(high, dwell) <= self.room:
            return high
        for _ in range(60):
            half = 0.5 * (low + high)
            low, high = (half, high) if self.half_distance(half, dwell) <= self.room else (low, half)
        return low

    def sweeps(self, middle: Array, bounds: Limits, speeds: Array, dwell: float) -> list[Move]:
        """Move from the middle to one end, to the other and back at every speed; then to the middle."""
        moves: list[Move] = []
        # All joints move in proportion, so a fraction of the speed limit of the slowest joint applies to all.
        for speed in speeds:
            reach = self.half_distance(float(speed), dwell)
            for end in (-reach, reach, -reach):
                # Rounding must not move the end of a sweep beyond a limit.
                target = np.clip(middle + end * self.direction, bounds.lower, bounds.upper)
                moves.append(JointMove(tuple(target), speed=min(float(speed / self.speed), 1.0)))
        return [*moves, JointMove(tuple(middle), speed=float(max(speeds) / self.speed) if len(speeds) else 1.0)]
