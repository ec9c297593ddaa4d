"""`SigmaPointKalman` (UKF, CKF, CDKF): the belief is carried by points instead of derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.estimation.kalman.filtering import KalmanFilter
from steelyard.estimation.kalman.predict import BySigmaPoints, Predictor
from steelyard.estimation.kalman.rules import Rule, Unscented


@dataclass(frozen=True)
class SigmaPointKalman(KalmanFilter):
    """Sigma points by a rule of `kalman.rules`; two for every parameter, coordinate of the state and torque.

    With `square_root` the points come from a root that is never squared. Claims and does not claim what the extended
    filter does; curvature (a Coulomb jump within the uncertainty of a velocity) is seen to second order. Parameters far
    out may make a point's mass matrix indefinite; the filter then stops, and says so.
    """

    rule: Rule = field(default_factory=Unscented)

    def predictor(self) -> Predictor:
        return BySigmaPoints(self.rule)
