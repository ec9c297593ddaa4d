"""Estimators: θ ± Σ from the rows of a log, one file per method, one contract."""

from steelyard.estimation.covariance import confidence_intervals, relative_standard_deviations
from steelyard.estimation.didim import DirectInverse
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, Prior, Result
from steelyard.estimation.experiment import Experiment, ExperimentEstimator, Run
from steelyard.estimation.fit_log import fit_log
from steelyard.estimation.forgetting import Constant, Directional, Forgetting, Variable
from steelyard.estimation.instrumental import InstrumentalVariables
from steelyard.estimation.kalman import (
    CentralDifference,
    Cubature,
    ExtendedKalman,
    ParticleFilter,
    SigmaPointKalman,
    Tuning,
    Unscented,
)
from steelyard.estimation.maximum_likelihood import MaximumLikelihood
from steelyard.estimation.movement import Movement
from steelyard.estimation.neural import Adaline, Hopfield, HopfieldTank
from steelyard.estimation.ols import OrdinaryLeastSquares
from steelyard.estimation.output_error import OutputError
from steelyard.estimation.physical import PhysicallyConsistent
from steelyard.estimation.recursive import Recursive, Snapshot, recursive
from steelyard.estimation.recursive_state import StateError
from steelyard.estimation.registry import (
    ESTIMATORS,
    EXPERIMENT_ESTIMATORS,
    FILTERS,
    NETWORKS,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from steelyard.estimation.restricted_tls import RestrictedTotalLeastSquares
from steelyard.estimation.ridge import Ridge
from steelyard.estimation.rls import RecursiveLeastSquares
from steelyard.estimation.robust import Robust
from steelyard.estimation.sequential import SequentialIdentification, Step, identify_sequentially
from steelyard.estimation.significance import Significance, fit_significant, joint_test, significance
from steelyard.estimation.tls import TotalLeastSquares
from steelyard.estimation.wls import WeightedLeastSquares

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
