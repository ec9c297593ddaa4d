"""Closed kinematic loops: their equations, and the motion of joints without encoder."""

from .branch import LoopMotion
from .mechanism import Mechanism

__all__ = ["LoopMotion", "Mechanism"]
