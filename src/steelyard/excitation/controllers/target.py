"""`MotionTarget`: what a motion is written for: a controller, a driver, a table; and the registry of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.registry import Registry
from steelyard.robot.robot import Robot

# Nobody plays a motion for the first time at full speed.
SPEEDS = (0.25, 0.5, 1.0)
# The way to the first posture: how long it takes, and how fast it may be.
APPROACH_SECONDS, APPROACH_SPEED = 10.0, 0.25  # s, rad/s
_BETWEEN = 10  # places between two points at which the way of a controller is compared with the motion


@dataclass(frozen=True, eq=False)
class Playback:
    """A motion at a share of its speed: the same way, slower, with velocities and accelerations that fit.

    Args:
        robot: what plays it.
        trajectory: the motion at full speed.
        speed: a share, 1.0 for full speed.
        rate: Hz of tables, at full speed; slower ones have as many rows.
    """

    robot: Robot
    trajectory: Trajectory
    speed: float = 1.0
    rate: float = 100.0

    @property
    def duration(self) -> float:
        """s."""
        return self.trajectory.duration / self.speed

    @property
    def percent(self) -> int:
        return round(100.0 * self.speed)

    def times(self, count: int) -> Array:
        """So many equal steps of time (`count`) from the beginning to the end, both included; s."""
        return np.linspace(0.0, self.duration, count + 1)

    def steps(self, rate: float) -> int:
        """How many steps the motion has at `rate` (Hz) of full speed."""
        return max(1, round(self.trajectory.duration * rate))

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations at `t` (s) of this playback."""
        q, dq, ddq = self.trajectory.sample(np.minimum(t * self.speed, self.trajectory.duration))
        return q, self.speed * dq, self.speed**2 * ddq

    def peaks(self) -> tuple[Array, Array, Array | None]:
        """By joint: the largest velocity, acceleration, and torque of the nominal model where there is one."""
        q, dq, ddq = self.sample(self.times(self.steps(max(self.rate, 100.0))))
        tau = Model.nominal(self.robot).torque(q, dq, ddq) if self.robot.has_inertia else None
        velocity, acceleration = (np.max(np.abs(x), axis=0) for x in (dq, ddq))
        return velocity, acceleration, None if tau is None else np.max(np.abs(tau), axis=0)


class MotionTarget(ABC):
    """What a motion is written for. Members enter `MOTION_TARGETS` by name; other packages announce theirs as entry
    points of the group `steelyard.motion_targets`.

    Attributes:
        title: whose format it is.
        rate: points per second of full speed; 0: as the plan has them.
        joints: how many it must have, all of them turning; 0: any.
        plays: how it is played, a sentence or two.
        changes: what the controller makes of it: what will not be played as it was designed.
    """

    title: ClassVar[str]
    rate: ClassVar[float] = 0.0
    joints: ClassVar[int] = 0
    how_to_play: ClassVar[str]
    changes: ClassVar[str]

    @abstractmethod
    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        """The text of every file by its name, which begins with `stem`, of a motion (`playback`)."""

    def check(self, name: str, robot: Robot) -> None:
        """Refuse a `robot` that such a controller does not have; `name` is this target's."""
        turning = all(joint.kind == "revolute" for joint in robot.joints)
        if self.joints and not (turning and robot.dof == self.joints):
            raise ExcitationError(
                f"Programs for {name} are for {self.joints} joints that turn, and robot '{robot.name}' has "
                f"{robot.dof} joints ({', '.join(robot.joint_names)}); choose csv or ros2, or name joints (--joints)."
            )

    def points(self, playback: Playback) -> tuple[Array, tuple[Array, Array, Array]]:
        """The times (s) and the samples of a motion (`playback`) at this target's rate."""
        t = playback.times(playback.steps(self.rate or playback.rate))
        return t, playback.sample(t)

    def path(self, t: Array, samples: tuple[Array, Array, Array], at: Array) -> Array:
        """Where a controller is at times `at` (s) that goes through the `samples` at `t` (s): on straight lines."""
        return np.column_stack([np.interp(at, t, q) for q in samples[0].T])

    def deviation(self, playback: Playback) -> float:
        """How far the way between the points of a motion (`playback`) is from it at most, rad or m."""
        t, samples = self.points(playback)
        at = playback.times(_BETWEEN * (len(t) - 1))
        return float(np.max(np.abs(self.path(t, samples, at) - playback.sample(at)[0])))


MOTION_TARGETS: Registry[MotionTarget] = Registry(
    "controller", ("steelyard.excitation.controllers",), group="steelyard.motion_targets"
)


def decimal_texts(values: Array | Sequence[float], digits: int = 6) -> list[str]:
    """The `values` with so many decimal `digits`, never an exponent and never −0."""
    return [f"{float(x) + 0.0:.{digits}f}" if round(float(x), digits) else f"{0.0:.{digits}f}" for x in values]


def program_name(robot: Robot, most: int) -> str:
    """A name for programs of `robot` that every controller takes: letters, digits and _, at most so many (`most`)."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", robot.name).strip("_") or "robot"
    return (plain if plain[0].isalpha() else f"r_{plain}")[:most].rstrip("_")
