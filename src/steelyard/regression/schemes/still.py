"""Known friction, and standstill, where static friction is undetermined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.robot.robot import Robot

Curve = Callable[[Array], Array]
Curves = Mapping[str, Curve] | Sequence[Curve | None]

# Below this speed [rad/s, m/s] the direction of a measured motion is uncertain, or friction holds the joint: about
# 1°/s, twice the default smoothing of dry friction.
STILL = {"revolute": 0.02, "prismatic": 0.002}


@dataclass(frozen=True, eq=False)
class KnownFriction:
    """Friction that was measured before, of joints or drives: velocities [rad/s, m/s] → torques [N m, N]."""

    curves: tuple[tuple[Coordinate, Curve], ...]

    @classmethod
    def of(cls, robot: Robot, curves: Curves | None) -> KnownFriction:
        """Create the known friction from the argument of a function.

        Args:
            robot: Robot.
            curves: A mapping by names of joints or motors (then for its drive), one entry (a curve or None) per joint,
                or None.
        """
        if curves is None:
            return cls(())
        if not isinstance(curves, Mapping):
            if len(curves) != robot.dof:
                raise SteelyardError(f"known_friction has {len(curves)} curves; '{robot.name}' has {robot.dof} joints.")
            curves = {name: curve for name, curve in zip(robot.joint_names, curves, strict=True) if curve is not None}
        return cls(tuple((friction_coordinate(robot, name), curve) for name, curve in curves.items()))

    def torque(self, dq: Array) -> Array:
        """Compute friction torques at velocities `dq` [rad/s, m/s], `(samples, joints)`, of the same shape."""
        out = np.zeros_like(dq)
        for place, curve in self.curves:
            weights = np.array(place.weights)
            value = np.asarray(curve(dq @ weights), dtype=float)
            if value.shape not in ((), (len(dq),)):
                raise ShapeError(f"The friction curve of '{place.name}' gave shape {value.shape}, not {(len(dq),)}.")
            if not np.all(np.isfinite(value)):
                raise SteelyardError(f"The friction curve of '{place.name}' is not finite at some velocity.")
            out += value[..., None] * weights
        return out


def friction_coordinate(robot: Robot, name: str) -> Coordinate:
    """Return the joint, or the drive of the motor, with a name.

    Args:
        robot: Robot.
        name: Name of a joint or motor.
    """
    if name in robot.joint_names:
        return Coordinate(robot, "joint", name, robot.joint_index(name))
    motors = robot.transmission.motors if robot.transmission is not None else ()
    if name not in motors:
        raise UnknownNameError("joint or motor" if motors else "joint", name, (*robot.joint_names, *motors))
    return Coordinate(robot, "drive", name, motors.index(name))


@dataclass(frozen=True, eq=False)
class Stillness:
    """The speeds that affect each joint's equation, and the limits of standstill.

    `directions[k]`·q̇ is the speed of a contact with dry friction (of a joint or a drive); `reaches[k, j]` is true if
    this friction acts on joint j; `limits[k]` is the minimum speed.
    """

    directions: Array
    reaches: NDArray[np.bool_]
    limits: Array

    @classmethod
    def never(cls, joints: int) -> Stillness:
        """Create it for `joints` that are never at standstill."""
        return cls(np.zeros((0, joints)), np.zeros((0, joints), dtype=bool), np.zeros(0))

    @classmethod
    def of(cls, dynamics: Dynamics, friction: KnownFriction, speed: float | None, mask: float) -> Stillness:
        """Create it from the dry friction of terms and of known friction.

        Args:
            dynamics: Physics with the terms.
            friction: Known friction.
            speed: Minimum speed of contacts with dry friction [rad/s, m/s]; default: by the kind of the joint.
            mask: Minimum speed of every joint [rad/s, m/s].
        """
        robot = dynamics.robot
        found: list[tuple[Array, float]] = []
        for term, coordinate in dynamics.terms.with_coordinates:
            if term.dry:
                kind = "revolute" if coordinate.revolute else "prismatic"
                found.append((np.array(coordinate.weights, dtype=float), STILL[kind] if speed is None else speed))
        for place, _ in friction.curves:
            kind = "revolute" if place.revolute else "prismatic"
            found.append((np.array(place.weights), STILL[kind] if speed is None else speed))
        if mask > 0.0:
            found += [(one, mask) for one in np.eye(robot.dof)]
        if not found:
            return cls.never(robot.dof)
        directions = np.array([d for d, _ in found])
        return cls(directions, directions != 0.0, np.array([limit for _, limit in found]))

    def moving(self, dq: Array) -> NDArray[np.bool_]:
        """Return whether each joint's equation is valid between samples of `dq` [rad/s, m/s], `(intervals, joints)`."""
        slow = np.abs(dq @ self.directions.T) < self.limits
        slow = slow[1:] | slow[:-1]
        return np.asarray(slow.astype(float) @ self.reaches.astype(float) == 0.0)


def check_still(speed: float | None) -> None:
    """Refuse a `speed` [rad/s, m/s] that is negative or not finite; None is valid."""
    if speed is not None and not (np.isfinite(speed) and speed >= 0.0):
        raise SteelyardError(f"still must be a speed of 0 or more (rad/s, m/s), not {speed}.")
