"""The physics, written once over scalars, traced per robot, and run everywhere."""

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.frame_motion import FrameKinematics
from steelyard.dynamics.model import Model

__all__ = ["Dynamics", "FrameKinematics", "Model"]
