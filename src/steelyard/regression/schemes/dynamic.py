"""Schemes at instants, which need the acceleration: `Dynamic` (torque) and `Power`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from steelyard.errors import SteelyardError
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import observe
from steelyard.regression.schemes._blocks import Motions, at_instants, first_of
from steelyard.regression.schemes.balance import POWER, TORQUE, Balance, BalanceRows
from steelyard.regression.schemes.paper_motion import Unfiltered
from steelyard.regression.schemes.scheme import SCHEMES, Scheme, option
from steelyard.signals.prepare import Motion


@SCHEMES.register("dynamic")
@dataclass(frozen=True)
class Dynamic(Scheme):
    """τ = Y(q, q̇, q̈) θ at every sample, one equation per joint; both sides through the motion's filter.

    Rows of a joint slower than the mask are excluded.

    Args:
        reversals: Uncertainty of a velocity's zero crossing [rad/s, m/s], instead of a mask: slower rows have less
            weight, since the direction of dry friction is uncertain there.
    """

    name: ClassVar[str] = "dynamic"
    equation: ClassVar[str] = "τ = Y θ"
    about: ClassVar[str] = "torques at every sample, which use all information of a log"
    balance: ClassVar[Balance] = TORQUE
    uses_acceleration: ClassVar[bool] = True
    reversals: float = option(0.0, "rows slower than this have less weight", "rad/s, m/s")

    def __post_init__(self) -> None:
        if not self.reversals >= 0.0:
            raise SteelyardError(f"reversals must be a speed of zero or more, not {self.reversals:g}.")

    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        if isinstance(first_of(motions).filter, Unfiltered):
            return at_instants(sides, motions, mask)
        known = bool(sides.friction.curves)

        def without_friction() -> Iterable[Motion]:
            return (replace(m, tau=m.tau - sides.friction.torque(m.dq)) for m in motions())

        given = without_friction if known else motions
        return observe(sides.dynamics, base, given, mask, reversals=self.reversals)


@SCHEMES.register("power")
@dataclass(frozen=True)
class Power(Scheme):
    """q̇ᵀτ = d/dt(E θ) + L θ = q̇ᵀY θ at every sample, one equation; both sides through the motion's filter."""

    name: ClassVar[str] = "power"
    equation: ClassVar[str] = "q̇ᵀτ = q̇ᵀY θ"
    about: ClassVar[str] = "the power of all joints at every sample"
    balance: ClassVar[Balance] = POWER
    uses_acceleration: ClassVar[bool] = True

    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        return at_instants(sides, motions, 0.0)
