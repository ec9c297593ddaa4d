"""`Model`: a robot, its joint terms, and the numbers: a robot that can be predicted and simulated."""

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
    """A robot with values `theta` for all its parameters: ten per link, then the terms', in SI units.

    Motions are `(samples, joints)`: `q` in rad (m on slides), its rates `dq` and `ddq`, torques `tau` in N m (N).
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
        """The model that the description of `robot` (as `load_robot` takes it) states: inertias, friction, rotors."""
        robot = as_robot(robot)
        terms, values = nominal_terms(robot)
        return cls(robot, terms, np.concatenate([robot.inertial_parameters, values]))

    @cached_property
    def dynamics(self) -> Dynamics:
        return Dynamics(self.robot, self.terms)

    @property
    def possible(self) -> bool:
        """Whether it can exist: pseudo-inertias positive definite, terms within their bounds."""
        links = self.robot.inertial_count
        inside = bool(np.all(self.terms.lower - 1e-12 <= self.theta[links:]))
        return inside and bool(np.all(smallest_pseudo_eigenvalues(self.theta[:links]) > 0.0))

    @property
    def has_memory(self) -> bool:
        """Whether any term depends on more than position and velocity at an instant."""
        return bool(self.terms.history)

    def torque(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, period: float | None = None) -> Array:
        """Joint torques of a motion (inverse dynamics), `(samples, joints)`.

        Rows of a model that `remembers` are consecutive samples of one motion. `period` (s) is the time between them,
        which only terms that go by the rate of the torque need; without it they are left out.
        """
        past = self.dynamics.history(q, dq, ddq, self.theta, period) if self.has_memory else None
        return self.dynamics.inverse_dynamics(q, dq, ddq, self.theta, past)

    def rigid_torque(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """The part of the torque that links and rotors ask for: what the joints carry, `(samples, joints)`."""
        return self.dynamics.rigid.inverse_dynamics(q, dq, ddq, self.theta[self.dynamics.rigid_columns])

    def acceleration(self, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, history: ArrayLike | None = None) -> Array:
        """Joint accelerations under torques (forward dynamics), `(samples, joints)`; `history` as in `Dynamics`."""
        return self.dynamics.forward_dynamics(q, dq, tau, self.theta, history)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q), `(samples, joints, joints)`."""
        return self.dynamics.mass_matrix(q, self.theta)

    def gravity_torque(self, q: ArrayLike) -> Array:
        """The torque that holds the robot still, `(samples, joints)`."""
        return self.dynamics.gravity_torque(q, self.theta)

    def energy(self, q: ArrayLike, dq: ArrayLike) -> Array:
        """Kinetic plus potential energy, `(samples,)`."""
        kinetic = self.dynamics.kinetic_energy_regressor(q, dq) @ self.theta
        total: Array = kinetic + self.dynamics.potential_energy_regressor(q) @ self.theta
        return total
