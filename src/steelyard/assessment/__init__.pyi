"""How good a model is, on data that was not used: scores, hold-outs, verdicts."""

from .sensitivity import Sensitivity, agreement_index, residual_standard_deviation, rms, sweep
from .validation_ways import Validation, Way, validate

__all__ = [
    "Sensitivity", "Validation", "Way", "agreement_index", "residual_standard_deviation", "rms", "sweep", "validate",
]  # fmt: skip
