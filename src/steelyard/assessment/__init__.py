"""How good a model is, on data that was not used: scores, hold-outs, verdicts."""

from steelyard.assessment.sensitivity import Sensitivity, agreement_index, residual_standard_deviation, rms, sweep
from steelyard.assessment.validation_ways import Validation, Way, validate

__all__ = [
    "Sensitivity",
    "Validation",
    "Way",
    "agreement_index",
    "residual_standard_deviation",
    "rms",
    "sweep",
    "validate",
]
