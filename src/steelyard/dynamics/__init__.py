"""The physics, written once over scalars, traced per robot, and run everywhere."""

from steelyard.dynamics.engine import Dynamics

__all__ = ["Dynamics"]
