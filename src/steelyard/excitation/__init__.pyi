"""Motions that make a robot's parameters visible."""

import steelyard.errors

from .constraints import Constraint, Limits, Plane, Point, box, default_limits
from .controllers.target import MOTION_TARGETS, MotionTarget, Playing
from .criteria import CRITERIA, Criterion
from .designed import Designed, design_motions, expected_noise, read_designed
from .evolution import CovarianceAdaptation, Genetic, ViaPoints, evolve
from .excite import excite
from .plan import Plan
from .play import Play
from .poses import Poses, static_poses
from .search import Progress, SearchSettings
from .several import EarlierLogs, excite_next, excite_several, given_by
from .trajectories import Acceleration, Fourier, SplinedQuintic

ExcitationError = steelyard.errors.ExcitationError

__all__ = [
    "CRITERIA", "MOTION_TARGETS", "Acceleration", "Constraint", "CovarianceAdaptation", "Criterion", "Designed",
    "EarlierLogs", "ExcitationError", "Fourier", "Genetic", "Limits", "MotionTarget", "Plan", "Plane", "Play",
    "Playing", "Point", "Poses", "Progress", "SearchSettings", "SplinedQuintic", "ViaPoints", "box", "default_limits",
    "design_motions", "evolve", "excite", "excite_next", "excite_several", "expected_noise", "given_by",
    "read_designed", "static_poses",
]  # fmt: skip
