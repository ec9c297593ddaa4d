"""Local models: regions of a workspace with a model each, and the bank that joins them (Pedrocchi et al. 2013)."""

from steelyard.errors import LocalError, OutsideError
from steelyard.local.bank import BLEND, Bank, LocalModel, Prediction
from steelyard.local.bank_files import bank_json, load_bank, save_bank
from steelyard.local.design import Design, design
from steelyard.local.identify import GLOBAL, SimulatedArm, identify_globally, identify_locally
from steelyard.local.motions import home_posture, random_motion, sample_postures
from steelyard.local.recalibrate import Drift, recalibrate
from steelyard.local.region import CartesianRegion, JointRegion, Region
from steelyard.local.regions import checked_regions, overlap, read_regions
from steelyard.local.validate import Validation, validate_bank

__all__ = [
    "BLEND",
    "GLOBAL",
    "Bank",
    "CartesianRegion",
    "Design",
    "Drift",
    "JointRegion",
    "LocalError",
    "LocalModel",
    "OutsideError",
    "Prediction",
    "Region",
    "SimulatedArm",
    "Validation",
    "bank_json",
    "checked_regions",
    "design",
    "home_posture",
    "identify_globally",
    "identify_locally",
    "load_bank",
    "overlap",
    "random_motion",
    "read_regions",
    "recalibrate",
    "sample_postures",
    "save_bank",
    "validate_bank",
]
