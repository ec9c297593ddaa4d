"""The physics, written once over scalars, traced per robot, and run everywhere."""

from .bodies import inverse_dynamics
from .engine import Dynamics
from .evaluate import Evaluator, compiled_at_once
from .frame_motion import FrameKinematics
from .function import Function, trace
from .model import Model
from .momentum import MomentumBalance, momentum_balance
from .native.scan import LaneScan, Scan, flat_entries

__all__ = [
    "Dynamics", "Evaluator", "FrameKinematics", "Function", "LaneScan", "Model", "MomentumBalance", "Scan",
    "compiled_at_once", "flat_entries", "inverse_dynamics", "momentum_balance", "trace",
]  # fmt: skip
