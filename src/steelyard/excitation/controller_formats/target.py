"""`MotionTarget`: a file format for motions (of a controller, driver or table), and the registry of all targets."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot

# A motion is played slowly first.
SPEEDS = (0.25, 0.5, 1.0)
# Duration and largest speed of the approach to the first posture.
APPROACH_SECONDS, APPROACH_SPEED = 10.0, 0.25  # s, rad/s
_BETWEEN = 10  # comparisons of a controller's path with the motion between two points


@short_repr
@dataclass(frozen=True, eq=False)
class Playback:
    """A motion at a share of its speed: the same path, slower, with matching velocities and accelerations.

    Args:
        robot: The robot.
        trajectory: The motion at full speed.
        speed: Share of full speed.
        rate: Rows per second of tables at full speed [Hz]; slower playbacks have the same number of rows.
    """

    robot: Robot
    trajectory: Trajectory
    speed: float = 1.0
    rate: float = 100.0

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.trajectory.duration / self.speed

    @property
    def percent(self) -> int:
        return round(100.0 * self.speed)

    def times(self, count: int) -> Array:
        """Return `count` + 1 evenly spaced times from the beginning to the end [s]."""
        return np.linspace(0.0, self.duration, count + 1)

    def steps(self, rate: float) -> int:
        """Return the number of steps of the motion at `rate` [Hz] of full speed."""
        return max(1, round(self.trajectory.duration * rate))

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations at times `t` [s] of this playback."""
        q, dq, ddq = self.trajectory.sample(np.minimum(t * self.speed, self.trajectory.duration))
        return q, self.speed * dq, self.speed**2 * ddq

    def peaks(self) -> tuple[Array, Array, Array | None]:
        """Return by joint the largest velocity, acceleration, and nominal torque (None without inertias)."""
        q, dq, ddq = self.sample(self.times(self.steps(max(self.rate, 100.0))))
        tau = Model.nominal(self.robot).torque(q, dq, ddq) if self.robot.has_inertia else None
        velocity, acceleration = (np.max(np.abs(x), axis=0) for x in (dq, ddq))
        return velocity, acceleration, None if tau is None else np.max(np.abs(tau), axis=0)


class MotionTarget(ABC):
    """A file format for motions.

    Members enter `MOTION_TARGETS` by name; other packages register theirs as entry points of the group
    `steelyard.motion_targets`.

    Attributes:
        title: Owner of the format.
        rate: Points per second of full speed [Hz]; 0: that of the plan.
        joints: Required number of joints, all revolute; 0: any.
        how_to_play: Instructions, a sentence or two.
        changes: Deviations of the controller from the designed motion.
    """

    title: ClassVar[str]
    rate: ClassVar[float] = 0.0
    joints: ClassVar[int] = 0
    how_to_play: ClassVar[str]
    changes: ClassVar[str]

    @abstractmethod
    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        """Return the text of every file by its name.

        Args:
            playback: The motion.
            stem: Beginning of the names of the files.
        """

    def check(self, name: str, robot: Robot) -> None:
        """Refuse a robot that this controller cannot move.

        Args:
            name: Name of this target.
            robot: The robot.
        """
        turning = all(joint.kind == "revolute" for joint in robot.joints)
        if self.joints and not (turning and robot.dof == self.joints):
            raise ExcitationError(
                f"Programs for {name} need {self.joints} joints, all revolute, and robot '{robot.name}' has "
                f"{robot.dof} joints ({', '.join(robot.joint_names)}); choose csv or ros2, or name joints (--joints)."
            )

    def points(self, playback: Playback) -> tuple[Array, tuple[Array, Array, Array]]:
        """Return the times [s] and the samples of a `playback` at this target's rate."""
        t = playback.times(playback.steps(self.rate or playback.rate))
        return t, playback.sample(t)

    def path(self, t: Array, samples: tuple[Array, Array, Array], at: Array) -> Array:
        """Return the positions of a controller that moves through the samples, here on straight lines.

        Args:
            t: Times of the samples [s].
            samples: Positions, velocities and accelerations.
            at: Times of the positions [s].
        """
        return np.column_stack([np.interp(at, t, q) for q in samples[0].T])

    def deviation(self, playback: Playback) -> float:
        """Return the largest deviation of the controller's path from a `playback` between its points [rad, m]."""
        t, samples = self.points(playback)
        at = playback.times(_BETWEEN * (len(t) - 1))
        return float(np.max(np.abs(self.path(t, samples, at) - playback.sample(at)[0])))


MOTION_TARGETS: Registry[MotionTarget] = Registry(
    "controller", ("steelyard.excitation.controller_formats",), group="steelyard.motion_targets"
)


def decimal_texts(values: Array | Sequence[float], digits: int = 6) -> list[str]:
    """Format numbers without exponents and without −0.

    Args:
        values: The numbers.
        digits: Number of decimals.
    """
    return [f"{float(x) + 0.0:.{digits}f}" if round(float(x), digits) else f"{0.0:.{digits}f}" for x in values]


def program_name(robot: Robot, length: int) -> str:
    """Return a program name that every controller accepts: letters, digits and _.

    Args:
        robot: The robot.
        length: Largest number of characters.
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", robot.name).strip("_") or "robot"
    return (plain if plain[0].isalpha() else f"r_{plain}")[:length].rstrip("_")
