"""Find the true dynamic model of a robot from its own motion."""

from steelyard.assessment.replay import Possibility, Replay, possibility, replay
from steelyard.check import Check, check_log
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import (
    RobotError,
    ShapeError,
    SimulationError,
    SteelyardError,
    StructureError,
    UnknownNameError,
)
from steelyard.estimation.fit_log import fit_log
from steelyard.estimation.movement import Movement
from steelyard.estimation.recursive import recursive
from steelyard.estimation.sequential import identify_sequentially
from steelyard.excitation import ExcitationError, Plan, excite
from steelyard.identify import Identification, identify
from steelyard.inspection import Inspection, inspect_robot
from steelyard.parameters.terms import Parameter, Terms, nominal_terms, terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.library import builtin_names
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Joint, Link, Robot
from steelyard.robot.transmission import BallScrew, ConstantRatio, Transmission
from steelyard.signals.log import Log, LogError, load_log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import read_log
from steelyard.simulation import PD, ComputedTorque, PDGravity, Sensors, Simulation, TorqueSignal, Wave, simulate

__all__ = [
    "PD",
    "BallScrew",
    "BaseParameters",
    "Check",
    "ComputedTorque",
    "ConstantRatio",
    "Dynamics",
    "ExcitationError",
    "Identification",
    "Inspection",
    "Joint",
    "Link",
    "Log",
    "LogError",
    "Model",
    "Movement",
    "PDGravity",
    "Parameter",
    "Plan",
    "Possibility",
    "Preparation",
    "Replay",
    "Robot",
    "RobotError",
    "Sensors",
    "ShapeError",
    "Simulation",
    "SimulationError",
    "SteelyardError",
    "StructureError",
    "Terms",
    "TorqueSignal",
    "Transmission",
    "UnknownNameError",
    "Wave",
    "base_parameters",
    "builtin_names",
    "check_log",
    "excite",
    "fit_log",
    "identify",
    "identify_sequentially",
    "inspect_robot",
    "load_log",
    "load_robot",
    "nominal_terms",
    "possibility",
    "read_log",
    "recursive",
    "replay",
    "simulate",
    "terms",
]
