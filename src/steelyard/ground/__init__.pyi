"""The ground floor: arrays, scalars, files, documents, outcomes. It knows nothing of robots."""

from . import scalars
from .arithmetic import evaluate_expression
from .arrays import Array
from .files import RunFolderError, plain, run_folder, write_whole
from .outcome import Content, Outcome, Presentation, Viewed
from .registry import Registry

__all__ = [
    "Array", "Content", "Outcome", "Presentation", "Registry", "RunFolderError", "Viewed", "evaluate_expression",
    "plain", "run_folder", "scalars", "write_whole",
]  # fmt: skip
