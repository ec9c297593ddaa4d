"""Constraints of a motion: limits of joints, drives and space, at every instant and between the samples."""

from .limits import Constraint, JointLimits, Limits, default_limits
from .traced_limit import Plane, Point, TracedLimit, box

__all__ = [
    "Constraint", "JointLimits", "Limits", "Plane", "Point", "TracedLimit", "box", "default_limits",
]  # fmt: skip
