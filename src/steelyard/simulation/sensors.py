"""`Sensors`: resolution, noise and delay of encoders and torque sensors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import SimulationError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log


@dataclass(frozen=True, kw_only=True)
class Sensors:
    """Resolution, noise and delay of a robot's sensors; numbers, or one per joint; zero is perfect.

    In order: each channel is delayed, sampled every `sample_period` (default: as simulated), Gaussian noise of the
    given standard deviation is added, and the sum is rounded to a multiple of the resolution. Delayed positions and
    velocities are interpolated linearly between the simulation's samples; a delayed torque is the constant one at that
    time. Before the start the first value applies. `velocity="backward"` is the backward difference of measured
    positions, zero for the first sample, as in controllers without a tachometer; `acceleration="backward"` is that of
    velocities. With `hold`, samples between two readings repeat the last one instead of being omitted.
    """

    position_resolution: float | tuple[float, ...] = 0.0
    torque_resolution: float | tuple[float, ...] = 0.0
    position_noise: float | tuple[float, ...] = 0.0
    velocity_noise: float | tuple[float, ...] = 0.0
    torque_noise: float | tuple[float, ...] = 0.0
    position_delay: float = 0.0
    velocity_delay: float = 0.0
    torque_delay: float = 0.0
    sample_period: float | None = None
    hold: bool = False
    velocity: Literal["measured", "backward"] = "measured"
    acceleration: Literal["none", "backward"] = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name.endswith(("resolution", "noise")):
                array = np.asarray(value, dtype=float)
                if not np.all(np.isfinite(array)) or np.any(array < 0.0):
                    raise SimulationError(f"Sensors: {f.name} must be zero or positive, not {value}.")
                object.__setattr__(self, f.name, tuple(array.tolist()) if array.ndim else float(array))
            elif f.name.endswith("delay") and not (np.isfinite(value) and value >= 0.0):
                raise SimulationError(f"Sensors: {f.name} must be zero or positive seconds, not {value}.")
        if self.velocity not in ("measured", "backward"):
            raise SimulationError(f'Sensors: velocity is "measured" or "backward", not "{self.velocity}".')
        if self.acceleration not in ("none", "backward"):
            raise SimulationError(f'Sensors: acceleration is "none" or "backward", not "{self.acceleration}".')

    def measure(self, true: Log, robot: int = 0) -> Log:
        """Measure a true motion.

        Args:
            true: True signals.
            robot: Index in the batch, for independent noise.
        """
        if true.dq is None or true.tau is None:
            raise SimulationError("Sensors need the true velocities and torques; simulate the motion first.")
        stride = self._stride(true.t)
        t = true.t[::stride]
        noise = [self._noise(k, level, len(t), len(true.joints), robot) for k, level in enumerate(self._levels)]
        q = _interpolate(true.t, true.q, t - self.position_delay) + noise[0]
        q = _round(q, self.position_resolution)
        if self.velocity == "backward":
            dq = _difference(t, q)
        else:
            dq = _interpolate(true.t, true.dq, t - self.velocity_delay)
            dq = dq + noise[1]
        tau = _hold(true.t, true.tau, t - self.torque_delay) + noise[2]
        tau = _round(tau, self.torque_resolution)
        ddq = _difference(t, dq) if self.acceleration == "backward" else None
        measured = Log(true.joints, t, q, dq=dq, ddq=ddq, tau=tau, meta=true.meta)
        return _repeat(measured, true.t, stride) if self.hold else measured

    @property
    def _levels(self) -> tuple[float | tuple[float, ...], ...]:
        return self.position_noise, self.velocity_noise, self.torque_noise

    def noise_of_torque(self, samples: int, joints: int, robot: int = 0) -> Array:
        """Generate the noise that `measure` adds to the torques of a log, `(samples, joints)`.

        Args:
            samples: Number of samples.
            joints: Number of joints.
            robot: Index in the batch.
        """
        return self._noise(2, self.torque_noise, samples, joints, robot)

    def _noise(
        self, channel: int, level: float | tuple[float, ...], samples: int, joints: int, robot: int
    ) -> Array:  # fmt: skip
        """Generate noise from one stream per channel, so that channels do not affect each other."""
        size = _per_joint(level, joints, "noise")
        if not np.any(size):
            return np.zeros((samples, joints))
        rng = np.random.default_rng([self.seed, robot, channel])
        noise: Array = rng.standard_normal((samples, joints)) * size
        return noise

    def _stride(self, t: Array) -> int:
        if self.sample_period is None or len(t) < 2:
            return 1
        spacing = float(t[-1] - t[0]) / (len(t) - 1)
        stride = round(self.sample_period / spacing) if self.sample_period > 0.0 else 0
        if stride < 1 or abs(stride * spacing - self.sample_period) > 1e-6 * spacing * stride:
            raise SimulationError(
                f"sample_period {self.sample_period} s is not a whole number of simulated samples of {spacing:g} s."
            )
        return stride


def _per_joint(value: float | tuple[float, ...], joints: int, name: str) -> Array:
    array = np.asarray(value, dtype=float)
    if array.ndim and array.shape != (joints,):
        raise SimulationError(f"Sensors: {name} has {len(array)} entries; the robot has {joints} joints.")
    return np.broadcast_to(array, (joints,))


def _round(x: Array, resolution: float | tuple[float, ...]) -> Array:
    step = _per_joint(resolution, x.shape[1], "resolution")
    safe = np.where(step > 0.0, step, 1.0)
    rounded: Array = np.where(step > 0.0, np.rint(x / safe) * safe, x)
    return rounded


def _interpolate(t: Array, x: Array, when: ArrayLike) -> Array:
    """Interpolate linearly, exactly at the samples."""
    w = np.asarray(when)
    if np.array_equal(w, t):
        return x.copy()
    return np.stack([np.interp(w, t, column) for column in x.T], axis=1)


def _hold(t: Array, x: Array, when: Array) -> Array:
    # A delay of whole samples must select its sample despite rounding.
    grace = 1e-9 * float(t[-1] - t[0]) / max(1, len(t) - 1)
    index = np.clip(np.searchsorted(t, when + grace, side="right") - 1, 0, len(t) - 1)
    values: Array = x[index]
    return values


def _difference(t: Array, x: Array) -> Array:
    out = np.zeros_like(x)
    out[1:] = np.diff(x, axis=0) / np.diff(t)[:, None]
    return out


def _repeat(log: Log, t: Array, stride: int) -> Log:
    index = np.arange(len(t)) // stride
    signals = {name: None if x is None else x[index] for name, x in log.signals.items()}
    return replace(log, t=t, **signals)  # type: ignore[arg-type]
