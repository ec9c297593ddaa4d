"""`FeedForward`: PD, and the torque that a model says the reference needs."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.scalars import Scalar, Vector
from steelyard.simulation.controllers import PD, Wanted, _ModelBased


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
