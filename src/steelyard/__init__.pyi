"""Find the true dynamic model of a robot from its own motion."""

from .assessment.replay import Possibility, Replay, possibility, replay
from .check import Check, check_log
from .check.guess import guess_mapping
from .compare.on_log import LogComparison, compare_on_log
from .dynamics.engine import Dynamics
from .dynamics.model import Model
from .errors import (
    LogError,
    RobotError,
    ShapeError,
    SimulationError,
    SteelyardError,
    StructureError,
    UnknownNameError,
)
from .estimation.recursion.stream import recursive
from .estimation.registry import fit_log
from .estimation.sequential.identify import identify_sequentially
from .estimation.sequential.movement import Movement
from .excitation import ExcitationError, Plan, excite
from .export.coerce import as_model
from .floating.bodies import identify_bodies
from .floating.identify import identify_floating
from .floating.result import FloatingIdentification
from .friction.measure import FrictionCurves, measure_friction
from .identification.identification import Identification
from .identification.identify import identify
from .parameters.terms import Parameter, Terms, nominal_terms, terms
from .payload.identify import PayloadResult, identify_payload
from .project import Project
from .regression.base_parameters import BaseParameters, base_parameters
from .regression.inspection import Inspection, inspect_robot
from .robot.library import builtin_names
from .robot.load import load_robot
from .robot.robot import Joint, Link, Robot
from .robot.transmission import BallScrew, ConstantRatio, Transmission
from .signals.log import Log
from .signals.prepare import Preparation
from .signals.read import load_log, read_log
from .simulation import PD, ComputedTorque, PDGravity, Sensors, Simulation, TorqueSignal, Wave, simulate
from .use.predict import Predictions, predict
from .use.validated import Validated, validate_on_logs, validate_on_plant

__all__ = [
    "PD", "BallScrew", "BaseParameters", "Check", "ComputedTorque", "ConstantRatio", "Dynamics", "ExcitationError",
    "FloatingIdentification", "FrictionCurves", "Identification", "Inspection", "Joint", "Link", "Log",
    "LogComparison", "LogError", "Model", "Movement", "PDGravity", "Parameter", "PayloadResult", "Plan",
    "Possibility", "Predictions", "Preparation", "Project", "Replay", "Robot", "RobotError", "Sensors",
    "ShapeError", "Simulation", "SimulationError", "SteelyardError", "StructureError", "Terms", "TorqueSignal",
    "Transmission", "UnknownNameError", "Validated", "Wave", "as_model", "base_parameters", "builtin_names",
    "check_log", "compare_on_log", "excite", "fit_log", "guess_mapping", "identify", "identify_bodies",
    "identify_floating", "identify_payload", "identify_sequentially", "inspect_robot", "load_log", "load_robot",
    "measure_friction", "nominal_terms", "possibility", "predict", "read_log", "recursive", "replay", "simulate",
    "terms", "validate_on_logs", "validate_on_plant",
]  # fmt: skip
