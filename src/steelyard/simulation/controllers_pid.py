"""`PID`: a controller with a memory: the integral of the position error, and a velocity that lags behind."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError, SimulationError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.scalars import Scalar, Vector
from steelyard.simulation.controllers import (
    PD,
    ComputedTorque,
    Controller,
    FeedForward,
    PDGravity,
    Wanted,
    effective_inertia,
)


@dataclass(frozen=True, eq=False)
class PID(Controller):
    """τ = kp e + kd (q̇_r − v) + ki ∫e dt with e = q_r − q; ki in N m/(rad s) (N/(m s)).

    All of it happens at control instants, as in a computer: the integral is a sum of rectangles. v is the velocity
    that the controller sees: it follows q̇ with a time constant `lag` (s), zero: at once; `lag` of one control period
    is a delay by one, as when two samples of an encoder that lie two periods apart are differenced. A lag shorter
    than half the control period is unstable. The integral is not stopped at the limits.
    """

    ki: Array = field(default_factory=lambda: np.zeros(1))
    lag: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            object.__setattr__(self, "ki", frozen(np.broadcast_to(np.asarray(self.ki, float), self.kp.shape)))
        except ValueError:
            raise ShapeError(f"ki has shape {np.shape(self.ki)}; kp speaks of {len(self.kp)} joints.") from None
        if not np.all(np.isfinite(self.ki)) or np.any(self.ki < 0.0):
            raise SimulationError(f"PID: ki must not be negative or missing: {self.ki}.")
        if not (np.isfinite(self.lag) and self.lag >= 0.0):
            raise SimulationError(f"PID: lag must be zero or positive seconds, not {self.lag}.")

    @classmethod
    def for_model(
        cls, model: Model, bandwidth: float = 15.0, damping: float = 1.0, limit: ArrayLike | None = None
    ) -> PID:
        """Gains for a bandwidth (rad/s) and a damping ratio; the integral acts a fifth as fast."""
        inertia = effective_inertia(model)
        kp = inertia * bandwidth**2
        bound = None if limit is None else np.asarray(limit, dtype=float)
        return cls(kp, 2.0 * damping * bandwidth * inertia, limit=bound, ki=0.2 * bandwidth * kp)

    @property
    def _integrates(self) -> bool:
        return bool(np.any(self.ki > 0.0))

    @property
    def states(self) -> int:
        """Integrals (if ki is not zero), then velocities (if they lag)."""
        return len(self.kp) * (self._integrates + (self.lag > 0.0))

    @property
    def _more_settings(self) -> Array:
        return np.concatenate([self.ki, [1.0 / self.lag] if self.lag > 0.0 else []])

    @property
    def structure(self) -> Hashable:
        return (super().structure, self._integrates, self.lag > 0.0)

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
        numbers: Any = self.settings if settings is None else settings
        n = len(self.kp)
        first = len(numbers) - n - (self.lag > 0.0)
        integral = states[:n] if self._integrates and len(states) else [0.0] * n
        seen = states[-n:] if self.lag > 0.0 and len(states) else dq
        push = [k * w for k, w in zip(numbers[first : first + n], integral, strict=True)]
        return super().law(q, seen, ref_q, ref_dq, ref_ddq, [*numbers[:first], *push])

    def rates(self, q: Vector, dq: Vector, ref_q: Vector, states: Vector, settings: Vector) -> list[Scalar]:
        n = len(self.kp)
        errors = [r - x for r, x in zip(ref_q, q, strict=True)] if self._integrates else []
        catching = [settings[-1] * (v - s) for v, s in zip(dq, states[-n:], strict=True)] if self.lag > 0.0 else []
        return [*errors, *catching]

    def _torque(self, pull: Vector, q: Vector, dq: Vector, wanted: Wanted, numbers: Vector) -> list[Scalar]:
        return [a + b for a, b in zip(pull, numbers, strict=True)]

    def first_states(self, dq: Array) -> Array:
        """No error so far, and the true velocity."""
        return np.hstack([np.zeros_like(dq)] * self._integrates + [dq] * (self.lag > 0.0) + [np.zeros((len(dq), 0))])

    def states_along(self, period: float, q: Array, dq: Array, ref_q: Array, ref_dq: Array, tau: Array) -> Array:
        """The lag acts on the velocities; the integral starts such that the mean torque is explained."""
        seen = dq if self.lag == 0.0 else dq - self.lag * np.gradient(dq, period, axis=0)
        parts = []
        if self._integrates:
            grown = np.cumsum(ref_q - q, axis=0) * period
            grown = np.vstack([np.zeros_like(grown[:1]), grown[:-1]])
            rest = tau - self.kp * (ref_q - q) - self.kd * (ref_dq - seen)
            wanted = np.divide(rest, self.ki, out=np.zeros_like(rest), where=self.ki > 0.0)
            parts.append(grown + np.mean(wanted - grown, axis=0))
        return np.hstack([*parts, *([seen] if self.lag > 0.0 else [])]) if self.states else np.zeros((len(q), 0))


# By the names that people type.
CONTROLLERS: dict[str, type[Any]] = {
    "pd": PD,
    "pd-gravity": PDGravity,
    "computed-torque": ComputedTorque,
    "feed-forward": FeedForward,
    "pid": PID,
}
