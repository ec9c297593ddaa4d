"""Logs of simulated robots that move within their limits, and ways to spoil them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.parameters.terms import terms
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation import ComputedTorque, Sensors, simulate

RATE, DURATION = 500.0, 12.0
FRICTION = {"revolute": (0.2, 0.1), "prismatic": (5.0, 1.5)}  # viscous, dry


@dataclass(frozen=True)
class Series:
    """Harmonics about a middle posture, with rest at start and end."""

    middle: np.ndarray
    amplitudes: np.ndarray
    harmonics: tuple[float, ...] = (1.0, 2.0, 5.0, 8.0, 12.0)

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w = 2.0 * np.pi / DURATION * np.array(self.harmonics)
        phase = np.multiply.outer(np.asarray(t, dtype=float), w)
        q = self.middle + np.sin(phase) @ self.amplitudes
        return q, (w * np.cos(phase)) @ self.amplitudes, (-(w**2) * np.sin(phase)) @ self.amplitudes


@cache
def robot_of(name: str) -> Robot:
    return load_robot(name)


@cache
def truth(name: str, gravity: tuple[float, float, float] | None = None) -> Model:
    """The model of the description, with friction added if it lacks friction."""
    robot = robot_of(name) if gravity is None else robot_of(name).with_gravity(gravity)
    if robot.nominal_terms:
        return Model.nominal(robot)
    bound = terms(robot, "viscous", "coulomb")
    values = np.array([FRICTION[j.kind] for j in robot.joints]).T.ravel()
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, values]))


def series_of(robot: Robot, seed: int) -> Series:
    rng = np.random.default_rng(seed)
    room = np.array([min(j.upper, -j.lower, 1.5) for j in robot.joints])
    share = np.array([[0.45], [0.25], [0.1], [0.08], [0.05]])
    sizes = rng.uniform(0.6, 1.0, (5, robot.dof)) * rng.choice([-1.0, 1.0], (5, robot.dof))
    amplitudes = sizes * share * room
    # The series must begin at rest: the last harmonic cancels the speed of the others.
    rates = np.array(Series(np.zeros(robot.dof), amplitudes).harmonics)
    amplitudes[-1] = -(rates[:-1] @ amplitudes[:-1]) / rates[-1]
    return Series(np.zeros(robot.dof), amplitudes * room / np.abs(amplitudes).sum(axis=0).clip(min=room))


@cache
def clean(name: str, seed: int = 0, gravity: tuple[float, float, float] | None = None, still: int | None = None) -> Log:
    """A sound log: fine encoders, a little noise on the torque. Joint `still` does not move."""
    model = truth(name, gravity)
    n = model.robot.dof
    noise = tuple(0.01 if j.kind == "revolute" else 0.05 for j in model.robot.joints)
    series = series_of(model.robot, seed)
    if still is not None:
        series.amplitudes[:, still] = 0.0
    run = simulate(
        model,
        ComputedTorque.for_model(model, bandwidth_rad_s=15.0),
        reference=series,
        duration=DURATION,
        step=0.25 / RATE,
        control_period=1.0 / RATE,
        record_every=4,
        q0=series.sample(np.zeros(1))[0][0],
        dq0=np.zeros(n),
        sensors=Sensors(position_resolution=2e-5, torque_noise=noise, velocity_noise=1e-3, seed=seed),
    )
    return run.log()


def spoiled(log: Log, **signals: object) -> Log:
    """The log with other signals or remarks."""
    return replace(log, **signals)


def column(x: np.ndarray, joint: int, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """x with one joint's column changed."""
    out = x.copy()
    out[:, joint] = change(x[:, joint])
    return out


def exchanged(x: np.ndarray, a: int, b: int) -> np.ndarray:
    """x with two joints' columns exchanged."""
    order = list(range(x.shape[1]))
    order[a], order[b] = b, a
    return x[:, order]


def later(x: np.ndarray, samples: int) -> np.ndarray:
    """x delayed by some samples."""
    return np.concatenate([np.repeat(x[:1], samples, axis=0), x[:-samples]])
