"""Simulated robots: plants with friction, controllers, sensors, and the logs they give."""

from .command import Reference
from .controllers import PD, PID, ComputedTorque, Controller, FeedForward, PDGravity, effective_inertia
from .lugre import LuGre, LuGreFit, LuGreRun, refine_lugre, simulate_lugre
from .play import good_sensors, play
from .sensors import Sensors
from .simulate import SimulationWarning, simulate
from .simulated_motion import SimulatedMotion, simulate_model
from .simulation import Ending, Simulation
from .torque_signal import TorqueSignal, Wave, read_torque_signal

__all__ = [
    "PD", "PID", "ComputedTorque", "Controller", "Ending", "FeedForward", "LuGre", "LuGreFit", "LuGreRun",
    "PDGravity", "Reference", "Sensors", "SimulatedMotion", "Simulation", "SimulationWarning", "TorqueSignal",
    "Wave", "effective_inertia", "good_sensors", "play", "read_torque_signal", "refine_lugre", "simulate",
    "simulate_lugre", "simulate_model",
]  # fmt: skip
