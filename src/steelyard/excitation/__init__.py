"""Motions that make a robot's parameters visible."""

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, Limits, Plane, Point, box, default_limits
from steelyard.excitation.criteria import CRITERIA, Criterion
from steelyard.excitation.excite import excite
from steelyard.excitation.plan import Plan
from steelyard.excitation.poses import Poses, static_poses
from steelyard.excitation.search import Progress, Settings
from steelyard.excitation.several import Given, excite_next, excite_several, given_by
from steelyard.excitation.trajectories import Fourier, SplinedQuintic

__all__ = [
    "CRITERIA",
    "Constraint",
    "Criterion",
    "ExcitationError",
    "Fourier",
    "Given",
    "Limits",
    "Plan",
    "Plane",
    "Point",
    "Poses",
    "Progress",
    "Settings",
    "SplinedQuintic",
    "box",
    "default_limits",
    "excite",
    "excite_next",
    "excite_several",
    "given_by",
    "static_poses",
]
