"""Estimators side by side: on simulated robots whose truth is known, or on a log with a part held out."""

import steelyard.simulation.controllers

from .comparison import RULES, Advice, Comparison, Summary, advice
from .methods import GROUPS, METHODS, Method, MethodRun, chosen_methods
from .monte_carlo import monte_carlo
from .protocol import NOISES, Cell, Noise, Protocol, noise_from

CONTROLLERS = steelyard.simulation.controllers.CONTROLLERS

__all__ = [
    "CONTROLLERS", "GROUPS", "METHODS", "NOISES", "RULES", "Advice", "Cell", "Comparison", "Method", "MethodRun",
    "Noise", "Protocol", "Summary", "advice", "chosen_methods", "monte_carlo", "noise_from",
]  # fmt: skip
