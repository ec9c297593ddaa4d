"""A simulated IRp-6 with Tustin friction that differs by direction and, at joint 1, with temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.friction.design_sweeps import FrictionExperiment, design_sweeps
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot("irp6")
RIGID = Model(ROBOT, terms(ROBOT), ROBOT.inertial_parameters)


@dataclass(frozen=True)
class Tustin:
    """Static, Coulomb and viscous friction forward and backward, and the Stribeck speed; falls by `warm` per °C."""

    forward: tuple[float, float, float]
    backward: tuple[float, float, float]
    speed: float
    warm: float = 0.0

    def __call__(self, v: np.ndarray, temperature: float | np.ndarray = 32.5) -> np.ndarray:
        side = np.where(v > 0.0, 0, 1)
        static, coulomb, viscous = np.array([self.forward, self.backward])[side].T
        dry = np.sign(v) * (coulomb + (static - coulomb) * np.exp(-np.abs(v) / self.speed))
        return (1.0 - self.warm * (temperature - 32.5)) * (dry + viscous * v)


# Stiction as measured in section 5.2 (14.1; 16.8/10.6; 18.0/14.1 N m); the other numbers are arbitrary.
CURVES = (
    Tustin((14.1, 9.0, 20.0), (14.1, 9.0, 20.0), 0.12, warm=0.01),
    Tustin((16.8, 11.0, 26.0), (10.6, 7.0, 24.0), 0.10),
    Tustin((18.0, 12.0, 18.0), (14.1, 10.0, 16.0), 0.12),
)


def sweeps(joint: int, **options: object) -> FrictionExperiment:
    return design_sweeps(ROBOT, [ROBOT.joint_names[joint]], **options)  # type: ignore[arg-type]


def log_of(
    plan: FrictionExperiment,
    seed: int = 0,
    noise: float = 1.0,
    rate: float = 250.0,
    temperature: float | None = None,
    jitter: float = 0.0,
    curves: tuple[Tustin, ...] = CURVES,
) -> Log:
    """A log of an exactly followed sweep, with noise on the torque and jitter of the clock."""
    rng = np.random.default_rng(seed)
    t = plan.times(rate)
    t = t + jitter / rate * rng.uniform(-0.5, 0.5, len(t))
    q, dq, ddq = plan.sample(t)
    warm = 32.5 if temperature is None else temperature
    friction = np.column_stack([c(v, warm) for c, v in zip(curves, dq.T, strict=True)])
    tau = RIGID.torque(q, dq, ddq) + friction + noise * rng.normal(size=q.shape)
    q = q + 1e-5 * rng.normal(size=q.shape)
    dq = dq + 1e-3 * rng.normal(size=q.shape)
    channels = {} if temperature is None else {"temperature": np.full(q.shape, warm)}
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau, channels=channels)
