"""How a joint may move: families of smooth motions, linear in their coefficients, and trajectories made of them."""

from steelyard.excitation.trajectories.acceleration import Acceleration
from steelyard.excitation.trajectories.bspline import BSpline, cubic, free_quintic, quintic
from steelyard.excitation.trajectories.cosines import Cosines
from steelyard.excitation.trajectories.family import Family, TrajectoryError
from steelyard.excitation.trajectories.fixed import Fixed
from steelyard.excitation.trajectories.fourier import Fourier
from steelyard.excitation.trajectories.idle import Idle
from steelyard.excitation.trajectories.splined_quintic import SplinedQuintic
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
