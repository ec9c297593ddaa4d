"""Find the true dynamic model of a robot from its own motion."""

from . import (
    actuators,
    assessment,
    assumptions,
    calibration,
    check,
    compare,
    dynamics,
    elasticity,
    errors,
    estimation,
    excitation,
    export,
    fleet,
    floating,
    friction,
    gravity,
    identification,
    local,
    loops,
    matching,
    parameters,
    payload,
    prediction,
    regression,
    rehearsal,
    report,
    robot,
    signals,
    simulation,
    trends,
    watch,
)
from .actuators import (
    ActuatorIdentification,
    CommandLog,
    DriveModel,
    Load,
    identify_actuator,
    read_command_logs,
)
from .assessment.model_validation import ModelValidation, validate_on_logs, validate_on_plant
from .assessment.replay import Possibility, Replay, possibility, replay
from .calibration import Calibration, PoseTable, calibrate, design_poses, read_poses
from .check import Check, Checks, check_log
from .check.guess import guess_mapping
from .compare import Comparison, Protocol, SchemeComparison, compare_schemes, monte_carlo
from .compare.on_log import LogComparison, compare_on_log
from .demo import run_demo
from .dynamics.engine import Dynamics
from .dynamics.model import Model
from .elasticity import Elasticity, elastic_to_mjcf, identify_elasticity, simulate_elastic, spring_torque
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
from .estimation.sequential.read_plan import read_plan
from .estimation.sequential.sequential_result import SequentialResult
from .excitation import ExcitationError, Limits, MotionDesign, Plan, design_motions, excite, read_design, static_poses
from .export import (
    ModelExport,
    load_model,
    model_to_c,
    model_to_fmu,
    model_to_mjcf,
    model_to_mujoco,
    model_to_pinocchio,
    model_to_sdf,
    model_to_urdf,
    model_to_usd,
    model_to_xacro,
)
from .export.coerce import as_model
from .fleet import Fleet, FleetOutcome, identify_fleet, read_fleet
from .floating.body_table import identify_bodies
from .floating.identify import identify_floating
from .floating.loop_check import LoopCheck, check_loops
from .floating.result import FloatingIdentification
from .friction import BreakAwayRun, design_sweeps, measure_break_away
from .friction.measure import FrictionCurves, measure_friction
from .gravity.gravity_model import GravityModel
from .gravity.identify import identify_gravity
from .ground import CancelledError, ProgressReport
from .identification import IdentificationRun, identify_files
from .identification.identification import Identification
from .identification.identify import identify
from .local import Bank, design_regions, identify_locally, load_bank, validate_bank
from .loops.mechanism import Mechanism
from .matching import Match, match_robot
from .papers.reproduce import reproduce
from .parameters.terms import Parameter, Terms, nominal_terms, terms
from .payload import Payload, excite_payload, identify_payload_by_sensor, read_payload
from .payload.identify import PayloadResult, identify_payload
from .prediction.predict import Predictions, predict
from .project import Project
from .regression.base_parameters import BaseParameters, base_parameters
from .regression.inspection import Inspection, inspect_robot
from .rehearsal import Rehearsal, rehearse
from .robot.library import builtin_names
from .robot.load import load_robot
from .robot.robot import Joint, Link, Robot
from .robot.transmission import BallScrew, ConstantRatio, Transmission
from .signals.log import Log
from .signals.prepare import Preparation
from .signals.read import load_log, read_log
from .simulation import (
    PD,
    ComputedTorque,
    PDGravity,
    Sensors,
    SimulatedMotion,
    Simulation,
    TorqueSignal,
    Wave,
    simulate,
    simulate_model,
)
from .watch.run_monitors import MonitoringResult, monitor
from .watch.settings import WatchSettings

__all__ = [
    "PD", "ActuatorIdentification", "BallScrew", "Bank", "BaseParameters", "BreakAwayRun", "Calibration",
    "CancelledError", "Check", "Checks", "CommandLog", "Comparison", "ComputedTorque", "ConstantRatio", "DriveModel",
    "Dynamics", "Elasticity", "ExcitationError", "Fleet", "FleetOutcome", "FloatingIdentification", "FrictionCurves",
    "GravityModel", "Identification", "IdentificationRun", "Inspection", "Joint", "Limits", "Link", "Load", "Log",
    "LogComparison", "LogError", "LoopCheck", "Match", "Mechanism", "Model", "ModelExport", "ModelValidation",
    "MonitoringResult", "MotionDesign", "Movement", "PDGravity", "Parameter", "Payload", "PayloadResult", "Plan",
    "PoseTable", "Possibility", "Predictions", "Preparation", "ProgressReport", "Project", "Protocol", "Rehearsal",
    "Replay", "Robot", "RobotError", "SchemeComparison", "Sensors", "SequentialResult", "ShapeError",
    "SimulatedMotion", "Simulation", "SimulationError", "SteelyardError", "StructureError", "Terms", "TorqueSignal",
    "Transmission", "UnknownNameError", "WatchSettings", "Wave", "actuators", "as_model", "assessment", "assumptions",
    "base_parameters", "builtin_names", "calibrate", "calibration", "check", "check_log", "check_loops", "compare",
    "compare_on_log", "compare_schemes", "design_motions", "design_poses", "design_regions", "design_sweeps",
    "dynamics", "elastic_to_mjcf", "elasticity", "errors", "estimation", "excitation", "excite", "excite_payload",
    "export", "fit_log", "fleet", "floating", "friction", "gravity", "guess_mapping", "identification", "identify",
    "identify_actuator", "identify_bodies", "identify_elasticity", "identify_files", "identify_fleet",
    "identify_floating", "identify_gravity", "identify_locally", "identify_payload", "identify_payload_by_sensor",
    "identify_sequentially", "inspect_robot", "load_bank", "load_log", "load_model", "load_robot", "local", "loops",
    "match_robot", "matching", "measure_break_away", "measure_friction", "model_to_c", "model_to_fmu", "model_to_mjcf",
    "model_to_mujoco", "model_to_pinocchio", "model_to_sdf", "model_to_urdf", "model_to_usd", "model_to_xacro",
    "monitor", "monte_carlo", "nominal_terms", "parameters", "payload", "possibility", "predict", "prediction",
    "read_command_logs", "read_design", "read_fleet", "read_log", "read_payload", "read_plan", "read_poses",
    "recursive", "regression", "rehearsal", "rehearse", "replay", "report", "reproduce", "robot", "run_demo",
    "signals", "simulate", "simulate_elastic", "simulate_model", "simulation", "spring_torque", "static_poses",
    "terms", "trends", "validate_bank", "validate_on_logs", "validate_on_plant", "watch",
]  # fmt: skip
