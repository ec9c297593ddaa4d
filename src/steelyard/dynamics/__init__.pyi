"""The physics, written once over scalars, traced per robot, and run everywhere."""

from .engine import Dynamics
from .frame_motion import FrameKinematics
from .model import Model

__all__ = [
    "Dynamics", "FrameKinematics", "Model",
]  # fmt: skip
