"""`Coordinates`: coordinates for measuring friction: joints, or drives that may move several joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion

FrictionSide = Literal["joint", "drive"]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The joints or drives of a robot.

    Attributes:
        robot: Robot.
        on: "joint", or "drive": u = A q, the outputs of the gears.
        each: The coordinates, in order.
    """

    robot: Robot
    on: FrictionSide
    each: tuple[Coordinate, ...]

    @classmethod
    def of(cls, robot: Robot, on: FrictionSide = "joint") -> Coordinates:
        """Return the joints or drives of a robot.

        Args:
            robot: Robot.
            on: "joint" or "drive".
        """
        if on not in ("joint", "drive"):
            raise SteelyardError(f"Friction is measured on a joint or on a drive, not on '{on}'.")
        if on == "joint":
            names: Sequence[str] = robot.joint_names
        elif robot.transmission is None:
            raise SteelyardError(
                f"'{robot.name}' has no transmission, so its drives are its joints; omit --on drive "
                "(in Python: on='drive')."
            )
        else:
            names = robot.transmission.motors
            if len(names) != robot.dof:
                raise SteelyardError(
                    f"'{robot.name}' has {len(names)} motors for {robot.dof} joints, so joint torques do not determine "
                    "the torques of the drives; measure friction on the joints."
                )
        return cls(robot, on, tuple(Coordinate(robot, on, name, k) for k, name in enumerate(names)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.each)

    def index(self, name: str) -> int:
        """Return the index of the coordinate `name`."""
        if name not in self.names:
            raise UnknownNameError("joint" if self.on == "joint" else "motor", name, self.names)
        return self.names.index(name)

    def kind(self, k: int) -> str:
        """Return the type of coordinate `k`: "revolute" or "prismatic"."""
        return "revolute" if self.each[k].revolute else "prismatic"

    def effort_unit(self, k: int) -> str:
        """Return the unit of the friction of coordinate `k`: N m or N."""
        return "N m" if self.each[k].revolute else "N"

    def of_joints(self, q: Array) -> Array:
        """Convert joint positions, velocities or accelerations `q`, shape (samples, joints), to the coordinates."""
        return np.asarray(q @ np.array([c.weights for c in self.each]).T)

    def torques(self, tau: Array) -> Array:
        """Convert joint torques `tau` [N m or N], shape (samples, joints), to the coordinates."""
        return (
            np.stack([np.asarray(c.torque((), list(tau.T))) for c in self.each], axis=1) if self.on == "drive" else tau
        )

    def joints(self, u: Array) -> Array:
        """Convert coordinates `u`, shape (samples, coordinates), to joint positions [rad or m]."""
        return u if self.on == "joint" or self.robot.transmission is None else self.robot.transmission.joint(u)

    def direction(self, k: int) -> Array:
        """Return the joint motion, shape (joints,), for a unit motion of coordinate `k` alone."""
        return np.asarray(self.joints(np.eye(len(self.each))[k]))

    def log(self, log: Log) -> Log:
        """Convert a `log` of joints to these coordinates."""
        return log if self.on == "joint" else replace(log, joints=self.names, **self._signals(log))

    def motion(self, motion: Motion) -> Motion:
        """Convert a prepared `motion` of joints to these coordinates."""
        return motion if self.on == "joint" else replace(motion, **self._signals(motion))

    def _signals(self, source: Any) -> dict[str, Any]:
        out: dict[str, Any] = {
            k: self.of_joints(x) for k in ("q", "dq", "ddq") if (x := getattr(source, k)) is not None
        }
        return out if source.tau is None else out | {"tau": self.torques(source.tau)}
