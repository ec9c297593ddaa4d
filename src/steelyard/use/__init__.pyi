"""Uses of a model: torque prediction, simulation, validation, export, and sequential identification."""

from .exported import FORMATS, Exported
from .predict import PredictedLog, Predictions, predict
from .simulated import Simulated, let_move
from .stepwise import Stepwise
from .validated import Swept, Trial, Validated, validate_on_logs, validate_on_plant

__all__ = [
    "FORMATS", "Exported", "PredictedLog", "Predictions", "Simulated", "Stepwise", "Swept", "Trial", "Validated",
    "let_move", "predict", "validate_on_logs", "validate_on_plant",
]  # fmt: skip
