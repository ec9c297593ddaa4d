"""Uses of a model: torque prediction, simulation, validation, export, and sequential identification."""

from .model_export import FORMATS, Exported
from .model_validation import Swept, Trial, Validated, validate_on_logs, validate_on_plant
from .predict import PredictedLog, Predictions, predict
from .simulated_motion import Simulated, let_move
from .stepwise import Stepwise

__all__ = [
    "FORMATS", "Exported", "PredictedLog", "Predictions", "Simulated", "Stepwise", "Swept", "Trial", "Validated",
    "let_move", "predict", "validate_on_logs", "validate_on_plant",
]  # fmt: skip
