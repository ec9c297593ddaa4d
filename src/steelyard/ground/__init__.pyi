"""The ground floor: arrays, scalars, files, documents, outcomes. It knows nothing of robots."""

from . import scalars
from .arithmetic import evaluate_expression
from .arrays import Array
from .files import plain, write_whole
from .folders import RunFolderError, check_target, growing_folder, run_folder, sweep_up
from .outcome import Content, Outcome, Presentation, Viewed
from .registry import Registry

__all__ = [
    "Array", "Content", "Outcome", "Presentation", "Registry", "RunFolderError", "Viewed", "check_target",
    "evaluate_expression", "growing_folder", "plain", "run_folder", "scalars", "sweep_up", "write_whole",
]  # fmt: skip
