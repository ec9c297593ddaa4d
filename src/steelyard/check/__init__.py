"""Looking at a log before identifying from it: is it sound, what can its motion show, and what to do."""

from steelyard.check.check import Check, check_log
from steelyard.check.entry import Entry
from steelyard.check.excitation import BaseParameter, Excitation, JointMotion

__all__ = ["BaseParameter", "Check", "Entry", "Excitation", "JointMotion", "check_log"]
