"""Looking at a log before identifying from it: is it sound, what can its motion show, and what to do."""

import steelyard.signals.log

from .check import Check, check_log
from .excitation import BaseParameter, Excitation, JointMotion
from .many import Checks

Finding = steelyard.signals.log.Finding

__all__ = [
    "BaseParameter", "Check", "Checks", "Excitation", "Finding", "JointMotion", "check_log",
]  # fmt: skip
