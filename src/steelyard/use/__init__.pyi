"""Uses of a model: torque prediction, simulation, validation, export, and sequential identification."""

from .model_export import FORMATS, ModelExport
from .model_validation import ModelValidation, Swept, Trial, validate_on_logs, validate_on_plant
from .predict import PredictedLog, Predictions, predict
from .sequential_result import SequentialResult
from .simulated_motion import SimulatedMotion, simulate_model

__all__ = [
    "FORMATS",
    "ModelExport",
    "ModelValidation",
    "PredictedLog",
    "Predictions",
    "SequentialResult",
    "SimulatedMotion",
    "Swept",
    "Trial",
    "predict",
    "simulate_model",
    "validate_on_logs",
    "validate_on_plant",
]  # fmt: skip
