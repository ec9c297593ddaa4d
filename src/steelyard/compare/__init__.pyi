"""Comparison of estimators, on simulated robots with known parameters or on the hold-out part of a log."""

import steelyard.simulation.controllers

from .comparison import RULES, Advice, Comparison, Summary, advice
from .methods import GROUPS, METHODS, Method, MethodRun, select_methods
from .monte_carlo import RUNS, monte_carlo, records_folder
from .on_log import LogComparison, compare_on_log
from .protocol import NOISES, Cell, Noise, Protocol, parse_noise
from .scheme_comparison import SchemeComparison, compare_schemes

CONTROLLERS = steelyard.simulation.controllers.CONTROLLERS

__all__ = [
    "CONTROLLERS", "GROUPS", "METHODS", "NOISES", "RULES", "RUNS", "Advice", "Cell", "Comparison", "LogComparison",
    "Method", "MethodRun", "Noise", "Protocol", "SchemeComparison", "Summary", "advice", "compare_on_log",
    "compare_schemes", "monte_carlo", "parse_noise", "records_folder", "select_methods",
]  # fmt: skip
