"""Comparison of estimators, on simulated robots with known parameters or on the hold-out part of a log."""

import steelyard.simulation.controllers

from .comparison import RULES, Advice, Comparison, Summary, advice
from .methods import GROUPS, METHODS, Method, MethodRun, select_methods
from .monte_carlo import monte_carlo
from .protocol import NOISES, Cell, Noise, Protocol, parse_noise

CONTROLLERS = steelyard.simulation.controllers.CONTROLLERS

__all__ = [
    "CONTROLLERS", "GROUPS", "METHODS", "NOISES", "RULES", "Advice", "Cell", "Comparison", "Method", "MethodRun",
    "Noise", "Protocol", "Summary", "advice", "monte_carlo", "parse_noise", "select_methods",
]  # fmt: skip
