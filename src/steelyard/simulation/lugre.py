"""LuGre friction: bristles that deflect before a joint slides, simulated together with the robot's dynamics.

Canudas de Wit, Olsson, Åström & Lischinsky 1995 ("A new model for control of systems with friction", IEEE TAC 40):

    ż = v − σ₀|v| z/g(v),   F = σ₀z + σ₁ż + σ₂v,   g(v) = Fc + (Fs − Fc) exp(−(v/vs)²).

Bristles are stiff: σ₀ of 1e5 N m/rad on 1 kg m² rings at 300 rad/s, and |v|σ₀/g is thousands per second at speed, too
fast for explicit steps of a millisecond. Over a step the rate a = σ₀|v|/g is nearly constant, and z has the closed form
z⁺ = z e^{−ah} + v⁺(1 − e^{−ah})/a, linear in the new velocity. F⁺ is linear in it as well, so M(v⁺ − v)/h = τ − b − F⁺
is one linear system for v⁺. The step is implicit in all stiff parts, and costs one small linear solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, ShapeError, SimulationError, UnknownNameError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr
from steelyard.signals.log import Log
from steelyard.simulation.command import Drive, command_of, schedule_of
from steelyard.simulation.memory import ImplicitStepper
from steelyard.simulation.plant import plant_of
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulation import Ending, Simulation

# Evaluations of the slip rate per step: at its start, and again with its end.
_ROUNDS = 2


@short_repr
@dataclass(frozen=True, eq=False, kw_only=True)
class LuGre:
    """LuGre parameters per joint; zero stiffness means no bristles and viscous friction alone.

    Attributes:
        stiffness: σ₀ [N m/rad, N/m].
        damping: σ₁ [N m s/rad, N s/m].
        viscous: σ₂ [N m s/rad, N s/m].
        coulomb: Coulomb friction Fc [N m, N].
        static: Static friction Fs [N m, N].
        stribeck_speed: vs [rad/s, m/s].
    """

    stiffness: Array
    damping: Array
    viscous: Array
    coulomb: Array
    static: Array
    stribeck_speed: Array

    def __post_init__(self) -> None:
        arrays = [np.atleast_1d(np.asarray(getattr(self, f.name), dtype=float)) for f in fields(self)]
        try:
            wide = np.broadcast_arrays(*arrays)
        except ValueError:
            raise ShapeError(
                "The LuGre parameters have different numbers of joints; give one value per joint."
            ) from None
        for f, value in zip(fields(self), wide, strict=True):
            if not np.all(np.isfinite(value)) or np.any(value < 0.0):
                raise SimulationError(f"LuGre: {f.name} must be zero or positive, not {value}.")
            object.__setattr__(self, f.name, frozen(value))
        if np.any(self.static < self.coulomb):
            raise SimulationError("LuGre: static friction must be at least Coulomb friction.")
        if np.any((self.stiffness > 0.0) & ((self.coulomb <= 0.0) | (self.stribeck_speed <= 0.0))):
            raise SimulationError("LuGre: joints with bristles need positive Coulomb friction and Stribeck speed.")

    @property
    def joints(self) -> int:
        return len(self.stiffness)

    def level(self, v: Array) -> Array:
        """Compute g(v) at velocities `v` [rad/s, m/s], the friction of slipping bristles; 1 for joints without
        bristles.
        """
        low, extra, speed = self._curve
        return np.asarray(low + extra * np.exp(-((v / speed) ** 2)))

    @cached_property
    def _curve(self) -> tuple[Array, Array, Array]:
        """Fc, Fs − Fc and vs, with arbitrary valid numbers for joints without bristles."""
        there = self.stiffness > 0.0
        choices = ((self.coulomb, 1.0), (self.static - self.coulomb, 0.0), (self.stribeck_speed, 1.0))
        low, extra, speed = (np.where(there, value, none) for value, none in choices)
        return low, extra, speed

    def steady(self, v: ArrayLike) -> Array:
        """Compute friction at constant velocities `v` [rad/s, m/s]: the Stribeck curve g(v) sign(v) + σ₂v."""
        w = np.asarray(v, dtype=float)
        return np.asarray(np.where(self.stiffness > 0.0, self.level(w) * np.sign(w), 0.0) + self.viscous * w)


@short_repr
@dataclass(frozen=True, eq=False)
class LuGreRun:
    """The simulated motion, with the bristles' deflection [rad, m] and the friction [N m, N] at every sample."""

    simulation: Simulation
    bristles: Array
    friction: Array


def simulate_lugre(
    model: Model,
    friction: LuGre,
    drive: Drive = None,
    *,
    duration: float | None = None,
    times: ArrayLike | None = None,
    step: float = 1e-3,
    q0: ArrayLike | None = None,
    dq0: ArrayLike | None = None,
    z0: ArrayLike | None = None,
    reference: Any = None,
    control_period: float | None = None,
    record_every: int = 1,
    sensors: Sensors | None = None,
    bound: float = 1e4,
) -> LuGreRun:
    """Simulate a model with LuGre friction at every joint instead of its Coulomb terms; other terms remain.

    Args:
        model: Robot model.
        friction: LuGre parameters.
        drive, duration, times, step, q0, dq0: As in `simulate`.
        z0: Initial deflection of the bristles (joints,) [rad, m]; default: zero.
        reference, control_period, record_every, sensors, bound: As in `simulate`.
    """
    n = model.robot.dof
    if friction.joints != n:
        raise ShapeError(f"The LuGre parameters are of {friction.joints} joints; '{model.robot.name}' has {n}.")
    schedule = schedule_of(duration, times, step, control_period, record_every)
    command = command_of(drive, reference, schedule, n)
    if command.states:
        raise SimulationError("A controller with states, such as PID, is not supported with LuGre friction; use PD.")
    stepper = _Stepper(model, friction, schedule.step)
    q, v, z = (_row(x, n, name) for x, name in ((q0, "q0"), (dq0, "dq0"), (z0, "z0")))
    recorded = {name: np.empty((schedule.samples, n)) for name in ("q", "dq", "ddq", "tau", "z", "F")}
    tau = np.zeros(n)
    for k in range(schedule.steps + 1):
        if k % schedule.hold == 0:
            tau = command.torque(0, k // schedule.hold, schedule.start + k * schedule.step, q, v)
        if k % schedule.every == 0:
            F = stepper.friction_at(v, z)
            sample = {"q": q, "dq": v, "ddq": stepper.acceleration(q, v, tau - F), "tau": tau, "z": z, "F": F}
            for name, value in sample.items():
                recorded[name][k // schedule.every] = value
        if k < schedule.steps:
            q, v, z = stepper(q, v, z, tau)
            if not np.all(np.abs(q) < bound):
                raise SimulationError(f"The motion diverged at {k * schedule.step:g} s; check the torque.")
    signals = {name: recorded[name] for name in ("q", "dq", "ddq", "tau")}
    done = np.array([Ending.COMPLETED], dtype=np.int64)
    run = Simulation(
        model.robot.joint_names, schedule.times, **signals, outcome=done, stopped=np.array([np.nan]), sensors=sensors
    )
    return LuGreRun(run, recorded["z"], recorded["F"])


class _Stepper(ImplicitStepper):
    """Steps of h seconds of one robot."""

    def __init__(self, model: Model, friction: LuGre, h: float) -> None:
        super().__init__(model, plant_of(model.robot, model.terms, 1e-2))
        self._h, self.friction = h, friction
        self._dampers = friction.damping + friction.viscous

    def __call__(self, q: Array, v: Array, z: Array, tau: Array) -> tuple[Array, Array, Array]:
        f, h = self.friction, self._h
        mass, bias, _, _ = self.physics(q, v)
        matrix = mass / h
        known = matrix @ v + tau - bias
        own = matrix.diagonal().copy()
        new, slip = v, v
        for _ in range(_ROUNDS):
            # Without slip the smallest rate gives (1 − e^{−ah})/a = h as well.
            rate = f.stiffness * np.abs(slip) / f.level(slip) + 1e-9 / h
            lost = -np.expm1(-rate * h)
            reach, left = lost / rate, z * (1.0 - lost)
            hold = f.stiffness - f.damping * rate
            matrix.flat[:: self._n + 1] = own + hold * reach + self._dampers
            new = np.asarray(np.linalg.solve(matrix, known - hold * left), dtype=np.float64)
            slip = 0.5 * (v + new)
        return q + 0.5 * h * (v + new), new, left + new * reach

    def friction_at(self, v: Array, z: Array) -> Array:
        f = self.friction
        slip = f.stiffness * np.abs(v) / f.level(v) * z
        return np.asarray(f.stiffness * z + f.damping * (v - slip) + f.viscous * v)

    def acceleration(self, q: Array, v: Array, torque: Array) -> Array:
        mass, bias, _, _ = self.physics(q, v)
        return np.asarray(np.linalg.solve(mass, torque - bias))


def _row(value: ArrayLike | None, n: int, name: str) -> Array:
    row = np.zeros(n) if value is None else np.asarray(value, dtype=float)
    if row.shape != (n,) or not np.all(np.isfinite(row)):
        raise ShapeError(f"{name} has shape {row.shape}; expected ({n},), finite.")
    return row


# Refine the LuGre parameters of a single joint until its simulated motion matches the measured one (output error).


_NAMES = tuple(f.name for f in fields(LuGre))


@short_repr
@dataclass(frozen=True, eq=False)
class LuGreFit:
    """Result of a fit: parameters, standard errors of the free ones (for white noise), and misfits [rad, m]."""

    friction: LuGre
    standard_errors: dict[str, float]
    rmse: float
    start_rmse: float


def refine_lugre(
    model: Model, log: Log, start: LuGre, free: Sequence[str] = _NAMES, *, step: float = 1e-3, scale: float = 1e-3
) -> LuGreFit:
    """Fit LuGre parameters to the log of a robot with one joint (`load_robot(…, joints=[…])`).

    Positions of the whole log are predicted from its first state and its torques alone. Parameters vary on a
    logarithmic scale, so that they stay positive.

    Args:
        model: Robot model without the friction.
        log: Measured motion and torques.
        start: Initial parameters.
        free: Names of the parameters to fit.
        step: Integration step [s].
        scale: Misfit beyond which samples lose weight [rad, m]: after one wrong break-away the whole prediction is
            wrong.
    """
    if model.robot.dof != 1:
        raise SimulationError(f"'{model.robot.name}' has {model.robot.dof} joints; lock all but one.")
    if log.tau is None or log.dq is None:
        raise LogError("The log has no torque or no velocity; both are needed to predict a motion.")
    for name in free:
        if name not in _NAMES:
            raise UnknownNameError("LuGre parameter", name, _NAMES)
    first = np.array([float(getattr(start, name)[0]) for name in free])
    if np.any(first <= 0.0):
        raise SimulationError("Parameters to be fitted must start above zero; change `start`.")
    tau, speed = log.tau[:-1], log.dq[0]

    def predicted(x: Array) -> Array:
        friction = _with(start, free, first * np.exp(x))
        run = simulate_lugre(model, friction, tau, times=log.t, step=step, q0=log.q[0], dq0=speed)
        return np.asarray(run.simulation.q[:, 0] - log.q[:, 0])

    from scipy.optimize import least_squares  # takes a tenth of a second to import

    settings: dict[str, Any] = {"loss": "soft_l1", "f_scale": scale, "diff_step": 1e-3, "xtol": 1e-4, "ftol": 1e-6}
    found = least_squares(predicted, np.zeros(len(free)), bounds=(-3.0, 3.0), **settings)
    rest = predicted(found.x)
    rms = float(np.sqrt(np.mean(rest**2)))
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * rms**2
    values = first * np.exp(found.x)
    errors = dict(zip(free, (values * np.sqrt(np.diag(covariance))).tolist(), strict=True))
    begun = float(np.sqrt(np.mean(predicted(np.zeros(len(free))) ** 2)))
    return LuGreFit(_with(start, free, values), errors, rms, begun)


def _with(start: LuGre, free: Sequence[str], values: Array) -> LuGre:
    changes: dict[str, Any] = {name: np.array([value]) for name, value in zip(free, values, strict=True)}
    # The fit may try static friction below Coulomb friction, which is invalid: use the same value for both.
    static, coulomb = changes.get("static", start.static), changes.get("coulomb", start.coulomb)
    return replace(start, **{**changes, "static": np.maximum(static, coulomb)})
