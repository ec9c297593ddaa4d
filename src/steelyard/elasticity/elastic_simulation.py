"""`simulate_elastic`: forward simulation of a robot with elastic joints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.elasticity.elastic_mapping import ELASTIC_CHANNEL
from steelyard.elasticity.elasticity import Elasticity
from steelyard.errors import ShapeError, SimulationError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.signals.log import Log

# Torque of the motors [N m or N] from time [s], and positions and velocities of the motors.
MotorDrive = Callable[[float, Array, Array], ArrayLike]
_TOLERANCE = 1e-8


def simulate_elastic(
    model: Model,
    elasticity: Elasticity,
    drive: MotorDrive,
    duration: float,
    rate: float = 1000.0,
    start: ArrayLike = 0.0,
) -> Log:
    """Simulate the motion of motors and links, and return a log with both positions.

    `model` gives the links. `elasticity` gives rotor and friction of elastic joints, `model` those of the other joints.

    Args:
        model: Model of the links.
        elasticity: Elastic joints; joints with unknown stiffness are rigid.
        drive: Torque of the motors [N m or N], from time [s], positions and velocities of the motors.
        duration: Length [s].
        rate: Sampling rate of the log [Hz].
        start: Initial positions at rest [rad or m], with relaxed springs.
    """
    from scipy.integrate import solve_ivp

    plant = _Plant(model, elasticity, drive)
    n, m = model.robot.dof, len(plant.elastic)
    if not duration > 0.0 or not rate > 0.0:
        raise SteelyardError(f"A simulation of {duration:g} s at {rate:g} Hz is empty; give positive numbers.")
    q = np.broadcast_to(np.asarray(start, dtype=float), (n,))
    state = np.concatenate([q, np.zeros(n), q[plant.elastic], np.zeros(m)])
    t = np.arange(int(np.floor(duration * rate + 1e-9)) + 1) / rate
    solution = solve_ivp(
        plant.derivative, (0.0, t[-1]), state, "LSODA", t_eval=t, rtol=_TOLERANCE, atol=_TOLERANCE * 1e-2
    )
    if not solution.success:
        raise SimulationError(f"The simulation stopped at {solution.t[-1]:.3g} s: {solution.message}")
    x = solution.y.T
    q, dq = x[:, :n], x[:, n : 2 * n]
    theta, dtheta = q.copy(), dq.copy()
    theta[:, plant.elastic], dtheta[:, plant.elastic] = x[:, 2 * n : 2 * n + m], x[:, 2 * n + m :]
    tau = np.array([plant.torque(*row) for row in zip(t, theta, dtheta, strict=True)])
    names = model.robot.joint_names
    channels = {f"{ELASTIC_CHANNEL}.link.{names[k]}": q[:, k : k + 1] for k in plant.elastic}
    return Log(names, t, theta, dtheta, tau=tau, channels=channels, meta={"source": f"{model.robot.name}, simulated"})


class _Plant:
    """Equations of motion: M q̈ + h = τ_J and Ia θ̈ = τ − f − τ_J."""

    def __init__(self, model: Model, elasticity: Elasticity, drive: MotorDrive) -> None:
        robot = model.robot
        self.drive, self.n = drive, robot.dof
        known = {robot.joint_index(one.joint): one for one in elasticity.known}
        if not known:
            raise SteelyardError("No joint has a known stiffness; simulate the rigid model instead.")
        for one in known.values():
            if one.rotor is None or not one.rotor.value > 0.0:
                raise SteelyardError(f"The rotor of joint '{one.joint}' is not known, so it cannot be simulated.")
        self.elastic = np.array(sorted(known))
        each = [known[k] for k in self.elastic]
        self.K = np.array([one.stiffness for one in each])
        self.D = np.array([max(one.damping.value, 0.0) if one.damping else 0.0 for one in each])
        self.rotor = np.array([one.rotor.value for one in each if one.rotor])
        self.friction = np.array([one.friction for one in each])
        self.smooth = np.array([SMOOTHING_SPEED[robot.joints[k].kind] for k in self.elastic])
        # Rotors and friction of the model act only on rigid joints.
        elastic_terms = model.terms.per_parameter(lambda _, c: bool(np.any(np.array(c.weights)[self.elastic] != 0.0)))
        self.theta = model.theta.copy()
        self.theta[robot.inertial_count :][np.array(elastic_terms, dtype=bool)] = 0.0
        self.dynamics = model.dynamics

    def torque(self, t: float, theta: Array, dtheta: Array) -> Array:
        """Torque of the motors."""
        tau = np.asarray(self.drive(t, theta, dtheta), dtype=float)
        if tau.shape != (self.n,):
            raise ShapeError(f"The drive returned the shape {tau.shape}; the robot needs ({self.n},).")
        return tau

    def derivative(self, t: float, x: Array) -> Array:
        """Derivative of q, q̇ and of the elastic θ, θ̇."""
        n, m, own = self.n, len(self.elastic), self.elastic
        q, dq, motor, rate = x[:n], x[n : 2 * n], x[2 * n : 2 * n + m], x[2 * n + m :]
        theta, dtheta = q.copy(), dq.copy()
        theta[own], dtheta[own] = motor, rate
        tau = self.torque(t, theta, dtheta)
        spring = self.K * (motor - q[own]) + self.D * (rate - dq[own])
        friction = self.friction[:, 0] * np.tanh(rate / self.smooth) + self.friction[:, 1] * rate
        acceleration = (tau[own] - friction - spring) / self.rotor
        load = tau.copy()
        load[own] = spring
        ddq = self.dynamics.forward_dynamics(q, dq, load, self.theta)
        return np.concatenate([dq, ddq, rate, acceleration])
