"""What a model is used for: to move as the robot would, to be judged by that, to be found movement by movement."""

from .simulated import Simulated, let_move
from .stepwise import Stepwise
from .validated import Swept, Trial, Validated, validate_on_logs, validate_on_plant

__all__ = [
    "Simulated", "Stepwise", "Swept", "Trial", "Validated", "let_move", "validate_on_logs", "validate_on_plant",
]  # fmt: skip
