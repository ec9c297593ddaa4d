"""The contract of all estimators: frozen settings in, one `Estimate` out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, frozen
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData


class EstimationError(SteelyardError):
    """Data that no estimate can be made from: names the parameters or the row, and what would help."""


class Result(Enum):
    """How an estimation ended."""

    CONVERGED = "converged"
    BOUNDARY = "at the boundary of what is physically possible"
    NOT_CONVERGED = "stopped before it converged"


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known before: full parameters (ten per link, then the terms'), e.g. a URDF's.

    `known` says for every parameter whether its number means anything; empty: all do. A link counts as known where
    all its ten parameters are.
    """

    theta: Array
    known: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", frozen(self.theta))
        if self.known and len(self.known) != len(self.theta):
            raise EstimationError(f"The prior knows of {len(self.known)} parameters but has {len(self.theta)} numbers.")

    @property
    def mask(self) -> tuple[bool, ...]:
        """`known`, written out."""
        return self.known or (True,) * len(self.theta)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator found.

    `beta` are the base parameters with their `covariance`; `theta` a full vector of parameters that has exactly
    these base parameters (physically possible if `physical`). `spread` is the residuals' standard deviation per
    equation, `cost` the weighted sum of squares, `history` the path of an iteration. `details` holds, for all
    estimators, "inflation" (how much each variance grew because residuals are correlated), "degrees_of_freedom" (of
    each standard error, for t quantiles) and "rows" (of each equation).
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    theta: Array
    spread: Array
    cost: float
    result: Result = Result.CONVERGED
    physical: bool = False
    history: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "theta", "spread"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


class Estimator(Protocol):
    """Settings are fields of a frozen dataclass; `fit` does the work and holds nothing back."""

    def fit(self, data: RegressionData, base: BaseParameters, prior: Prior | None = None) -> Estimate: ...
