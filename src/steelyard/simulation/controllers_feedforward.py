"""`FeedForward`: PD, and the torque that a model says the reference needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.scalars import Scalar, Vector, maximum, minimum
from steelyard.simulation.controllers import PD, _ModelBased


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
        kp, kd, rest = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
        limit, theta = ([], rest) if self.limit is None else (rest[:n], rest[n:])
        ahead = self._dynamics.inverse_over_scalars(ref_q, ref_dq, ref_ddq, theta)
        pull = [k * (r - x) + d * (rv - v) for k, d, r, x, rv, v in zip(kp, kd, ref_q, q, ref_dq, dq, strict=True)]
        torque = [a + b for a, b in zip(pull, ahead, strict=True)]
        return [minimum(maximum(t, -b), b) for t, b in zip(torque, limit, strict=True)] if len(limit) else torque

    def _torque(self, pull: Vector, q: Vector, dq: Vector, ref_ddq: Vector, numbers: Vector) -> list[Scalar]:
        raise NotImplementedError  # `law` needs the whole reference
