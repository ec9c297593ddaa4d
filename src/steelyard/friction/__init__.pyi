"""Measurement of friction over velocity, from constant speeds or any motion, and friction laws."""

from .breakaway import BreakAway, BreakAwayRun, break_away, measure_break_away
from .compensation import read_friction
from .design_sweeps import FrictionExperiment, design_sweeps
from .friction_options import FrictionOptions
from .laws import LAWS, Choice, FittedLaw, Law, choose_law, fit_law
from .measure import FrictionCurves, JointFriction, measure_friction
from .page import saved_curves_figure
from .plateaus import Plateau, find_plateaus
from .warm_up import FrictionDrift, friction_drift

__all__ = [
    "LAWS", "BreakAway", "BreakAwayRun", "Choice", "FittedLaw", "FrictionCurves", "FrictionDrift",
    "FrictionExperiment", "FrictionOptions", "JointFriction", "Law", "Plateau", "break_away", "choose_law",
    "design_sweeps", "find_plateaus", "fit_law", "friction_drift", "measure_break_away", "measure_friction",
    "read_friction", "saved_curves_figure",
]  # fmt: skip
