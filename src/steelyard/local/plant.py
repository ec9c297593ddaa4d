"""`SimulatedArm`: a simulated robot that plays motions and writes logs, where there is no real one at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.local.motions import MotionLike
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation import ComputedTorque, Sensors, simulate

# What plays motions: your robot's driver, or a simulated arm. It is given the motion and a number that differs from
# run to run, and returns the log.
Player = Callable[[MotionLike, int], Log]


def default_sensors(robot: Robot, percent: float = 2.0) -> Sensors:
    """19-bit encoders; torque noise in percent of the stated torque (0.1 N m or N where none is stated)."""
    noise = tuple(0.01 * percent * j.effort if np.isfinite(j.effort) and j.effort > 0 else 0.1 for j in robot.joints)
    return Sensors(position_resolution=2.0 * np.pi / 2**19, torque_noise=noise)


@dataclass(frozen=True, eq=False)
class SimulatedArm:
    """Plays motions under computed torque control; `truth` may rub and bend in ways that the fit knows nothing of.

    `rate` (Hz) is that of the log, `substeps` steps of control and integration lie between two samples.
    """

    truth: Model
    sensors: Sensors | None = None
    rate: float = 500.0
    substeps: int = 4
    bandwidth: float = 20.0
    seed: int = 0
    smoothing: float = field(default=1e-2)

    def __call__(self, motion: MotionLike, run: int) -> Log:
        count = max(int(motion.duration * self.rate), 2)
        step = 1.0 / (self.rate * self.substeps)
        sensors = self.sensors if self.sensors is not None else default_sensors(self.truth.robot)
        start = motion.sample(np.zeros(1))
        made = simulate(
            self.truth,
            ComputedTorque.for_model(self.truth, bandwidth=self.bandwidth),
            reference=motion,
            q0=start[0][0],
            dq0=start[1][0],
            duration=count * self.substeps * step,
            step=step,
            record_every=self.substeps,
            smoothing=self.smoothing,
            sensors=replace(sensors, seed=1000 * self.seed + run),
        )
        return made.log()
