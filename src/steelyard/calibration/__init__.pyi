"""Kinematic calibration: where the joints of a robot really are, from held poses measured from outside."""

from .calibrate import calibrate
from .calibration import Calibration, PoseErrors, StageFit
from .chain import Chain
from .design import CalibrationPoses, design_poses
from .effects import EFFECTS, Effect
from .identifiable import Identifiability, identifiable
from .measurement import MEASUREMENTS, Measurement
from .table import PoseTable, read_poses

__all__ = [
    "EFFECTS", "MEASUREMENTS", "Calibration", "CalibrationPoses", "Chain", "Effect", "Identifiability", "Measurement",
    "PoseErrors", "PoseTable", "StageFit", "calibrate", "design_poses", "identifiable", "read_poses",
]  # fmt: skip
