"""Shared basics without any knowledge of robots: arrays, scalars, files, documents, outcomes, progress."""

from . import scalars
from .arithmetic import evaluate_expression
from .arrays import Array, one_blas_thread
from .field import Field
from .files import plain, write_whole
from .folders import RunFolderError, check_target, growing_folder, run_folder, sweep_up
from .grades import Tone
from .numbers import number
from .outcome import Content, Outcome, OutcomeWithPage, Presentation
from .progress import (
    CancelledError,
    ProgressCallback,
    ProgressReport,
    part,
    report_progress_to,
    reports_progress,
    steps,
)
from .reasons import explained
from .registry import Registry
from .schema import build
from .untrusted_files import read_json

__all__ = [
    "Array", "CancelledError", "Content", "Field", "Outcome", "OutcomeWithPage", "Presentation",
    "ProgressCallback", "ProgressReport", "Registry", "RunFolderError", "Tone", "build", "check_target",
    "evaluate_expression", "explained", "growing_folder", "number", "one_blas_thread", "part", "plain",
    "read_json", "report_progress_to", "reports_progress", "run_folder", "scalars", "steps", "sweep_up",
    "write_whole",
]  # fmt: skip
