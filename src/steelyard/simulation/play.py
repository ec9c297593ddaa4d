"""`play`: a motion on a simulated robot, under control, as a real one would play it: the one way to a simulated log."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.ground.renamed import renamed
from steelyard.simulation.controllers import ComputedTorque
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulate import SimulationWarning, simulate
from steelyard.simulation.simulation import Simulation

# A 19-bit encoder, rad.
ENCODER = 2.0 * np.pi / 2**19
# The drive's loop is four times as fast as the log: a torque held for a whole sample lets light wrists ring at
# reversals, faster than the log's filter passes.
LOOPS_PER_SAMPLE = 4
# Steps of the integrator per control period, at most; friction that needs more is not simulated faithfully.
_MOST_STEPS = 64
_Made = TypeVar("_Made")


class PlayableMotion(Protocol):
    """What can be played: q, q̇, q̈ at times `t` (s), for `duration` seconds."""

    @property
    def duration(self) -> float: ...

    def sample(self, t: Array, /) -> tuple[Array, Array, Array]: ...


@renamed(bandwidth="bandwidth_rad_s")
def play(
    truth: Model,
    motion: PlayableMotion,
    rate: float,
    *,
    controller: Any = None,
    believed: Model | None = None,
    bandwidth_rad_s: float = 20.0,
    loops: int = LOOPS_PER_SAMPLE,
    settle: bool = False,
    **options: Any,
) -> Simulation:
    """The robot follows a motion from its first posture on; `run.log(sensors=…)` is what a logger writes.

    Args:
        truth: the robot as it is.
        motion: with `sample(t)` and `duration` (s), such as a trajectory.
        rate: samples a second, Hz.
        controller: what follows the motion; default: computed torque by the model `believed` (default: the truth).
        bandwidth_rad_s: of the default controller, rad/s.
        loops: periods of control between two samples.
        settle: cut the periods into as many steps as friction needs, instead of one.
        options: of `simulate`, such as `smoothing`, or another `q0` and `dq0` to start from.
    """
    period = 1.0 / (loops * rate)
    chosen = controller or ComputedTorque.for_model(believed or truth, bandwidth_rad_s=bandwidth_rad_s)
    q, dq, _ = motion.sample(np.zeros(1))
    options = {"q0": q[0], "dq0": dq[0], **options}
    count = max(int(motion.duration * rate + 1e-9), 2)

    def run(parts: int) -> Simulation:
        return simulate(
            truth, chosen, reference=motion, duration=count / rate, step=period / parts,
            control_period=period, record_every=loops * parts, **options,
        )  # fmt: skip

    return with_steps_that_hold(run) if settle else run(1)


def good_sensors(torque_noise: ArrayLike, seed: int = 0) -> Sensors:
    """Of a good drive: 19-bit encoders, velocities by backward differences, `torque_noise` (N m, N) of each joint.
    `seed` chooses the noise."""
    noise = tuple(np.asarray(torque_noise, dtype=float).tolist())
    return Sensors(position_resolution=ENCODER, torque_noise=noise, velocity="backward", seed=seed)


def with_steps_that_hold(run: Callable[[int], _Made]) -> _Made:
    """What `run`(parts) simulates, which cuts its period into 1, 2, 4 … steps, until they suit the friction."""
    parts = 1
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("error" if parts < _MOST_STEPS else "ignore", SimulationWarning)
            try:
                return run(parts)
            except SimulationWarning:
                parts *= 2
