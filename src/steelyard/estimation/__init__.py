"""Estimators: θ ± Σ from the rows of a log, one file per method, one contract."""

from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior, Result
from steelyard.estimation.kalman import (
    CentralDifference,
    Cubature,
    ExtendedKalman,
    ParticleFilter,
    SigmaPointKalman,
    Tuning,
    Unscented,
)
from steelyard.estimation.linear.covariance import confidence_intervals, relative_standard_deviations
from steelyard.estimation.linear.fit_log import fit_log
from steelyard.estimation.linear.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from steelyard.estimation.linear.ridge import Ridge
from steelyard.estimation.linear.robust import Robust
from steelyard.estimation.linear.significance import Significance, fit_significant, joint_test, significance
from steelyard.estimation.linear.total_least_squares import RestrictedTotalLeastSquares, TotalLeastSquares
from steelyard.estimation.neural import Adaline, Hopfield, HopfieldTank
from steelyard.estimation.possible.physical import PhysicallyConsistent
from steelyard.estimation.recursion.forgetting import Constant, Directional, Forgetting, Variable
from steelyard.estimation.recursion.rls import RecursiveLeastSquares
from steelyard.estimation.recursion.state import StateError
from steelyard.estimation.recursion.stream import Recursive, Snapshot, recursive
from steelyard.estimation.registry import (
    ESTIMATORS,
    EXPERIMENT_ESTIMATORS,
    FILTERS,
    NETWORKS,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from steelyard.estimation.sequential.identify import SequentialIdentification, Step, identify_sequentially
from steelyard.estimation.sequential.movement import Movement
from steelyard.estimation.simulated.didim import DirectInverse
from steelyard.estimation.simulated.experiment import Experiment, ExperimentEstimator, Run
from steelyard.estimation.simulated.instrumental import InstrumentalVariables
from steelyard.estimation.simulated.maximum_likelihood import MaximumLikelihood
from steelyard.estimation.simulated.output_error import OutputError

__all__ = [
    "ESTIMATORS",
    "EXPERIMENT_ESTIMATORS",
    "FILTERS",
    "NETWORKS",
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
    "ExperimentEstimator",
    "ExtendedKalman",
    "Forgetting",
    "Hopfield",
    "HopfieldTank",
    "InstrumentalVariables",
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
    "fit_log",
    "fit_significant",
    "identify_sequentially",
    "joint_test",
    "make_estimator",
    "make_experiment_estimator",
    "make_physical",
    "recursive",
    "relative_standard_deviations",
    "significance",
]
