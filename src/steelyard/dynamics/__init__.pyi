"""The physics, written once over scalars, traced per robot, and run everywhere."""

from .engine import Dynamics
from .evaluate import compiled_at_once
from .frame_motion import FrameKinematics
from .model import Model

__all__ = [
    "Dynamics", "FrameKinematics", "Model", "compiled_at_once",
]  # fmt: skip
