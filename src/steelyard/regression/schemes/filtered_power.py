"""`FilteredPower`: the power equation through a low-pass, so that no acceleration is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.dynamics.engine import Dynamics
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import EnergyBalance, Rule, check_rule
from steelyard.regression.schemes.band import check_filter
from steelyard.regression.schemes.filtering import check_paper, filtered
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.scheme import Motions
from steelyard.regression.schemes.still import Stillness


@dataclass(frozen=True)
class FilteredPower:
    """f2[q̇ᵀτ] = f1[E] θ + f2[L] θ with f2(s) = (λ/(s + λ))ᵒʳᵈᵉʳ and f1(s) = s·f2(s), one equation for the robot.

    `cutoff` is λ in rad/s (default: 2π times the band of the motion). `work` says how the supplied work is found:
    "held" (the default): τ_{k−1}ᵀ(q_k − q_{k−1}), exact for a torque that is held between samples, which on the
    paper's experiment cuts the bias of noise-free data from 5 % to 0.02 %; "trapezoid" of τᵀq̇; or "paper": the f1(z)
    and f2(z) of Chávez-Olivares et al. 2012. A mask has no effect: what holds a joint still does no work.
    """

    name: ClassVar[str] = "filtered-power"
    uses_acceleration: ClassVar[bool] = False
    cutoff: float | None = None
    order: int = 1
    work: Rule = "held"

    def __post_init__(self) -> None:
        check_filter(self.cutoff, self.order)
        check_rule(self.work)
        check_paper(self.work, self.order)

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        balance = EnergyBalance(dynamics, base.independent, KnownFriction.of(dynamics.robot, known_friction))
        return filtered(balance, motions, self.cutoff, self.order, self.work, Stillness.never(dynamics.robot.dof))
