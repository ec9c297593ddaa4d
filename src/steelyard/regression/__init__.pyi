"""Base parameters, and the rows y = A·θ that estimators solve."""

from .data import RegressionData
from .unknowns import Unknowns

__all__ = [
    "RegressionData", "Unknowns",
]  # fmt: skip
