"""How a joint may move: families of smooth motions, linear in their coefficients, and trajectories made of them."""

from steelyard.excitation.trajectories.acceleration import Acceleration
from steelyard.excitation.trajectories.family import Family, TrajectoryError
from steelyard.excitation.trajectories.fixed import Fixed, Idle
from steelyard.excitation.trajectories.piecewise import BSpline, SplinedQuintic, cubic, free_quintic, quintic
from steelyard.excitation.trajectories.sinusoids import Cosines, Fourier
from steelyard.excitation.trajectories.trajectory import Trajectory

__all__ = [
    "Acceleration",
    "BSpline",
    "Cosines",
    "Family",
    "Fixed",
    "Fourier",
    "Idle",
    "SplinedQuintic",
    "Trajectory",
    "TrajectoryError",
    "cubic",
    "free_quintic",
    "quintic",
]
