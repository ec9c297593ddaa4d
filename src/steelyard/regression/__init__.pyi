"""Base parameters, and the rows y = A·θ that estimators solve."""

from .base_parameters import BaseParameters, base_parameters
from .data import RegressionData
from .factor import Factor, triangle
from .inspection import Inspection, inspect_robot
from .normal_matrix import NormalMatrix
from .rows import Equation, Rows
from .schemes import SCHEMES, make_scheme
from .spectra import BAND_EDGES
from .unknowns import Unknowns

__all__ = [
    "BAND_EDGES", "SCHEMES", "BaseParameters", "Equation", "Factor", "Inspection", "NormalMatrix", "RegressionData",
    "Rows", "Unknowns", "base_parameters", "inspect_robot", "make_scheme", "triangle",
]  # fmt: skip
