"""Simulated robots: plants with friction, controllers, sensors, and the logs they give."""

from steelyard.simulation.command import Reference
from steelyard.simulation.controllers import PD, ComputedTorque, Controller, PDGravity, effective_inertia
from steelyard.simulation.controllers_feedforward import FeedForward
from steelyard.simulation.controllers_pid import PID
from steelyard.simulation.ending import Outcome
from steelyard.simulation.lugre import LuGre, LuGreRun, simulate_lugre
from steelyard.simulation.lugre_fit import LuGreFit, refine_lugre
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulate import SimulationWarning, simulate
from steelyard.simulation.simulation import Simulation
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
