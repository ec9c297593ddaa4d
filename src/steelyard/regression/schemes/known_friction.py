"""`KnownFriction`: friction that was measured before, as curves over velocity, to be taken off the torque."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import ShapeError, SteelyardError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

Curve = Callable[[Array], Array]
Curves = Mapping[str, Curve] | Sequence[Curve | None]


@dataclass(frozen=True, eq=False)
class KnownFriction:
    """One curve per joint: velocities (rad/s, m/s) → torques (N m, N); joints without one have none."""

    curves: tuple[Curve | None, ...]

    @classmethod
    def of(cls, robot: Robot, given: Curves | None) -> KnownFriction:
        """From a mapping by joint name, or one entry (a curve or None) per joint."""
        if given is None:
            return cls((None,) * robot.dof)
        if isinstance(given, Mapping):
            for name in given:
                if name not in robot.joint_names:
                    raise UnknownNameError("joint", name, robot.joint_names)
            return cls(tuple(given.get(name) for name in robot.joint_names))
        if len(given) != robot.dof:
            raise SteelyardError(f"known_friction has {len(given)} curves; '{robot.name}' has {robot.dof} joints.")
        return cls(tuple(given))

    def torque(self, dq: Array) -> Array:
        """`(samples, joints)`."""
        out = np.zeros_like(dq)
        for joint, curve in enumerate(self.curves):
            if curve is None:
                continue
            value = np.asarray(curve(dq[:, joint]), dtype=float)
            if value.shape not in ((), (len(dq),)):
                raise ShapeError(f"The friction curve of joint {joint + 1} gave shape {value.shape}, not {(len(dq),)}.")
            if not np.all(np.isfinite(value)):
                raise SteelyardError(f"The friction curve of joint {joint + 1} is not finite at some velocity.")
            out[:, joint] = value
        return out
