"""Parameters of a model: names, units and bounds of the ten per link and of the joint terms."""

from steelyard.parameters.friction import (
    SMOOTHING_SPEED,
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    DryTerm,
    FrictionTable,
    Quadratic,
    Stribeck,
    StribeckAtan,
    Viscous,
)
from steelyard.parameters.hysteresis import (
    HistoryTerm,
    Lag,
    LoadedCoulomb,
    LoadedStop,
    LoadedTerm,
    Rate,
    RigidLoad,
    Stop,
    StopElement,
)
from steelyard.parameters.inertial import INERTIAL_NAMES, inertial_parameters_of

# The order of the imports is that of the registry.
# isort: split
from steelyard.parameters.actuators import Counterbalance, Custom, Offset, Ripple, Rotor, Spring
from steelyard.parameters.term import (
    TERMS,
    Column,
    MotionSignal,
    ShapeParameter,
    SimpleTerm,
    Term,
    describe_terms,
    make_term,
)
from steelyard.parameters.terms import (
    Parameter,
    Terms,
    TermsLike,
    identification_terms,
    nominal_terms,
    terms,
    terms_named,
)

__all__ = [
    "INERTIAL_NAMES",
    "SMOOTHING_SPEED",
    "TERMS",
    "AsymmetricCoulomb",
    "AsymmetricViscous",
    "Column",
    "Coulomb",
    "Counterbalance",
    "Custom",
    "DryTerm",
    "FrictionTable",
    "HistoryTerm",
    "Lag",
    "LoadedCoulomb",
    "LoadedStop",
    "LoadedTerm",
    "MotionSignal",
    "Offset",
    "Parameter",
    "Quadratic",
    "Rate",
    "RigidLoad",
    "Ripple",
    "Rotor",
    "ShapeParameter",
    "SimpleTerm",
    "Spring",
    "Stop",
    "StopElement",
    "Stribeck",
    "StribeckAtan",
    "Term",
    "Terms",
    "TermsLike",
    "Viscous",
    "describe_terms",
    "identification_terms",
    "inertial_parameters_of",
    "make_term",
    "nominal_terms",
    "terms",
    "terms_named",
]
