"""Families of smooth motions of a joint, linear in their coefficients, and trajectories of all joints."""

from .family import Family, TrajectoryError
from .fixed_pieces import Fixed, Idle
from .piecewise import Acceleration, BSpline, SplinedQuintic, cubic, free_quintic, quintic
from .sinusoids import Cosines, Fourier
from .trajectory import Trajectory

__all__ = [
    "Acceleration", "BSpline", "Cosines", "Family", "Fixed", "Fourier", "Idle", "SplinedQuintic", "Trajectory",
    "TrajectoryError", "cubic", "free_quintic", "quintic",
]  # fmt: skip
