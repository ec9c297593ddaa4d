"""Estimators side by side: on simulated robots whose truth is known, or on a log with a part held out."""

from steelyard.compare_estimators.advice import RULES, Advice, advice
from steelyard.compare_estimators.comparison import Comparison, Summary
from steelyard.compare_estimators.fit import Run
from steelyard.compare_estimators.methods import GROUPS, METHODS, Method, chosen_methods
from steelyard.compare_estimators.monte_carlo import monte_carlo
from steelyard.compare_estimators.protocol import CONTROLLERS, NOISES, Cell, Noise, Protocol, noise_from

__all__ = [
    "CONTROLLERS",
    "GROUPS",
    "METHODS",
    "NOISES",
    "RULES",
    "Advice",
    "Cell",
    "Comparison",
    "Method",
    "Noise",
    "Protocol",
    "Run",
    "Summary",
    "advice",
    "chosen_methods",
    "monte_carlo",
    "noise_from",
]
