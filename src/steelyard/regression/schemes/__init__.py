"""Ways to write the physics as rows y = A θ: by torque, momentum, energy or power, at instants or over time."""

from steelyard.regression.schemes.dynamic import Dynamic, Power
from steelyard.regression.schemes.filtered_balance import FilteredDynamic, FilteredPower
from steelyard.regression.schemes.integral import Energy, Momentum
from steelyard.regression.schemes.paper_motion import paper_motion
from steelyard.regression.schemes.scheme import (
    SCHEMES,
    Scheme,
    make_scheme,
    scheme_help,
    scheme_names,
    scheme_table,
    scheme_text,
)
from steelyard.regression.schemes.still import Curves, KnownFriction

__all__ = [
    "SCHEMES",
    "Curves",
    "Dynamic",
    "Energy",
    "FilteredDynamic",
    "FilteredPower",
    "KnownFriction",
    "Momentum",
    "Power",
    "Scheme",
    "make_scheme",
    "paper_motion",
    "scheme_help",
    "scheme_names",
    "scheme_table",
    "scheme_text",
]
