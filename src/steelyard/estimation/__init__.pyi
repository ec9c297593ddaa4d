"""Estimators: parameters and covariance from the rows of a log; one file per method, one interface."""

from .estimate import Estimate, EstimationError, Estimator, LinearEstimator, Prior, Result
from .history import ParameterHistory
from .kalman.filtering import ExtendedKalman, SigmaPointKalman
from .kalman.particle import ParticleFilter
from .kalman.rules import CentralDifference, Cubature, Unscented
from .kalman.tuning import Tuning
from .linear._free import nearest_theta
from .linear.covariance import confidence_intervals, relative_standard_deviations
from .linear.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from .linear.log_sums import LogSums
from .linear.ridge import Ridge
from .linear.robust import Robust
from .linear.significance import Significance, fit_significant, joint_test, significance
from .linear.total_least_squares import RestrictedTotalLeastSquares, TotalLeastSquares
from .linear.widening import DEGREES_OF_MEAN, mean_ratio, shrink_to_mean, widening_factor
from .neural.adaline import Adaline
from .neural.hopfield import Hopfield, HopfieldTank
from .possible.physical import PhysicallyConsistent, nearest_possible
from .possible.reference import nominal_prior
from .recursion.forgetting import Constant, Directional, Forgetting, Variable
from .recursion.posterior import log_evidence, posterior
from .recursion.rls import RecursiveLeastSquares
from .recursion.state import StateError
from .recursion.stream import Recursive, Snapshot, recursive
from .registry import (
    ESTIMATORS,
    estimator,
    estimator_help,
    estimator_names,
    fit_log,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from .sequential.identify import SequentialIdentification, Step, identify_sequentially
from .sequential.movement import Movement
from .sequential.read_plan import SequentialPlan, read_plan
from .sequential.sequential_result import SequentialResult
from .simulation_error.control_loop import read_control_loop
from .simulation_error.didim import DirectInverse
from .simulation_error.experiment import Experiment, Run
from .simulation_error.instrumental import InstrumentalVariables
from .simulation_error.maximum_likelihood import MaximumLikelihood
from .simulation_error.output_error import OutputError

__all__ = [
    "DEGREES_OF_MEAN", "ESTIMATORS", "Adaline", "CentralDifference", "Constant", "Cubature", "DirectInverse",
    "Directional", "Estimate", "EstimationError", "Estimator", "Experiment", "ExtendedKalman", "Forgetting", "Hopfield",
    "HopfieldTank", "InstrumentalVariables", "LinearEstimator", "LogSums", "MaximumLikelihood", "Movement",
    "OrdinaryLeastSquares", "OutputError", "ParameterHistory", "ParticleFilter", "PhysicallyConsistent",
    "Prior", "Recursive", "RecursiveLeastSquares", "RestrictedTotalLeastSquares", "Result", "Ridge", "Robust", "Run",
    "SequentialIdentification", "SequentialPlan", "SequentialResult", "SigmaPointKalman", "Significance", "Snapshot",
    "StateError", "Step", "TotalLeastSquares", "Tuning", "Unscented", "Variable", "WeightedLeastSquares",
    "confidence_intervals", "estimator", "estimator_help", "estimator_names", "fit_log", "fit_significant",
    "identify_sequentially", "joint_test", "log_evidence", "make_estimator", "make_experiment_estimator",
    "make_physical", "mean_ratio", "nearest_possible", "nearest_theta", "nominal_prior", "posterior",
    "read_control_loop", "read_plan", "recursive", "relative_standard_deviations", "shrink_to_mean", "significance",
    "widening_factor",
]  # fmt: skip
