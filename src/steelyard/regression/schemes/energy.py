"""`Energy`: the work that the drives supplied equals what is stored plus what friction took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.dynamics.engine import Dynamics
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import EnergyBalance, check_rule
from steelyard.regression.schemes.integrating import Windows, integrated
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.scheme import Motions
from steelyard.regression.schemes.still import Stillness


@dataclass(frozen=True)
class Energy:
    """∫q̇ᵀτ dt = [E θ] + ∫L θ dt over windows, one equation for the robot.

    `window` (seconds) or `samples` (sampling intervals) is the length of a window; default: 1/λ, with λ 2π times the
    band of the motion. Windows slide from row to row; `consecutive` ones follow one another (the short integral of
    Kozłowski & Dutkiewicz 1996); `growing` ones all start at the beginning (their long integral, and the
    supplied-energy scheme of Chávez-Olivares et al. 2012).
    `work` is "held" (the default): τ_{k−1}ᵀ(q_k − q_{k−1}), exact for a torque that is held between samples, which on
    the latter's experiment cuts the bias of noise-free data from 30 % to 0.03 %; or "trapezoid" of τᵀq̇, as printed.
    A mask has no effect: what holds a joint still does no work.
    """

    name: ClassVar[str] = "energy"
    uses_acceleration: ClassVar[bool] = False
    window: float | None = None
    samples: int | None = None
    consecutive: bool = False
    growing: bool = False
    work: Literal["held", "trapezoid"] = "held"

    def __post_init__(self) -> None:
        check_rule(self.work, ("held", "trapezoid"))
        _ = self._windows

    @property
    def _windows(self) -> Windows:
        return Windows(self.window, self.samples, self.consecutive, self.growing)

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        balance = EnergyBalance(dynamics, base.independent, KnownFriction.of(dynamics.robot, known_friction))
        return integrated(balance, motions, self._windows, self.work, Stillness.never(dynamics.robot.dof))
