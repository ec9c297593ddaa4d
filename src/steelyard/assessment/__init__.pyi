"""How good a model is, on data that was not used: scores, hold-outs, verdicts."""

from .model_validation import ModelValidation, Swept, Trial, validate_on_logs, validate_on_plant
from .sensitivity import Sensitivity, agreement_index, residual_standard_deviation, rms, sweep
from .validation_ways import Validation, Way, validate

__all__ = [
    "ModelValidation", "Sensitivity", "Swept", "Trial", "Validation", "Way", "agreement_index",
    "residual_standard_deviation", "rms", "sweep", "validate", "validate_on_logs", "validate_on_plant",
]  # fmt: skip
