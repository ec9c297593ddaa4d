"""Ways to write the physics as rows y = A θ: by torque, momentum, energy or power, at instants or over time."""

from steelyard.regression.schemes.dynamic import Dynamic
from steelyard.regression.schemes.energy import Energy
from steelyard.regression.schemes.filtered_dynamic import FilteredDynamic
from steelyard.regression.schemes.filtered_power import FilteredPower
from steelyard.regression.schemes.known_friction import Curves, KnownFriction
from steelyard.regression.schemes.momentum import Momentum
from steelyard.regression.schemes.paper_motion import paper_motion
from steelyard.regression.schemes.power import Power
from steelyard.regression.schemes.registry import SCHEMES, make_scheme, scheme_text
from steelyard.regression.schemes.scheme import Scheme

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
    "scheme_text",
]
