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

# Spread of a jump of dry friction, rad/s (m/s), as `simulate` has it.
_SMOOTHING = 1e-2


class FollowOnGpu:
    """What `play` does by default, for robots that differ in their parameters alone; compiled once.

    Args:
        model: the kind of robot: its links and terms.
        motion: what is followed.
        rate: samples a second, Hz.
        believed: what the controllers know of their robots.
        bandwidth_rad_s: of the controllers, rad/s.
        device: where.
    """

    def __init__(
        self, model: Model, motion: PlayableMotion, rate: float, believed: Model, bandwidth_rad_s: float, device: Device
    ) -> None:
        if model.remembers:
            raise SimulationError("Friction that remembers is not simulated on a GPU; leave the GPU out.")
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
        """True positions, velocities and torques, `(samples, joints, robots)` on the device, of robots with `theta`,
        `(robots, parameters)`; robots that go wrong are not finite from there on."""
        n, schedule = self.model.robot.dof, self.schedule
        starts = np.repeat(self.start[:, None], len(theta), axis=1)
        if np.any(check_start(self.model, theta, np.ascontiguousarray(starts[:n].T))):
            raise SimulationError("Robots that may be impossible are not watched on a GPU; leave the GPU out.")
        lumped = np.ascontiguousarray(self.plant.lumped(theta).T)
        found: tuple[Any, Any, Any] = self._steps(
            self.device.place(lumped), *self._shared, self.device.place(starts),
            schedule.steps, schedule.hold, schedule.every, schedule.step,
        )  # fmt: skip
        return found
