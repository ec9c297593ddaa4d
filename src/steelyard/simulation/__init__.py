"""Simulated robots: plants with friction, controllers, sensors, and the logs they give."""

from steelyard.simulation.command import Reference
from steelyard.simulation.controllers import PD, ComputedTorque, Controller, FeedForward, PDGravity, effective_inertia
from steelyard.simulation.controllers_pid import PID
from steelyard.simulation.lugre import LuGre, LuGreFit, LuGreRun, refine_lugre, simulate_lugre
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulate import SimulationWarning, simulate
from steelyard.simulation.simulation import Outcome, Simulation
from steelyard.simulation.torque_signal import TorqueSignal, Wave

__all__ = [
    "PD",
    "PID",
    "ComputedTorque",
    "Controller",
    "FeedForward",
    "LuGre",
    "LuGreFit",
    "LuGreRun",
    "Outcome",
    "PDGravity",
    "Reference",
    "Sensors",
    "Simulation",
    "SimulationWarning",
    "TorqueSignal",
    "Wave",
    "effective_inertia",
    "refine_lugre",
    "simulate",
    "simulate_lugre",
]
