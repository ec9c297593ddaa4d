"""Check a log before identification: whether it is sound, what its motion shows, and what to fix."""

import steelyard.signals.log

from .check import Check, check_log
from .excitation import BaseParameter, Excitation, JointMotion
from .several_checks import Checks

Finding = steelyard.signals.log.Finding

__all__ = [
    "BaseParameter", "Check", "Checks", "Excitation", "Finding", "JointMotion", "check_log",
]  # fmt: skip
