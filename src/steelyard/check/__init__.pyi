"""Check a log before identification: whether it is sound, what its motion shows, and what to fix."""

import steelyard.signals.log

from .check import Check, check_later_piece, check_log, check_study
from .columns import ROWS_LOOKED_AT
from .excitation import BaseParameter, Excitation, JointMotion
from .guess import guess_mapping
from .guessed_mapping import GuessedMapping
from .page import check_verdict, findings_html, in_order, motion_html
from .repair_mapping import as_toml, repair_mapping
from .saved_checks import read_checks
from .several_checks import Checks, join_checks

Finding = steelyard.signals.log.Finding

__all__ = [
    "ROWS_LOOKED_AT", "BaseParameter", "Check", "Checks", "Excitation", "Finding", "GuessedMapping", "JointMotion",
    "as_toml", "check_later_piece", "check_log", "check_study", "check_verdict", "findings_html", "guess_mapping",
    "in_order", "join_checks", "motion_html", "read_checks", "repair_mapping",
]  # fmt: skip
