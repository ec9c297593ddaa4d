"""`Coordinates`: where friction is looked for, at the joints or at the drives, whose motions joints may share."""

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
    """The joints of a robot (`on` "joint"), or its drives ("drive": u = A q, the outputs of the gears), in order."""

    robot: Robot
    on: FrictionSide
    each: tuple[Coordinate, ...]

    @classmethod
    def of(cls, robot: Robot, on: FrictionSide = "joint") -> Coordinates:
        """Those of `robot`, `on` "joint" or "drive"."""
        if on not in ("joint", "drive"):
            raise SteelyardError(f"Friction is measured on a joint or on a drive, not on '{on}'.")
        if on == "joint":
            names: Sequence[str] = robot.joint_names
        elif robot.transmission is None:
            raise SteelyardError(
                f"'{robot.name}' has no transmission: its drives are its joints; leave out --on drive "
                "(in Python: on='drive')."
            )
        else:
            names = robot.transmission.motors
            if len(names) != robot.dof:
                raise SteelyardError(
                    f"'{robot.name}' has {len(names)} motors for {robot.dof} joints, so that joint torques do not tell "
                    "those of the drives; measure friction on the joints."
                )
        return cls(robot, on, tuple(Coordinate(robot, on, name, k) for k, name in enumerate(names)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.each)

    def index(self, name: str) -> int:
        """The number, from 0, of the one called `name`."""
        if name not in self.names:
            raise UnknownNameError("joint" if self.on == "joint" else "motor", name, self.names)
        return self.names.index(name)

    def kind(self, k: int) -> str:
        """ "revolute" or "prismatic", of number `k`."""
        return "revolute" if self.each[k].revolute else "prismatic"

    def effort_unit(self, k: int) -> str:
        """The unit of the friction of number `k`: N m or N."""
        return "N m" if self.each[k].revolute else "N"

    def of_joints(self, q: Array) -> Array:
        """Positions, velocities or accelerations of joints, `q` `(samples, joints)`, as those of the coordinates."""
        return np.asarray(q @ np.array([c.weights for c in self.each]).T)

    def torques(self, tau: Array) -> Array:
        """Joint torques `tau` `(samples, joints)` (N m, N) as those at the coordinates."""
        return (
            np.stack([np.asarray(c.torque((), list(tau.T))) for c in self.each], axis=1) if self.on == "drive" else tau
        )

    def joints(self, u: Array) -> Array:
        """Joint positions (rad, m) of coordinates `u`, `(samples, coordinates)`."""
        return u if self.on == "joint" or self.robot.transmission is None else self.robot.transmission.joint(u)

    def way(self, k: int) -> Array:
        """How the joints move, `(joints,)`, while coordinate `k` moves by one and the others stand."""
        return np.asarray(self.joints(np.eye(len(self.each))[k]))

    def log(self, log: Log) -> Log:
        """A `log` of these coordinates."""
        return log if self.on == "joint" else replace(log, joints=self.names, **self._signals(log))

    def motion(self, motion: Motion) -> Motion:
        """A prepared `motion` of these coordinates."""
        return motion if self.on == "joint" else replace(motion, **self._signals(motion))

    def _signals(self, source: Any) -> dict[str, Any]:
        out: dict[str, Any] = {
            k: self.of_joints(x) for k in ("q", "dq", "ddq") if (x := getattr(source, k)) is not None
        }
        return out if source.tau is None else out | {"tau": self.torques(source.tau)}
