"""Estimators: θ ± Σ from the rows of a log, one file per method, one contract."""

from steelyard.estimation.covariance import confidence_intervals, relative_standard_deviations
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior, Result
from steelyard.estimation.ols import OrdinaryLeastSquares
from steelyard.estimation.physical import PhysicallyConsistent
from steelyard.estimation.registry import ESTIMATORS, make_estimator, make_physical
from steelyard.estimation.ridge import Ridge
from steelyard.estimation.robust import Robust
from steelyard.estimation.significance import Significance, fit_significant, joint_test, significance
from steelyard.estimation.tls import TotalLeastSquares
from steelyard.estimation.wls import WeightedLeastSquares

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "EstimationError",
    "Estimator",
    "OrdinaryLeastSquares",
    "PhysicallyConsistent",
    "Prior",
    "Result",
    "Ridge",
    "Robust",
    "Significance",
    "TotalLeastSquares",
    "WeightedLeastSquares",
    "confidence_intervals",
    "fit_significant",
    "joint_test",
    "make_estimator",
    "make_physical",
    "relative_standard_deviations",
    "significance",
]
