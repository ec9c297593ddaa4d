"""The names that people type for estimators. To add one, write a class with `fit` and list it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimator
from steelyard.estimation.kalman import (
    CentralDifference,
    Cubature,
    ExtendedKalman,
    ParticleFilter,
    SigmaPointKalman,
    Unscented,
)
from steelyard.estimation.linear.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from steelyard.estimation.linear.ridge import Ridge
from steelyard.estimation.linear.robust import Robust
from steelyard.estimation.linear.total_least_squares import RestrictedTotalLeastSquares, TotalLeastSquares
from steelyard.estimation.neural import Adaline, Hopfield, HopfieldTank
from steelyard.estimation.possible.physical import PhysicallyConsistent
from steelyard.estimation.recursion.rls import RecursiveLeastSquares
from steelyard.estimation.simulated.didim import DirectInverse
from steelyard.estimation.simulated.experiment import ExperimentEstimator
from steelyard.estimation.simulated.instrumental import InstrumentalVariables
from steelyard.estimation.simulated.maximum_likelihood import MaximumLikelihood
from steelyard.estimation.simulated.output_error import OutputError

_MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "physical": (PhysicallyConsistent, {}),
    "wls": (WeightedLeastSquares, {}),
    "ols": (OrdinaryLeastSquares, {}),
    "huber": (Robust, {"loss": "huber"}),
    "bisquare": (Robust, {"loss": "bisquare"}),
    "tls": (TotalLeastSquares, {}),
    "rtls": (RestrictedTotalLeastSquares, {}),
    "ridge": (Ridge, {}),
    "rls": (RecursiveLeastSquares, {}),
    "hopfield-tank": (HopfieldTank, {}),
}
ESTIMATORS: tuple[str, ...] = tuple(_MAKERS)
# These learn row by row and claim less than the others: on noisy rows their end depends on the rows' order.
_NETWORKS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {"adaline": (Adaline, {}), "hopfield": (Hopfield, {})}
NETWORKS: tuple[str, ...] = tuple(_NETWORKS)
# These take an `Experiment` (motions, and how they were controlled) in place of rows.
_OF_EXPERIMENTS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "iv": (InstrumentalVariables, {}),
    "didim": (DirectInverse, {}),
    "cloe": (OutputError, {"signal": "position"}),
    "clie": (OutputError, {"signal": "torque"}),
    "ml": (MaximumLikelihood, {}),
}
EXPERIMENT_ESTIMATORS: tuple[str, ...] = tuple(_OF_EXPERIMENTS)
# These take an `Experiment`, too, but need no controller: the measured torque drives them.
_FILTERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ekf": (ExtendedKalman, {"square_root": False}),
    "srekf": (ExtendedKalman, {"square_root": True}),
    "ukf": (SigmaPointKalman, {"square_root": False, "rule": Unscented()}),
    "srukf": (SigmaPointKalman, {"square_root": True, "rule": Unscented()}),
    "ckf": (SigmaPointKalman, {"square_root": False, "rule": Cubature()}),
    "srckf": (SigmaPointKalman, {"square_root": True, "rule": Cubature()}),
    "cdkf": (SigmaPointKalman, {"square_root": False, "rule": CentralDifference()}),
    "srcdkf": (SigmaPointKalman, {"square_root": True, "rule": CentralDifference()}),
    "pf": (ParticleFilter, {}),
}
FILTERS: tuple[str, ...] = tuple(_FILTERS)


def make_estimator(name: str, **options: Any) -> Estimator:
    """An estimator by its name; options are the fields of its class.

    >>> make_estimator("physical", weighting="huber").weighting
    'huber'
    """
    made: Estimator = _made(name, _MAKERS | _NETWORKS, options)
    return made


def make_experiment_estimator(name: str, **options: Any) -> ExperimentEstimator:
    """An estimator that takes an experiment, by its name.

    >>> make_experiment_estimator("cloe").signal
    'position'
    """
    made: ExperimentEstimator = _made(name, _OF_EXPERIMENTS | _FILTERS, options)
    return made


def _made(name: str, makers: dict[str, tuple[Callable[..., Any], dict[str, Any]]], options: dict[str, Any]) -> Any:
    if name not in makers:
        raise UnknownNameError("estimator", name, makers)
    maker, fixed = makers[name]
    known = [f.name for f in fields(maker) if f.name not in fixed]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of estimator '{name}'", option, known)
    return maker(**fixed, **options)


def make_physical(name: str, **options: Any) -> PhysicallyConsistent:
    """The physically consistent fit that goes with a free one: the same weights, inside what is possible.

    A ridge has no weights of its own; the log-det divergence takes its place. Recursive least squares and
    the networks end at, or near, ordinary least squares.
    """
    if name not in _MAKERS | _NETWORKS:
        raise UnknownNameError("estimator", name, (*ESTIMATORS, *NETWORKS))
    ordinary = dict.fromkeys(("rls", "hopfield-tank", *NETWORKS), "ols")
    weighting: Any = {"physical": "wls", "ridge": "wls", **ordinary}.get(name, name)
    return PhysicallyConsistent(weighting=weighting, **options)
