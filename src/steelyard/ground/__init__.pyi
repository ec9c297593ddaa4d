"""The ground floor: arrays, scalars, files, documents, outcomes. It knows nothing of robots."""

from . import scalars
from .arithmetic import evaluate_expression
from .arrays import Array
from .field import Field
from .files import plain, write_whole
from .folders import RunFolderError, check_target, growing_folder, run_folder, sweep_up
from .numbers import number
from .outcome import Content, Outcome, Presentation, Viewed
from .reasons import explained
from .registry import Registry
from .schema import build
from .untrusted import read_json

__all__ = [
    "Array", "Content", "Field", "Outcome", "Presentation", "Registry", "RunFolderError", "Viewed", "build",
    "check_target", "evaluate_expression", "explained", "growing_folder", "number", "plain", "read_json", "run_folder",
    "scalars", "sweep_up", "write_whole",
]  # fmt: skip
