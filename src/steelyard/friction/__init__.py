"""Friction over velocity: measured at constant speeds or from any motion, as laws that can be drawn and subtracted."""

from steelyard.friction.breakaway import BreakAway, break_away
from steelyard.friction.choose import Choice, choose_law
from steelyard.friction.drift import Drift, friction_drift
from steelyard.friction.laws import LAWS, FittedLaw, Law, fit_law
from steelyard.friction.measure import FrictionCurves, JointFriction, measure_friction
from steelyard.friction.plateaus import Plateau, find_plateaus

__all__ = [
    "LAWS",
    "BreakAway",
    "Choice",
    "Drift",
    "FittedLaw",
    "FrictionCurves",
    "JointFriction",
    "Law",
    "Plateau",
    "break_away",
    "choose_law",
    "find_plateaus",
    "fit_law",
    "friction_drift",
    "measure_friction",
]
