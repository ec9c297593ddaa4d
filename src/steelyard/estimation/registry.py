"""The names that people type for estimators. To add one, write a class with `fit` and list it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from steelyard.errors import UnknownNameError
from steelyard.estimation.estimate import Estimator
from steelyard.estimation.ols import OrdinaryLeastSquares
from steelyard.estimation.physical import PhysicallyConsistent
from steelyard.estimation.ridge import Ridge
from steelyard.estimation.robust import Robust
from steelyard.estimation.tls import TotalLeastSquares
from steelyard.estimation.wls import WeightedLeastSquares

_MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "physical": (PhysicallyConsistent, {}),
    "wls": (WeightedLeastSquares, {}),
    "ols": (OrdinaryLeastSquares, {}),
    "huber": (Robust, {"loss": "huber"}),
    "bisquare": (Robust, {"loss": "bisquare"}),
    "tls": (TotalLeastSquares, {}),
    "ridge": (Ridge, {}),
}
ESTIMATORS: tuple[str, ...] = tuple(_MAKERS)


def make_estimator(name: str, **options: Any) -> Estimator:
    """An estimator by its name; options are the fields of its class.

    >>> make_estimator("physical", weighting="huber").weighting
    'huber'
    """
    if name not in _MAKERS:
        raise UnknownNameError("estimator", name, ESTIMATORS)
    maker, fixed = _MAKERS[name]
    known = [f.name for f in fields(maker) if f.name not in fixed]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of estimator '{name}'", option, known)
    made: Estimator = maker(**fixed, **options)
    return made


def make_physical(name: str, **options: Any) -> PhysicallyConsistent:
    """The physically consistent fit that goes with a free one: the same weights, inside what is possible.

    A ridge has no weights of its own; the log-det divergence takes its place.
    """
    if name not in _MAKERS:
        raise UnknownNameError("estimator", name, ESTIMATORS)
    weighting: Any = "wls" if name in ("physical", "ridge") else name
    return PhysicallyConsistent(weighting=weighting, **options)
