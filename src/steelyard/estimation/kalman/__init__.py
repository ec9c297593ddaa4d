"""Filters over state and parameters together: extended, unscented, cubature, central-difference, particle."""

from steelyard.estimation.kalman.filtering import ExtendedKalman, KalmanFilter, SigmaPointKalman
from steelyard.estimation.kalman.particle import ParticleFilter
from steelyard.estimation.kalman.rules import CentralDifference, Cubature, Unscented
from steelyard.estimation.kalman.tuning import Tuning

__all__ = [
    "CentralDifference",
    "Cubature",
    "ExtendedKalman",
    "KalmanFilter",
    "ParticleFilter",
    "SigmaPointKalman",
    "Tuning",
    "Unscented",
]
