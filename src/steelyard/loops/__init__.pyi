"""Closed kinematic loops: their equations, and the motion of joints that have no encoder."""

from .mechanism import Mechanism
from .path import LoopMotion

__all__ = ["LoopMotion", "Mechanism"]
