"""What a parameter is: names, units and bounds of the ten per link and of the joint terms."""

from steelyard.parameters.friction import (
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
from steelyard.parameters.history import (
    Lag,
    LoadedCoulomb,
    LoadedStop,
    Rate,
    RememberingTerm,
    RigidLoad,
    Stop,
    StopElement,
)
from steelyard.parameters.inertial import INERTIAL_NAMES, inertial_parameters_of
from steelyard.parameters.loads import Counterbalance, Custom, Offset, Ripple, Rotor, Spring
from steelyard.parameters.term import TERMS, Along, Column, ShapeParameter, Simple, Term, describe_terms, make_term
from steelyard.parameters.terms import Parameter, Terms, identification_terms, nominal_terms, terms

__all__ = [
    "INERTIAL_NAMES",
    "TERMS",
    "Along",
    "AsymmetricCoulomb",
    "AsymmetricViscous",
    "Column",
    "Coulomb",
    "Counterbalance",
    "Custom",
    "DryTerm",
    "FrictionTable",
    "Lag",
    "LoadedCoulomb",
    "LoadedStop",
    "Offset",
    "Parameter",
    "Quadratic",
    "Rate",
    "RememberingTerm",
    "RigidLoad",
    "Ripple",
    "Rotor",
    "ShapeParameter",
    "Simple",
    "Spring",
    "Stop",
    "StopElement",
    "Stribeck",
    "StribeckAtan",
    "Term",
    "Terms",
    "Viscous",
    "describe_terms",
    "identification_terms",
    "inertial_parameters_of",
    "make_term",
    "nominal_terms",
    "terms",
]
