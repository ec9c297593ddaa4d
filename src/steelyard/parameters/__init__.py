"""What a parameter is: names, units and bounds of the ten per link and of the joint terms."""

from steelyard.parameters.inertial import INERTIAL_NAMES, inertial_parameters_of
from steelyard.parameters.library import (
    TERMS,
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    Counterbalance,
    Custom,
    Offset,
    Quadratic,
    Rotor,
    Spring,
    StribeckAtan,
    Viscous,
    make_term,
)
from steelyard.parameters.term import Column, Term
from steelyard.parameters.terms import Parameter, Terms, nominal_terms, terms

__all__ = [
    "INERTIAL_NAMES",
    "TERMS",
    "AsymmetricCoulomb",
    "AsymmetricViscous",
    "Column",
    "Coulomb",
    "Counterbalance",
    "Custom",
    "Offset",
    "Parameter",
    "Quadratic",
    "Rotor",
    "Spring",
    "StribeckAtan",
    "Term",
    "Terms",
    "Viscous",
    "inertial_parameters_of",
    "make_term",
    "nominal_terms",
    "terms",
]
