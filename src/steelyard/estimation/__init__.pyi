"""Estimators: parameters and covariance from the rows of a log; one file per method, one interface."""

from .estimate import Estimate, EstimationError, Estimator, LinearEstimator, Prior, Result
from .kalman.filtering import ExtendedKalman, SigmaPointKalman
from .kalman.particle import ParticleFilter
from .kalman.rules import CentralDifference, Cubature, Unscented
from .kalman.tuning import Tuning
from .linear.covariance import confidence_intervals, relative_standard_deviations
from .linear.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from .linear.ridge import Ridge
from .linear.robust import Robust
from .linear.significance import Significance, fit_significant, joint_test, significance
from .linear.total_least_squares import RestrictedTotalLeastSquares, TotalLeastSquares
from .neural.adaline import Adaline
from .neural.hopfield import Hopfield, HopfieldTank
from .possible.physical import PhysicallyConsistent
from .recursion.forgetting import Constant, Directional, Forgetting, Variable
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
from .simulation_error.didim import DirectInverse
from .simulation_error.experiment import Experiment, Run
from .simulation_error.instrumental import InstrumentalVariables
from .simulation_error.maximum_likelihood import MaximumLikelihood
from .simulation_error.output_error import OutputError

__all__ = [
    "ESTIMATORS",
    "Adaline",
    "CentralDifference",
    "Constant",
    "Cubature",
    "DirectInverse",
    "Directional",
    "Estimate",
    "EstimationError",
    "Estimator",
    "Experiment",
    "ExtendedKalman",
    "Forgetting",
    "Hopfield",
    "HopfieldTank",
    "InstrumentalVariables",
    "LinearEstimator",
    "MaximumLikelihood",
    "Movement",
    "OrdinaryLeastSquares",
    "OutputError",
    "ParticleFilter",
    "PhysicallyConsistent",
    "Prior",
    "Recursive",
    "RecursiveLeastSquares",
    "RestrictedTotalLeastSquares",
    "Result",
    "Ridge",
    "Robust",
    "Run",
    "SequentialIdentification",
    "SequentialPlan",
    "SigmaPointKalman",
    "Significance",
    "Snapshot",
    "StateError",
    "Step",
    "TotalLeastSquares",
    "Tuning",
    "Unscented",
    "Variable",
    "WeightedLeastSquares",
    "confidence_intervals",
    "estimator",
    "estimator_help",
    "estimator_names",
    "fit_log",
    "fit_significant",
    "identify_sequentially",
    "joint_test",
    "make_estimator",
    "make_experiment_estimator",
    "make_physical",
    "read_plan",
    "recursive",
    "relative_standard_deviations",
    "significance",
]
