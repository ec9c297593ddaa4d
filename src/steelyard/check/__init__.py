"""Looking at a log before identifying from it: is it sound, what can its motion show, and what to do."""

from steelyard.check.check import Check, check_log
from steelyard.check.excitation import BaseParameter, Excitation, JointMotion
from steelyard.signals.log import Finding

__all__ = ["BaseParameter", "Check", "Excitation", "Finding", "JointMotion", "check_log"]
