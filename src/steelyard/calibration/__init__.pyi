"""Kinematic calibration: where the joints of a robot really are, from held poses measured from outside."""

from .calibrate import calibrate
from .calibration import Calibration, PoseErrors, StageFit
from .chain import Chain
from .identifiable import GeometryIdentifiability, identifiable
from .joint_effects import EFFECTS, Effect
from .measurement import MEASUREMENTS, Measurement
from .pose_design import CalibrationPoses, design_poses
from .pose_table import PoseTable, read_poses, read_torques

__all__ = [
    "EFFECTS", "MEASUREMENTS", "Calibration", "CalibrationPoses", "Chain", "Effect", "GeometryIdentifiability",
    "Measurement", "PoseErrors", "PoseTable", "StageFit", "calibrate", "design_poses", "identifiable", "read_poses",
    "read_torques",
]  # fmt: skip
