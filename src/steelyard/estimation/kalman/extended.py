"""`ExtendedKalman` (EKF): state and base parameters together, linearised along the way."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.estimation.kalman.filtering import KalmanFilter
from steelyard.estimation.kalman.predict import ByDerivatives, Predictor


@dataclass(frozen=True)
class ExtendedKalman(KalmanFilter):
    """The joint extended Kalman filter, with exact derivatives of the Runge–Kutta (or Euler) step.

    With `square_root` the covariance is kept as a triangular root (same estimate, half the digits needed). Claims:
    the parameters of a well-excited, well-tuned run to a few of its standard errors. Does not claim: minimum variance
    (it is linearised about its own estimate), nor robustness against a wrong start: a bad one may diverge, and says so.
    """

    def predictor(self) -> Predictor:
        return ByDerivatives()
