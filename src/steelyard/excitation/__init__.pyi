"""Design of motions that make a robot's parameters identifiable."""

import steelyard.errors

from .constraints import Constraint, Limits, Plane, Point, box, default_limits
from .constraints.limits import limits_from
from .controller_formats.target import MOTION_TARGETS, MotionTarget, Playback
from .criteria import CRITERIA, Criterion
from .evolution import CovarianceAdaptation, Genetic, ViaPoints, evolve
from .excite import excite
from .excite_options import ExciteOptions
from .motion_design import MotionDesign, design_motions, expected_noise, read_design
from .page import joint_motion
from .plan import Plan
from .play_files import Play
from .search import Progress, SearchSettings
from .several import EarlierLogs, earlier_logs, excite_next, excite_several
from .static_poses import Poses, static_poses
from .trajectories import Acceleration, Fourier, SplinedQuintic, Trajectory

ExcitationError = steelyard.errors.ExcitationError

__all__ = [
    "CRITERIA", "MOTION_TARGETS", "Acceleration", "Constraint", "CovarianceAdaptation", "Criterion", "EarlierLogs",
    "ExcitationError", "ExciteOptions", "Fourier", "Genetic", "Limits", "MotionDesign", "MotionTarget", "Plan",
    "Plane", "Play", "Playback", "Point", "Poses", "Progress", "SearchSettings", "SplinedQuintic", "Trajectory",
    "ViaPoints", "box", "default_limits", "design_motions", "earlier_logs", "evolve", "excite", "excite_next",
    "excite_several", "expected_noise", "joint_motion", "limits_from", "read_design", "static_poses",
]  # fmt: skip
