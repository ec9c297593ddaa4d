"""Random states that show everything a robot's structure can show."""

from __future__ import annotations

import numpy as np

from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array
from steelyard.robot.transmission import ConstantRatio

# Speeds and accelerations (rad/s, rad/s²) whose effects are about as strong as gravity's on one metre: what is
# much weaker than the rest would be lost in its rounding.
_SPEED = 3.0
_ACCELERATION = 10.0
# Friction terms differ from each other at low speed only, so with terms a third of the states is slow: the decades
# of speed (rad/s) that are covered.
_SLOW_DECADES = (-3.0, 0.5)
# Where a drive depends on posture but the joint has no limits, stay near its zero.
_NEAR = np.pi / 4


def random_states(robot: Robot, count: int, seed: int, slow: bool = False) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations `(count, joints)`, the same on every machine.

    Joints turn all the way round, whatever their limits: structure is not a matter of reach. Only where a drive
    depends on posture are the limits kept, because its formula may hold nowhere else.
    """
    rng = np.random.default_rng(seed)
    length = characteristic_length(robot)
    unit = np.array([1.0 if joint.kind == "revolute" else length for joint in robot.joints])
    lower, upper = _range_of_motion(robot, length)
    q = rng.uniform(lower, upper, (count, robot.dof))
    dq = rng.uniform(-_SPEED, _SPEED, (count, robot.dof)) * unit
    ddq = rng.uniform(-_ACCELERATION, _ACCELERATION, (count, robot.dof)) * unit
    if slow:
        creeping = slice(0, count // 3)
        size = 10.0 ** rng.uniform(*_SLOW_DECADES, (count, robot.dof))
        dq[creeping] = (np.sign(dq) * size)[creeping] * unit
    return q, dq, ddq


def characteristic_length(robot: Robot) -> float:
    """The longest distance from one joint to the next (m); 1 where all axes meet."""
    longest = max(float(np.linalg.norm(link.translation)) for link in robot.links)
    return longest if longest > 0.0 else 1.0


def _range_of_motion(robot: Robot, length: float) -> tuple[Array, Array]:
    upper = np.array([np.pi if joint.kind == "revolute" else length for joint in robot.joints])
    lower = -upper
    for k in _posture_dependent(robot):
        joint = robot.joints[k]
        bounded = np.isfinite(joint.lower) and np.isfinite(joint.upper)
        lower[k], upper[k] = (joint.lower, joint.upper) if bounded else (-_NEAR, _NEAR)
    return lower, upper


def _posture_dependent(robot: Robot) -> set[int]:
    """The joints that a drive with a ratio other than a constant moves."""
    if robot.transmission is None:
        return set()
    rows = [w for w, r in zip(robot.transmission.matrix, robot.transmission.ratios, strict=True)
            if not isinstance(r, ConstantRatio)]  # fmt: skip
    return {int(k) for row in rows for k in np.flatnonzero(row)}
