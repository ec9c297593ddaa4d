"""`FilteredDynamic`: the torque equation through a low-pass, so that no acceleration is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steelyard.dynamics.engine import Dynamics
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import MomentumBalance, Rule, check_rule
from steelyard.regression.schemes.band import check_filter
from steelyard.regression.schemes.filtering import check_paper, filtered
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.scheme import Motions
from steelyard.regression.schemes.still import Stillness, check_still


@dataclass(frozen=True)
class FilteredDynamic:
    """f2[τ] = f1[P] θ + f2[D] θ with f2(s) = (λ/(s + λ))ᵒʳᵈᵉʳ and f1(s) = s·f2(s), one equation per joint.

    `cutoff` is λ in rad/s (default: five times 2π times the band of the motion). `torque` says how the torque runs
    between samples: "held" (the default, exact for a controller's torque), "trapezoid" (for a sensor's), or "paper":
    the f1(z) and f2(z) of Chávez-Olivares et al. 2012, which hold the states, too, and are half a sample late with D.
    With the first two the filter acts on the balance of every sampling interval and adds no error of its own.
    While a joint with dry friction moves more slowly than `still` (rad/s, m/s; default 0.02 and 0.002; 0: never), what
    holds it is unknown: its equation is left out, and its filter starts afresh afterwards, which costs nothing.
    """

    name: ClassVar[str] = "filtered-dynamic"
    uses_acceleration: ClassVar[bool] = False
    cutoff: float | None = None
    order: int = 1
    torque: Rule = "held"
    still: float | None = None

    def __post_init__(self) -> None:
        check_filter(self.cutoff, self.order)
        check_rule(self.torque)
        check_paper(self.torque, self.order)
        check_still(self.still)

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        friction = KnownFriction.of(dynamics.robot, known_friction)
        balance = MomentumBalance(dynamics, base.independent, friction)
        still = Stillness.of(dynamics, friction, self.still, mask)
        return filtered(balance, motions, self.cutoff, self.order, self.torque, still)
