"""Friction over velocity: measured at constant speeds or from any motion, as laws that can be drawn and subtracted."""

from steelyard.friction.breakaway import BreakAway, break_away
from steelyard.friction.drift import Drift, friction_drift
from steelyard.friction.experiment import FrictionExperiment, design_sweeps
from steelyard.friction.known import read_friction
from steelyard.friction.laws import LAWS, Choice, FittedLaw, Law, choose_law, fit_law
from steelyard.friction.measure import FrictionCurves, JointFriction, measure_friction
from steelyard.friction.plateaus import Plateau, find_plateaus
from steelyard.friction.separable import Shape, Shapes, fit_shapes

__all__ = [
    "LAWS",
    "BreakAway",
    "Choice",
    "Drift",
    "FittedLaw",
    "FrictionCurves",
    "FrictionExperiment",
    "JointFriction",
    "Law",
    "Plateau",
    "Shape",
    "Shapes",
    "break_away",
    "choose_law",
    "design_sweeps",
    "find_plateaus",
    "fit_law",
    "fit_shapes",
    "friction_drift",
    "measure_friction",
    "read_friction",
]
