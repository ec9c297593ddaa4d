"""Local models: one model per workspace region, and the bank that blends them (Pedrocchi et al. 2013)."""

import steelyard.errors

from .bank import BLEND, Bank, LocalModel, Prediction
from .design import Design, design, evolved_plan
from .identify import (
    GLOBAL,
    SimulatedArm,
    default_sensors,
    design_regions,
    first_seconds,
    identify_globally,
    identify_locally,
)
from .motions import (
    MotionLike,
    Repeated,
    home_posture,
    motion_from_dict,
    motion_to_dict,
    random_motion,
    sample_postures,
)
from .recalibrate import ModelDrift, recalibrate
from .region import CartesianRegion, JointRegion, Region
from .regions import check_regions, overlap, read_regions
from .run_folders import BankRun, RegionMotions, bank_json, load_bank, read_motions, save_bank, whole_model
from .validate_bank import BankValidation, validate_bank

LocalError = steelyard.errors.LocalError
OutsideError = steelyard.errors.OutsideError

__all__ = [
    "BLEND", "GLOBAL", "Bank", "BankRun", "BankValidation", "CartesianRegion", "Design", "JointRegion",
    "LocalError", "LocalModel", "ModelDrift", "MotionLike", "OutsideError", "Prediction", "Region",
    "RegionMotions", "Repeated", "SimulatedArm", "bank_json", "check_regions", "default_sensors", "design",
    "design_regions", "evolved_plan", "first_seconds", "home_posture", "identify_globally", "identify_locally",
    "load_bank", "motion_from_dict", "motion_to_dict", "overlap", "random_motion", "read_motions", "read_regions",
    "recalibrate", "sample_postures", "save_bank", "validate_bank", "whole_model",
]  # fmt: skip
