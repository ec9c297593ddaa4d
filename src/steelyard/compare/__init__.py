"""Estimators side by side: on simulated robots whose truth is known, or on a log with a part held out."""

from steelyard.compare.comparison import RULES, Advice, Comparison, Summary, advice
from steelyard.compare.methods import GROUPS, METHODS, Method, Run, chosen_methods
from steelyard.compare.monte_carlo import monte_carlo
from steelyard.compare.protocol import NOISES, Cell, Noise, Protocol, noise_from
from steelyard.simulation.controllers_pid import CONTROLLERS

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
