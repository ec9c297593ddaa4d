"""Filters over state and parameters together: extended, unscented, cubature, central-difference, particle."""

from steelyard.estimation.kalman.extended import ExtendedKalman
from steelyard.estimation.kalman.filtering import KalmanFilter
from steelyard.estimation.kalman.particle import ParticleFilter
from steelyard.estimation.kalman.rules import CentralDifference, Cubature, Unscented
from steelyard.estimation.kalman.sigma_point import SigmaPointKalman
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
