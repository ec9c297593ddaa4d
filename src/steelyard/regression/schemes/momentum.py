"""`Momentum`: the torque equation integrated over time, so that no acceleration is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from steelyard.dynamics.engine import Dynamics
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes.balance import MomentumBalance, check_rule
from steelyard.regression.schemes.integrating import Windows, integrated
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.scheme import Motions
from steelyard.regression.schemes.still import Stillness, check_still


@dataclass(frozen=True)
class Momentum:
    """∫τ dt = [P θ] + ∫D θ dt over windows, one equation per joint.

    `window` (seconds) or `samples` (sampling intervals) is the length of a window; default: 1/λ, with λ five times
    2π times the band of the motion. Windows slide from row to row; `consecutive` ones follow one another; `growing`
    ones all start at the beginning. `torque` between samples is "held" (the default, exact for a controller's torque)
    or "trapezoid" (for a sensor's). Windows in which a joint with dry friction moves more slowly than `still` (rad/s,
    m/s; default 0.02 and 0.002; 0: never) are left out, and growing ones start afresh afterwards.
    """

    name: ClassVar[str] = "momentum"
    uses_acceleration: ClassVar[bool] = False
    window: float | None = None
    samples: int | None = None
    consecutive: bool = False
    growing: bool = False
    torque: Literal["held", "trapezoid"] = "held"
    still: float | None = None

    def __post_init__(self) -> None:
        check_rule(self.torque, ("held", "trapezoid"))
        check_still(self.still)
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
        friction = KnownFriction.of(dynamics.robot, known_friction)
        balance = MomentumBalance(dynamics, base.independent, friction)
        still = Stillness.of(dynamics, friction, self.still, mask)
        return integrated(balance, motions, self._windows, self.torque, still)
