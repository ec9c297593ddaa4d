"""Simulated robots: plants with friction, controllers, sensors, and the logs they give."""

from steelyard.simulation.command import Reference
from steelyard.simulation.controllers import PD, ComputedTorque, Controller, PDGravity, effective_inertia
from steelyard.simulation.ending import Outcome
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulate import SimulationWarning, simulate
from steelyard.simulation.simulation import Simulation

__all__ = [
    "PD",
    "ComputedTorque",
    "Controller",
    "Outcome",
    "PDGravity",
    "Reference",
    "Sensors",
    "Simulation",
    "SimulationWarning",
    "effective_inertia",
    "simulate",
]
