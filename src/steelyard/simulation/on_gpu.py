"""`FollowOnGpu`: many robots of one kind follow a motion under control, all at once on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.dynamics.cuda.device import Device
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError
from steelyard.ground.arrays import Array
from steelyard.simulation.command import command_of, schedule_of
from steelyard.simulation.controllers import ComputedTorque
from steelyard.simulation.plant import plant_of
from steelyard.simulation.play import LOOPS_PER_SAMPLE, PlayableMotion
from steelyard.simulation.simulation import check_start

# Smoothing of dry friction [rad/s, m/s], as in `simulate`.
_SMOOTHING = 1e-2


class FollowOnGpu:
    """The default case of `play` for robots that differ only in their parameters; compiled once.

    Args:
        model: Links and terms of the robots.
        motion: Motion to follow.
        rate: Sample rate [Hz].
        believed: Model in the controllers.
        bandwidth_rad_s: Bandwidth of the controllers [rad/s].
        device: GPU.
    """

    def __init__(
        self, model: Model, motion: PlayableMotion, rate: float, believed: Model, bandwidth_rad_s: float, device: Device
    ) -> None:
        if model.has_memory:
            raise SimulationError("Friction with memory is not supported on a GPU; run without --gpu.")
        n, period = model.robot.dof, 1.0 / (LOOPS_PER_SAMPLE * rate)
        count = max(int(motion.duration * rate + 1e-9), 2)
        self.model, self.device = model, device
        self.schedule = schedule_of(count / rate, None, period, period, LOOPS_PER_SAMPLE)
        command = command_of(
            ComputedTorque.for_model(believed, bandwidth_rad_s=bandwidth_rad_s), motion, self.schedule, n
        )
        self.plant = plant_of(model.robot, model.terms, _SMOOTHING)
        self._steps = device.steps(self.plant.traced, command.traced())
        self._shared = device.place(command.table[0]), device.place(command.settings)
        q, dq, _ = motion.sample(np.zeros(1))
        self.start = np.concatenate([q[0], dq[0]])

    def __call__(self, theta: Array) -> tuple[Any, Any, Any]:
        """Compute true positions, velocities and torques, `(samples, joints, robots)` on the device.

        `theta` has shape `(robots, parameters)`. A robot that diverges has non-finite values from there on.
        """
        n, schedule = self.model.robot.dof, self.schedule
        starts = np.repeat(self.start[:, None], len(theta), axis=1)
        if np.any(check_start(self.model, theta, np.ascontiguousarray(starts[:n].T))):
            raise SimulationError(
                "Parameters may be physically impossible, which is not checked on a GPU; run without --gpu."
            )
        lumped = np.ascontiguousarray(self.plant.lumped(theta).T)
        found: tuple[Any, Any, Any] = self._steps(
            self.device.place(lumped), *self._shared, self.device.place(starts),
            schedule.steps, schedule.hold, schedule.every, schedule.step,
        )  # fmt: skip
        return found
