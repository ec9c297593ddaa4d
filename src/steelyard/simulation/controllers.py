"""Controllers, as formulas over scalars that are compiled with the plant.

A controller is a frozen object. Its `law` computes the torques of one control instant from the state and the
reference; the simulation holds them until the next. All numbers of a controller are in `settings`, so that one
compiled law serves all gains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SimulationError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.scalars import Scalar, Vector, maximum, minimum, plus
from steelyard.ground.short_repr import short_repr
from steelyard.simulation.dry_friction import smooth_terms

# A reference at one instant: position, velocity, acceleration.
_Reference = tuple[Vector, Vector, Vector]


@short_repr
@dataclass(frozen=True, eq=False)
class Controller(ABC):
    """A feedback law with gains per joint: kp [N m/rad, N/m], kd [N m s/rad, N s/m] and torque limit [N m, N]."""

    kp: Array
    kd: Array
    limit: Array | None = field(default=None, kw_only=True)
    # Additional gains of a subclass.
    _more_gains: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kp", frozen(np.atleast_1d(np.asarray(self.kp, dtype=float))))
        for name in ("kd", "limit", *self._more_gains):
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, frozen(np.broadcast_to(np.asarray(value, float), self.kp.shape)))
                except ValueError:
                    raise ShapeError(f"{name} has shape {np.shape(value)}; kp has {len(self.kp)} joints.") from None
        for name in ("kp", "kd", "limit", *self._more_gains):
            value = getattr(self, name)
            if value is not None and (np.any(np.isnan(value)) or np.any(value < 0.0)):
                raise SimulationError(f"{type(self).__name__}: {name} must not be negative or NaN, but is {value}.")

    @classmethod
    def for_model(
        cls, model: Model, bandwidth_rad_s: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> Self:
        """Choose gains for a bandwidth and a damping ratio, from the inertias that the law does not compensate.

        Args:
            model: Robot to be controlled.
            bandwidth_rad_s: Bandwidth of every joint's loop [rad/s].
            damping: Damping ratio of every joint's loop; 1 is critical.
            limit: Torque limit [N m, N].
        """
        inertia = cls._effective_inertia(model)
        kp, kd = inertia * bandwidth_rad_s**2, inertia * (2.0 * damping * bandwidth_rad_s)
        bound = None if limit is None else np.asarray(limit, dtype=float)
        return cls(kp=kp, kd=kd, limit=bound, **cls._more_fields(model, kp, bandwidth_rad_s))

    @classmethod
    def _effective_inertia(cls, model: Model) -> Array:
        return effective_inertia(model)

    @classmethod
    def _more_fields(cls, model: Model, kp: Array, bandwidth_rad_s: float) -> dict[str, Any]:
        """Return fields of a subclass other than gains and limits."""
        return {}

    @property
    def settings(self) -> Array:
        """The law's numbers: kp, kd, limits if any, then those of a subclass."""
        limit = [] if self.limit is None else [self.limit]
        return np.concatenate([self.kp, self.kd, *limit, self._more_settings])

    @property
    def _more_settings(self) -> Array:
        return np.zeros(0)

    @property
    def structure(self) -> Hashable:
        """Key of the compiled code: laws of equal structure differ in their settings only."""
        return (type(self), len(self.kp), self.limit is None)

    @property
    def states(self) -> int:
        """Number of the law's states, such as integrals of errors."""
        return 0

    def rates(self, q: Vector, dq: Vector, ref_q: Vector, states: Vector, settings: Vector) -> list[Scalar]:
        """Compute the rates of the law's states until the next control instant, over scalars.

        Args:
            q: Measured positions [rad, m].
            dq: Measured velocities [rad/s, m/s].
            ref_q: Reference positions [rad, m].
            states: States of the law.
            settings: The law's numbers.
        """
        return []

    def first_states(self, dq: Array) -> Array:
        """Return initial states `(robots, states)` at velocities `dq` `(robots, joints)` [rad/s, m/s]."""
        return np.zeros((len(dq), 0))

    def states_along(self, period: float, q: Array, dq: Array, ref_q: Array, ref_dq: Array, tau: Array) -> Array:
        """Reconstruct the law's states along a measured motion, `(samples, states)`.

        Args:
            period: Time between samples [s].
            q: Measured positions [rad, m], shape (samples, joints).
            dq: Measured velocities [rad/s, m/s].
            ref_q: Reference positions [rad, m].
            ref_dq: Reference velocities [rad/s, m/s].
            tau: Measured torques [N m, N].
        """
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
        """Compute joint torques over scalars.

        Args:
            q: Positions [rad, m].
            dq: Velocities [rad/s, m/s].
            ref_q: Reference positions [rad, m].
            ref_dq: Reference velocities [rad/s, m/s].
            ref_ddq: Reference accelerations [rad/s², m/s²].
            settings: The law's numbers; default: those of this controller.
            states: States of the law.
        """
        numbers: Any = self.settings if settings is None else settings
        n = len(self.kp)
        kp, kd, rest = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
        limit, rest = ([], rest) if self.limit is None else (rest[:n], rest[n:])
        seen, rest = self._recall(dq, states, rest)
        pull = [k * (r - x) + d * (rv - v) for k, d, r, x, rv, v in zip(kp, kd, ref_q, q, ref_dq, seen, strict=True)]
        torque = self._torque(pull, q, seen, (ref_q, ref_dq, ref_ddq), rest)
        return [minimum(maximum(t, -b), b) for t, b in zip(torque, limit, strict=True)] if len(limit) else torque

    def _recall(self, dq: Vector, states: Vector, numbers: Vector) -> tuple[Vector, Vector]:
        """Return the velocity that the law uses, and its additional numbers, from its states."""
        return dq, numbers

    @abstractmethod
    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        """Compute torques before saturation; `pull` is kp·(position error) + kd·(velocity error)."""


@short_repr
@dataclass(frozen=True, eq=False)
class PD(Controller):
    """τ = kp (q_r − q) + kd (q̇_r − q̇)."""

    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        return list(pull)


@dataclass(frozen=True, eq=False)
class _ModelBased(Controller):
    """A controller with a model, whose friction is smoothed over `smoothing` [rad/s, m/s]."""

    model: Model
    smoothing: float = field(default=1e-2, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.kp) != self.model.robot.dof:
            raise ShapeError(
                f"kp has {len(self.kp)} entries; the controller's model has {self.model.robot.dof} joints."
            )
        object.__setattr__(self, "_physics", Dynamics(self.model.robot, smooth_terms(self.model.terms, self.smoothing)))

    @classmethod
    def _more_fields(cls, model: Model, kp: Array, bandwidth_rad_s: float) -> dict[str, Any]:
        return {"model": model}

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


@short_repr
@dataclass(frozen=True, eq=False)
class PDGravity(_ModelBased):
    """PD with gravity compensation by the model: τ = kp e + kd ė + g(q) (Takegaki & Arimoto 1981)."""

    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        still = [0.0] * len(self.kp)
        weight = self._dynamics.inverse_over_scalars(q, still, still, numbers)
        return plus(pull, weight)


@short_repr
@dataclass(frozen=True, eq=False)
class ComputedTorque(_ModelBased):
    """τ = M(q)(q̈_r + kp e + kd ė) + h(q, q̇): with the true model ë + kd ė + kp e = 0 (Luh et al. 1980).

    Here kp has the unit 1/s² and kd 1/s.
    """

    @classmethod
    def _effective_inertia(cls, model: Model) -> Array:
        return np.ones(model.robot.dof)

    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        return self._dynamics.inverse_over_scalars(q, dq, plus(pull, reference[2]), numbers)


def effective_inertia(model: Model, q: ArrayLike | None = None) -> Array:
    """Compute the inertia of each joint while the others are free: 1/(M⁻¹)_jj [kg m², kg].

    Args:
        model: Robot model.
        q: Posture [rad, m]; default: all zero.
    """
    posture = np.zeros(model.robot.dof) if q is None else np.asarray(q, dtype=float)
    inverse = np.linalg.inv(model.mass_matrix(posture))
    effective = np.asarray(1.0 / np.diag(inverse), dtype=np.float64)
    if not np.all(effective > 0.0):
        raise SimulationError(
            "The model's mass matrix is not positive definite, so no gains exist; check its parameters."
        )
    return effective


@short_repr
@dataclass(frozen=True, eq=False)
class FeedForward(_ModelBased):
    """τ = kp e + kd ė + τ_model(q_r, q̇_r, q̈_r): the model is evaluated along the reference, not along the motion.

    A wrong model acts as a disturbance that the feedback rejects; unlike computed torque it cannot make the loop
    unstable (Khosla & Kanade 1988).
    """

    @classmethod
    def from_gains(cls, gains: PD, model: Model) -> FeedForward:
        """Add a model to the gains of another controller.

        Args:
            gains: Controller with the gains.
            model: Model for the feedforward torque.
        """
        return cls(kp=gains.kp, kd=gains.kd, limit=gains.limit, model=model)

    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        ahead = self._dynamics.inverse_over_scalars(*reference, numbers)
        return plus(pull, ahead)


@short_repr
@dataclass(frozen=True, eq=False)
class PID(Controller):
    """τ = kp e + kd (q̇_r − v) + ki ∫e dt with e = q_r − q; ki in N m/(rad s) (N/(m s)).

    The law is evaluated at control instants: the integral is a sum of rectangles. v is the controller's velocity
    signal. It follows q̇ with a time constant `lag` [s]; zero means no lag. A lag of one control period is a delay by
    one, as when two encoder samples two periods apart are differenced. A lag shorter than half the control period is
    unstable. The integral continues at the torque limits.
    """

    ki: Array = field(default_factory=lambda: np.zeros(1))
    lag: float = field(default=0.0, kw_only=True)
    _more_gains: ClassVar[tuple[str, ...]] = ("ki",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(np.isinf(self.ki)):
            raise SimulationError(f"PID: ki must not be negative or NaN, but is {self.ki}.")
        if not (np.isfinite(self.lag) and self.lag >= 0.0):
            raise SimulationError(f"PID: lag must be zero or positive seconds, not {self.lag}.")

    @classmethod
    def _more_fields(cls, model: Model, kp: Array, bandwidth_rad_s: float) -> dict[str, Any]:
        """Make the integral five times slower than the loop."""
        return {"ki": 0.2 * bandwidth_rad_s * kp}

    @property
    def _integrates(self) -> bool:
        return bool(np.any(self.ki > 0.0))

    @property
    def states(self) -> int:
        """Number of integrals (if ki is not zero) and velocities (with a lag)."""
        return len(self.kp) * (self._integrates + (self.lag > 0.0))

    @property
    def _more_settings(self) -> Array:
        return np.concatenate([self.ki, [1.0 / self.lag] if self.lag > 0.0 else []])

    @property
    def structure(self) -> Hashable:
        return (super().structure, self._integrates, self.lag > 0.0)

    def _recall(self, dq: Vector, states: Vector, numbers: Vector) -> tuple[Vector, Vector]:
        n = len(self.kp)
        integral = states[:n] if self._integrates and len(states) else [0.0] * n
        seen = states[-n:] if self.lag > 0.0 and len(states) else dq
        return seen, [k * w for k, w in zip(numbers[:n], integral, strict=True)]

    def rates(self, q: Vector, dq: Vector, ref_q: Vector, states: Vector, settings: Vector) -> list[Scalar]:
        n = len(self.kp)
        errors = [r - x for r, x in zip(ref_q, q, strict=True)] if self._integrates else []
        catching = [settings[-1] * (v - s) for v, s in zip(dq, states[-n:], strict=True)] if self.lag > 0.0 else []
        return [*errors, *catching]

    def _torque(self, pull: Vector, q: Vector, dq: Vector, reference: _Reference, numbers: Vector) -> list[Scalar]:
        return plus(pull, numbers)

    def first_states(self, dq: Array) -> Array:
        """Start without error, at the true velocity."""
        return np.hstack([np.zeros_like(dq)] * self._integrates + [dq] * (self.lag > 0.0) + [np.zeros((len(dq), 0))])

    def states_along(self, period: float, q: Array, dq: Array, ref_q: Array, ref_dq: Array, tau: Array) -> Array:
        """Return the states along a motion: velocities after the lag, and an integral that matches the mean torque."""
        seen = dq if self.lag == 0.0 else dq - self.lag * np.gradient(dq, period, axis=0)
        parts = []
        if self._integrates:
            grown = np.cumsum(ref_q - q, axis=0) * period
            grown = np.vstack([np.zeros_like(grown[:1]), grown[:-1]])
            rest = tau - self.kp * (ref_q - q) - self.kd * (ref_dq - seen)
            reference = np.divide(rest, self.ki, out=np.zeros_like(rest), where=self.ki > 0.0)
            parts.append(grown + np.mean(reference - grown, axis=0))
        return np.hstack([*parts, *([seen] if self.lag > 0.0 else [])]) if self.states else np.zeros((len(q), 0))


# Names for commands and files.
CONTROLLERS: dict[str, type[Any]] = {
    "pd": PD,
    "pd-gravity": PDGravity,
    "computed-torque": ComputedTorque,
    "feed-forward": FeedForward,
    "pid": PID,
}
