"""Motions that make a robot's parameters visible."""

from steelyard.excitation.constraints import Constraint, Limits, Plane, Point, box, default_limits
from steelyard.excitation.criteria import CRITERIA, Criterion
from steelyard.excitation.error import ExcitationError
from steelyard.excitation.excite import excite
from steelyard.excitation.plan import Plan
from steelyard.excitation.search import Progress, Settings

__all__ = [
    "CRITERIA",
    "Constraint",
    "Criterion",
    "ExcitationError",
    "Limits",
    "Plan",
    "Plane",
    "Point",
    "Progress",
    "Settings",
    "box",
    "default_limits",
    "excite",
]
