"""`play`: a motion on a simulated robot under control. All simulated logs are made this way."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.simulation.controllers import ComputedTorque
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulate import SimulationWarning, simulate
from steelyard.simulation.simulation import Simulation

# Resolution of a 19-bit encoder [rad].
ENCODER = 2.0 * np.pi / 2**19
# The control loop is four times as fast as the log: with one torque per sample, light wrists oscillate at reversals,
# faster than the log's filter passes.
LOOPS_PER_SAMPLE = 4
# Maximum number of integration steps per control period; friction that needs more is simulated inaccurately.
_MOST_STEPS = 64
_Made = TypeVar("_Made")


class PlayableMotion(Protocol):
    """A motion with q, q̇, q̈ at times `t` [s] and a `duration` [s]."""

    @property
    def duration(self) -> float: ...

    def sample(self, t: Array, /) -> tuple[Array, Array, Array]: ...


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
    """Simulate a robot that follows a motion from its first posture; `run.log(sensors=…)` is the log.

    Args:
        truth: Model of the simulated robot.
        motion: Motion with `sample(t)` and `duration` [s], such as a trajectory.
        rate: Sample rate [Hz].
        controller: Controller; default: computed torque by the model `believed`.
        believed: Model of the default controller; default: the truth.
        bandwidth_rad_s: Bandwidth of the default controller [rad/s].
        loops: Control periods per sample.
        settle: Divide control periods into as many steps as friction needs, instead of one.
        options: Options of `simulate`, such as `smoothing`, or other initial `q0` and `dq0`.
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

    return refine_steps(run) if settle else run(1)


def good_sensors(torque_noise: ArrayLike, seed: int = 0) -> Sensors:
    """Return sensors of a good drive: 19-bit encoders, and velocities by backward differences.

    Args:
        torque_noise: Standard deviation of each joint's torque [N m, N].
        seed: Seed of the noise.
    """
    noise = tuple(np.asarray(torque_noise, dtype=float).tolist())
    return Sensors(position_resolution=ENCODER, torque_noise=noise, velocity="backward", seed=seed)


def refine_steps(run: Callable[[int], _Made]) -> _Made:
    """Call `run` with 1, 2, 4 … integration steps per period until the steps are short enough for the friction."""
    parts = 1
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("error" if parts < _MOST_STEPS else "ignore", SimulationWarning)
            try:
                return run(parts)
            except SimulationWarning:
                parts *= 2
