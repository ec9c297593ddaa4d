"""Base parameters, and the rows y = A·θ that estimators solve."""

from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Unknowns

__all__ = ["RegressionData", "Unknowns"]
