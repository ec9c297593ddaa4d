"""Arms simulated by Pinocchio with unmodelled friction: does recalibration report another motion as a drift?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from oracles import PinocchioOracle

from steelyard import Log, load_robot
from steelyard.local import Bank, JointRegion, identify_locally, recalibrate
from steelyard.local.motions import ViaPointMotion, random_motion
from steelyard.local.recalibrate import ModelDrift

TERMS = ("viscous", "coulomb", "offset")
_RATE_HZ = 200.0
# Half the width of the region [rad].
_HALF = 0.8
# Shapes of friction as functions of speed over its rms, position [rad] and torque over its standard deviation.
SHAPES = {
    "as modelled": lambda x, q, tau: (np.sign(x), x),
    "stribeck": lambda x, q, tau: (np.sign(x) * (1.0 + 0.5 * np.exp(-((x / 0.15) ** 2))), x),
    "falling": lambda x, q, tau: (np.sign(x), np.sign(x) * np.abs(x) ** 0.6),
    "ripple": lambda x, q, tau: (np.sign(x) * (1.0 + 0.3 * np.sin(6.0 * q)), x),
    "load": lambda x, q, tau: (np.sign(x) * (0.5 + 0.7 * np.abs(tau)), x),
}


@dataclass(frozen=True)
class DriftPlant:
    """A built-in robot with friction of one shape; dry and viscous part have 10 to 25 % of the torque each."""

    name: str
    shape: str

    @cached_property
    def oracle(self) -> PinocchioOracle:
        return PinocchioOracle(load_robot(self.name))

    @cached_property
    def loaded(self) -> PinocchioOracle:
        """The same arm with a payload of a twentieth of its mass."""
        oracle = PinocchioOracle(self.oracle.robot)
        bodies = oracle.model.inertias
        mass = 0.05 * sum(body.mass for body in bodies)
        last = oracle.model.njoints - 1
        bodies[last] += oracle.pin.Inertia(mass, np.array([0.0, 0.05, 0.1]), 1e-3 * np.eye(3))
        oracle.data = oracle.model.createData()
        return oracle

    @cached_property
    def region(self) -> JointRegion:
        limits = np.array([[max(j.lower, -2.5), min(j.upper, 2.5)] for j in self.oracle.robot.joints])
        middle, half = limits.mean(axis=1), np.minimum(0.4 * np.ptp(limits, axis=1), _HALF)
        return JointRegion("A", middle - half, middle + half)

    def motion(self, seed: int) -> ViaPointMotion:
        """A random program of twelve via-points in the region."""
        return random_motion(self.oracle.robot, self.region, np.random.default_rng([7, seed]), points=12)

    @cached_property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviation of the torque [N m] and rms speed [rad/s] of a motion."""
        motion = self.motion(999)
        q, dq, ddq = motion.sample(np.arange(0.0, motion.duration, 0.02))
        torque = np.std(self.oracle.over("torque", q, dq, ddq), axis=0)
        return np.maximum(torque, 0.05 * torque.max()), np.sqrt(np.mean(dq**2, axis=0))

    def log(self, motion: ViaPointMotion, seed: int, friction: float = 1.0, loaded: bool = False) -> Log:
        """A log of `motion` with 1 % noise; `friction` scales the friction of the healthy arm."""
        q, dq, ddq = motion.sample(np.arange(0.0, motion.duration, 1.0 / _RATE_HZ))
        tau = (self.loaded if loaded else self.oracle).over("torque", q, dq, ddq)
        scale, speed = self.sizes
        dry, viscous = np.random.default_rng(0).uniform(0.10, 0.25, (2, len(scale))) * scale
        shapes = SHAPES[self.shape](dq / speed, q, tau / scale)
        tau = tau + friction * (dry * shapes[0] + viscous * shapes[1])
        rng = np.random.default_rng([seed, 3])
        noisy = tau + 0.01 * scale * rng.normal(size=q.shape)
        t = np.arange(len(q)) / _RATE_HZ
        return Log(self.oracle.robot.joint_names, t, q + 1e-5 * rng.normal(size=q.shape), tau=noisy)

    def bank(self, seed: int) -> Bank:
        """A bank with a model of the region from the first motion of `seed`."""
        motion = self.motion(2 * seed)
        log = self.log(motion, 4 * seed)
        return identify_locally(self.oracle.robot, {"A": log}, [self.region], terms=TERMS, physical=False,
                                prior="none", motions={"A": motion})  # fmt: skip

    def again(self, bank: Bank, seed: int, **change: object) -> ModelDrift:
        """Recalibrate `bank` with another motion of the healthy arm, or of the arm after a `change`."""
        return recalibrate(bank, "A", self.log(self.motion(2 * seed + 1), 4 * seed + 1, **change))[1]
