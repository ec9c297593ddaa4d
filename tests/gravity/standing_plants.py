"""Robots that stand, with torques from Pinocchio: gravity, offsets, noise, and dry friction of three kinds."""

from __future__ import annotations

from functools import cache

import numpy as np
from oracles import PinocchioOracle, public_robot_path

from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log


@cache
def public_robot(name: str) -> Robot:
    return load_robot(public_robot_path(name))


@cache
def oracle(name: str) -> PinocchioOracle:
    return PinocchioOracle(public_robot(name))


def gravity_torque(name: str, q: np.ndarray) -> np.ndarray:
    """The torque that holds the robot, by Pinocchio."""
    still = np.zeros_like(q)
    return np.array([oracle(name).torque(a, b, b) for a, b in zip(q, still, strict=True)])


def table(name: str, count: int, seed: int, friction: str = "none", share: float = 0.1, noise: float = 0.005) -> Log:
    """A table of random poses in a row each; friction and noise are shares of the largest torque of each joint.

    Friction is "tube" (any value within ± share), "edge" (+ or − share, at random), "side" (against the last motion) or
    "none".
    """
    robot, rng = public_robot(name), np.random.default_rng(seed)
    q = rng.uniform(-2.5, 2.5, (count, robot.dof))
    tau = gravity_torque(name, q)
    size = np.maximum(np.abs(tau).max(axis=0), 1.0)
    drawn = {
        "none": np.zeros_like(q),
        "tube": rng.uniform(-1.0, 1.0, q.shape),
        "edge": rng.choice([-1.0, 1.0], q.shape),
        "side": np.sign(np.diff(q, axis=0, prepend=q[:1] - 1.0)),
    }[friction]
    offsets = 0.05 * size * rng.normal(size=robot.dof)
    tau = tau + offsets + size * (share * drawn + noise * rng.normal(size=q.shape))
    return Log(robot.joint_names, np.arange(float(count)), q, dq=np.zeros_like(q), tau=tau)
