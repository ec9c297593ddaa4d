"""Friction that is known before, and standstill, where dry friction is whatever holds a joint there."""

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

# Slower than this (rad/s, m/s) the direction of a measured motion is not known, or friction holds the joint: some
# 1°/s, twice the speed over which dry friction is rounded off where it is identified by name.
STILL = {"revolute": 0.02, "prismatic": 0.002}


@dataclass(frozen=True, eq=False)
class KnownFriction:
    """Friction that was measured before, of joints or of drives: velocities (rad/s, m/s) → torques (N m, N)."""

    curves: tuple[tuple[Coordinate, Curve], ...]

    @classmethod
    def of(cls, robot: Robot, given: Curves | None) -> KnownFriction:
        """Of `robot`, as `given`: a mapping by names of joints or motors (whose drive it is then), one entry (a curve
        or None) per joint, or None."""
        if given is None:
            return cls(())
        if not isinstance(given, Mapping):
            if len(given) != robot.dof:
                raise SteelyardError(f"known_friction has {len(given)} curves; '{robot.name}' has {robot.dof} joints.")
            given = {name: curve for name, curve in zip(robot.joint_names, given, strict=True) if curve is not None}
        return cls(tuple((rubbing_at(robot, name), curve) for name, curve in given.items()))

    def torque(self, dq: Array) -> Array:
        """At velocities `dq` (rad/s, m/s), `(samples, joints)`, and of that shape."""
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


def rubbing_at(robot: Robot, name: str) -> Coordinate:
    """The joint of `robot` called `name`, or the drive of the motor called so."""
    if name in robot.joint_names:
        return Coordinate(robot, "joint", name, robot.joint_index(name))
    motors = robot.transmission.motors if robot.transmission is not None else ()
    if name not in motors:
        raise UnknownNameError("joint or motor" if motors else "joint", name, (*robot.joint_names, *motors))
    return Coordinate(robot, "drive", name, motors.index(name))


@dataclass(frozen=True, eq=False)
class Stillness:
    """Speeds that matter to each joint's equation, and how slow is still.

    `directions[k]`·q̇ is a speed on which dry friction rubs (of a joint or of a drive); `reaches[k, j]` says whether
    that friction acts on joint j; `limits[k]` is the least speed.
    """

    directions: Array
    reaches: NDArray[np.bool_]
    limits: Array

    @classmethod
    def never(cls, joints: int) -> Stillness:
        """For so many `joints`, none of which is ever too slow."""
        return cls(np.zeros((0, joints)), np.zeros((0, joints), dtype=bool), np.zeros(0))

    @classmethod
    def of(cls, dynamics: Dynamics, friction: KnownFriction, speed: float | None, mask: float) -> Stillness:
        """`speed` (rad/s, m/s) for all (default: the rule above) where there is dry friction; `mask` for every joint.

        Dry friction is that of the terms of `dynamics`, and `friction` that is known.
        """
        robot = dynamics.robot
        found: list[tuple[Array, float]] = []
        for term, coordinate in dynamics.terms.placed:
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
        """Whether each joint's equation can be trusted between samples of `dq` (rad/s, m/s), `(intervals, joints)`."""
        slow = np.abs(dq @ self.directions.T) < self.limits
        slow = slow[1:] | slow[:-1]
        return np.asarray(slow.astype(float) @ self.reaches.astype(float) == 0.0)


def check_still(speed: float | None) -> None:
    """Refuse a `speed` (rad/s, m/s; None: by the rule) that is negative or not finite."""
    if speed is not None and not (np.isfinite(speed) and speed >= 0.0):
        raise SteelyardError(f"still is a speed from 0 on (rad/s, m/s), not {speed}.")
