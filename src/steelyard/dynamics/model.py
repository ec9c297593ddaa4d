"""`Model`: a robot with its joint terms and parameter values, for prediction and simulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.terms import Terms, nominal_terms
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A robot with values for all its parameters.

    Motions are arrays `(samples, joints)`.

    Args:
        robot: Robot.
        terms: Joint terms.
        theta: Values of all parameters: ten per link, then those of the terms [SI].
        q: Positions [rad, m].
        dq: Velocities [rad/s, m/s].
        ddq: Accelerations [rad/s², m/s²].
        tau: Torques [N m, N].
        history: Signals along the motion, as in `Dynamics`.
    """

    robot: Robot
    terms: Terms
    theta: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", frozen(self.theta))
        expected = (self.robot.inertial_count + len(self.terms),)
        if self.theta.shape != expected:
            raise ShapeError(f"theta has shape {self.theta.shape}; robot '{self.robot.name}' needs {expected}.")

    def __repr__(self) -> str:
        return f"<Model of {self.robot.name}: {len(self.theta)} parameters>"

    @classmethod
    def nominal(cls, robot: RobotLike) -> Model:
        """Create the model stated by the description of `robot` (as in `load_robot`): inertias, friction, rotors."""
        robot = as_robot(robot)
        terms, values = nominal_terms(robot)
        return cls(robot, terms, np.concatenate([robot.inertial_parameters, values]))

    @cached_property
    def dynamics(self) -> Dynamics:
        return Dynamics(self.robot, self.terms)

    @property
    def possible(self) -> bool:
        """Whether it is physically possible: pseudo-inertias positive definite, terms within their bounds."""
        links = self.robot.inertial_count
        inside = bool(np.all(self.terms.lower - 1e-12 <= self.theta[links:]))
        return inside and bool(np.all(smallest_pseudo_eigenvalues(self.theta[:links]) > 0.0))

    @property
    def has_memory(self) -> bool:
        """Whether any term depends on signals along the motion."""
        return bool(self.terms.history)

    def torque(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, period: float | None = None) -> Array:
        """Compute joint torques of a motion (inverse dynamics), `(samples, joints)`.

        Args:
            q, dq, ddq: Positions [rad, m], velocities and accelerations; consecutive samples of one motion if
                `has_memory`.
            period: Time between samples [s], for terms that depend on the rate of the torque; without it they are
                omitted.
        """
        past = self.dynamics.history(q, dq, ddq, self.theta, period) if self.has_memory else None
        return self.dynamics.inverse_dynamics(q, dq, ddq, self.theta, past)

    def rigid_torque(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Compute the torque of links and rotors: the load of the joints, `(samples, joints)`."""
        return self.dynamics.rigid.inverse_dynamics(q, dq, ddq, self.theta[self.dynamics.rigid_columns])

    def acceleration(self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Compute joint accelerations (forward dynamics), `(samples, joints)`."""
        return self.dynamics.forward_dynamics(q, dq, tau, self.theta, history)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Compute M(q), `(samples, joints, joints)`."""
        return self.dynamics.mass_matrix(q, self.theta)

    def gravity_torque(self, q: ArrayLike) -> Array:
        """Compute the static torque at `q`, `(samples, joints)`."""
        return self.dynamics.gravity_torque(q, self.theta)

    def energy(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Compute kinetic plus potential energy, `(samples,)`."""
        kinetic = self.dynamics.kinetic_energy_regressor(q, dq) @ self.theta
        total: Array = kinetic + self.dynamics.potential_energy_regressor(q) @ self.theta
        return total
