"""Controllers: what a robot's own computer does, as formulas over scalars that are compiled with the plant.

A controller is a frozen object. Its `law` gives the torques of one control instant from the state and the
reference; the simulation holds them until the next. All numbers of a controller are in `settings`, so that one
compiled law serves all gains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SimulationError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.scalars import Scalar, Vector, maximum, minimum
from steelyard.simulation.friction import smoothed

# A reference at one instant: position, velocity, acceleration.
Wanted = tuple[Vector, Vector, Vector]


@dataclass(frozen=True, eq=False)
class Controller(ABC):
    """A feedback law with gains per joint: kp in N m/rad (N/m), kd in N m s/rad (N s/m), `limit` in N m (N)."""

    kp: Array
    kd: Array
    limit: Array | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kp", frozen(np.atleast_1d(np.asarray(self.kp, dtype=float))))
        for name in ("kd", "limit"):
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, frozen(np.broadcast_to(np.asarray(value, float), self.kp.shape)))
                except ValueError:
                    raise ShapeError(
                        f"{name} has shape {np.shape(value)}; kp speaks of {len(self.kp)} joints."
                    ) from None
        for name in ("kp", "kd", "limit"):
            value = getattr(self, name)
            if value is not None and (np.any(np.isnan(value)) or np.any(value < 0.0)):
                raise SimulationError(f"{type(self).__name__}: {name} must not be negative or missing: {value}.")

    @property
    def settings(self) -> Array:
        """The law's numbers: kp, kd, the limits if there are any, then what a subclass adds."""
        limit = [] if self.limit is None else [self.limit]
        return np.concatenate([self.kp, self.kd, *limit, self._more_settings])

    @property
    def _more_settings(self) -> Array:
        return np.zeros(0)

    @property
    def structure(self) -> Hashable:
        """What the formulas depend on besides the settings: laws of equal structure share compiled code."""
        return (type(self), len(self.kp), self.limit is None)

    @property
    def states(self) -> int:
        """How many numbers the law remembers, such as integrals of errors."""
        return 0

    def rates(self, q: Vector, dq: Vector, ref_q: Vector, states: Vector, settings: Vector) -> list[Scalar]:
        """How fast what the law remembers changes until the next control instant, over scalars."""
        return []

    def first_states(self, dq: Array) -> Array:
        """What the law remembers when it is switched on at velocities `(robots, joints)`: `(robots, states)`."""
        return np.zeros((len(dq), 0))

    def states_along(self, period: float, q: Array, dq: Array, ref_q: Array, ref_dq: Array, tau: Array) -> Array:
        """What the law must have remembered along a measured motion, `(samples, states)`."""
        return np.zeros((len(q), 0))

    def law(
        self,
        q: Vector,
        dq: Vector,
        ref_q: Vector,
        ref_dq: Vector,
        ref_ddq: Vector,
        settings: Vector | None = None,
        states: Vector = (),
    ) -> list[Scalar]:
        """Joint torques over scalars; `settings` stands in for the controller's own numbers."""
        numbers: Any = self.settings if settings is None else settings
        n = len(self.kp)
        kp, kd, rest = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
        limit, rest = ([], rest) if self.limit is None else (rest[:n], rest[n:])
        pull = [k * (r - x) + d * (rv - v) for k, d, r, x, rv, v in zip(kp, kd, ref_q, q, ref_dq, dq, strict=True)]
        torque = self._torque(pull, q, dq, (ref_q, ref_dq, ref_ddq), rest)
        return [minimum(maximum(t, -b), b) for t, b in zip(torque, limit, strict=True)] if len(limit) else torque

    @abstractmethod
    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        """Torques before saturation; `pull` is kp·(position error) + kd·(velocity error), `wanted` the reference."""


@dataclass(frozen=True, eq=False)
class PD(Controller):
    """τ = kp (q_r − q) + kd (q̇_r − q̇)."""

    @classmethod
    def for_model(
        cls, model: Model, bandwidth: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> PD:
        """Gains for a bandwidth (rad/s) and a damping ratio, from the model's effective inertias."""
        kp, kd = _gains(effective_inertia(model), bandwidth, damping)
        return cls(kp=kp, kd=kd, limit=_limit(limit))

    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        return list(pull)


@dataclass(frozen=True, eq=False)
class _ModelBased(Controller):
    """A controller that knows a model; its friction is compensated smoothly, over `smoothing` rad/s."""

    model: Model
    smoothing: float = field(default=1e-2, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.kp) != self.model.robot.dof:
            raise ShapeError(
                f"kp has {len(self.kp)} entries; the controller's model has {self.model.robot.dof} joints."
            )
        object.__setattr__(self, "_physics", Dynamics(self.model.robot, smoothed(self.model.terms, self.smoothing)))

    @property
    def _dynamics(self) -> Dynamics:
        physics: Dynamics = self._physics  # type: ignore[attr-defined]
        return physics

    @property
    def _more_settings(self) -> Array:
        return self.model.theta

    @property
    def structure(self) -> Hashable:
        robot = self.model.robot
        motors = robot.transmission.motors if robot.transmission is not None else ()
        return (super().structure, robot.fingerprint, robot.joint_names, motors, self._dynamics.terms.terms)


@dataclass(frozen=True, eq=False)
class PDGravity(_ModelBased):
    """PD and the torque that holds the model still: τ = kp e + kd ė + g(q) (Takegaki & Arimoto 1981)."""

    @classmethod
    def for_model(
        cls, model: Model, bandwidth: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> PDGravity:
        """Gains for a bandwidth (rad/s) and a damping ratio, from the model's effective inertias."""
        kp, kd = _gains(effective_inertia(model), bandwidth, damping)
        return cls(kp=kp, kd=kd, limit=_limit(limit), model=model)

    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        still = [0.0] * len(self.kp)
        weight = self._dynamics.inverse_over_scalars(q, still, still, numbers)
        return [a + b for a, b in zip(pull, weight, strict=True)]


@dataclass(frozen=True, eq=False)
class ComputedTorque(_ModelBased):
    """τ = M(q)(q̈_r + kp e + kd ė) + h(q, q̇): with the true model ë + kd ė + kp e = 0 (Luh et al. 1980).

    Here kp is in 1/s² and kd in 1/s.
    """

    @classmethod
    def for_model(
        cls, model: Model, bandwidth: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> ComputedTorque:
        """Gains for a bandwidth (rad/s) and a damping ratio."""
        kp, kd = _gains(np.ones(model.robot.dof), bandwidth, damping)
        return cls(kp=kp, kd=kd, limit=_limit(limit), model=model)

    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        acceleration = [a + b for a, b in zip(pull, wanted[2], strict=True)]
        return self._dynamics.inverse_over_scalars(q, dq, acceleration, numbers)


def effective_inertia(model: Model, q: ArrayLike | None = None) -> Array:
    """What each joint feels of the robot when the others are free: 1/(M⁻¹)_jj, at q (default: all zero)."""
    posture = np.zeros(model.robot.dof) if q is None else np.asarray(q, dtype=float)
    inverse = np.linalg.inv(model.mass_matrix(posture))
    effective = np.asarray(1.0 / np.diag(inverse), dtype=np.float64)
    if not np.all(effective > 0.0):
        raise SimulationError("The model's mass matrix is not positive definite; no gains follow from it.")
    return effective


def _gains(inertia: Array, bandwidth: float, damping: float) -> tuple[Array, Array]:
    return inertia * bandwidth**2, inertia * (2.0 * damping * bandwidth)


def _limit(limit: ArrayLike | None) -> Array | None:
    return None if limit is None else np.asarray(limit, dtype=float)


# `FeedForward`: PD, and the torque that a model says the reference needs.


@dataclass(frozen=True, eq=False)
class FeedForward(_ModelBased):
    """τ = kp e + kd ė + τ_model(q_r, q̇_r, q̈_r): the model acts along the reference, not along the motion.

    A wrong model is a disturbance here, which the feedback fights; unlike computed torque it cannot make the loop
    unstable (Khosla & Kanade 1988).
    """

    @classmethod
    def for_model(
        cls, model: Model, bandwidth: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> FeedForward:
        """Gains for a bandwidth (rad/s) and a damping ratio, from the model's effective inertias."""
        return cls.beside(PD.for_model(model, bandwidth, damping, limit), model)

    @classmethod
    def beside(cls, gains: PD, model: Model) -> FeedForward:
        """The gains of another controller, and a model."""
        return cls(kp=gains.kp, kd=gains.kd, limit=gains.limit, model=model)

    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        ahead = self._dynamics.inverse_over_scalars(*wanted, numbers)
        return [a + b for a, b in zip(pull, ahead, strict=True)]
