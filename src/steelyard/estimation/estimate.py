"""The interface of all estimators: frozen settings in, one `Estimate` out, and their properties as class attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.estimation.history import ParameterHistory
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

if TYPE_CHECKING:
    from steelyard.estimation.linear._free import FreeFit


class EstimationError(SteelyardError):
    """Data are not sufficient for an estimate; the message names the parameters or the row, and a remedy."""


class Result(Enum):
    """How an estimation ended."""

    CONVERGED = "converged"
    BOUNDARY = "at the boundary of what is physically possible"
    NOT_CONVERGED = "stopped before it converged"
    OVERCONFIDENT = "more certain than its own errors allow"
    DIVERGED = "diverged"

    @property
    def settled(self) -> bool:
        """Whether values and error bars are valid."""
        return self in (Result.CONVERGED, Result.BOUNDARY)


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior knowledge of the full parameters, e.g. from a URDF.

    Attributes:
        theta: Full parameters (ten per link, then those of the terms).
        known: Whether each number is meaningful; empty: all are. A link is known if all its ten parameters are.
    """

    theta: Array
    known: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", frozen(self.theta))
        if self.known and len(self.known) != len(self.theta):
            raise EstimationError(
                f"`known` of the prior has {len(self.known)} entries but `theta` has {len(self.theta)}; give equal "
                "lengths."
            )

    @property
    def mask(self) -> tuple[bool, ...]:
        """`known` with one entry per parameter."""
        return self.known or (True,) * len(self.theta)


@short_repr
@dataclass(frozen=True, eq=False)
class Estimate:
    """Result of an estimator.

    Attributes:
        base: Base parameters that were estimated.
        beta: Values of the base parameters.
        covariance: Covariance of `beta`.
        theta: Full parameters with exactly these base parameters (physically possible if `physical`).
        residual_std: Standard deviation of the residuals per equation.
        cost: Weighted sum of squares.
        result: How the estimation ended.
        physical: Whether `theta` is constrained to be physically possible.
        history: Steps of an iteration.
        notes: Notes for the user.
        details: For all estimators "inflation" (growth of each variance because residuals are correlated),
            "degrees_of_freedom" (of each standard error, for t quantiles) and "rows" (of each equation); more for some.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    theta: Array
    residual_std: Array
    cost: float
    result: Result = Result.CONVERGED
    physical: bool = False
    history: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("beta", "covariance", "theta", "residual_std"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def parameter_history(self) -> ParameterHistory | None:
        """History of the base parameters for plots and files; None if it is unavailable."""
        title = f"Base parameters of {self.base.robot.name}"
        history = ParameterHistory.of(title, self.base.names, self.base.units, self.history, self.standard_errors)
        return None if history is None else replace(history, lower_bounds=self.base.least_values)


# Input of an estimator: `RegressionData` (rows of a scheme) or an `Experiment` (motions and their controller).
Data = TypeVar("Data")
EstimatorFamily = Literal["linear", "network", "loop", "likelihood", "filter", "other"]
PhysicalForm = Literal["constrained", "rounds", "nearest", "itself", "none"]


class Estimator(ABC, Generic[Data]):
    """Base class of all estimators: a frozen dataclass with the settings, one method, and class attributes.

    The command line, the comparison, the tests and the tables of the docs read the class attributes instead
    of separate lists. `identify` knows those in the registry (`steelyard.estimation.registry`) and those that other
    packages provide under the entry-point group "steelyard.estimators".

    Attributes:
        needs: "rows" of a scheme, or a whole "experiment".
        needs_controller: Whether it simulates the closed loop and needs controller and reference.
        physical_form: How its physically possible form is computed: "constrained" (same weights inside the cones, by
            `PhysicallyConsistent`), "rounds" (a field `physical` makes every round possible), "nearest" (the possible
            robot nearest to its estimate, by its covariance), "itself" (it is always possible), "none".
        weights_like: Estimator whose weights the constrained fit uses if it lacks its own.
        family: "linear", "network", "loop", "likelihood", "filter" or "other".
        order_matters: Whether the order of the rows (of an experiment: the runs) changes the result.
        log_settings: Values of fields if only a log and a description are available, as in `identify`.
        honest_errors: Whether its covariance describes its distance from the truth.
        about: One line for tables and help texts.
    """

    needs: ClassVar[Literal["rows", "experiment"]] = "rows"
    needs_controller: ClassVar[bool] = False
    physical_form: ClassVar[PhysicalForm] = "nearest"
    weights_like: ClassVar[str] = ""
    family: ClassVar[EstimatorFamily] = "other"
    order_matters: ClassVar[bool] = False
    log_settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    honest_errors: ClassVar[bool] = True
    about: ClassVar[str] = ""

    @abstractmethod
    def fit(self, data: Data, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        """Estimate the base parameters, and full parameters that agree with them.

        Args:
            data: Rows or an experiment, as `needs` says.
            base: Base parameters to estimate.
            prior: Prior knowledge of the full parameters.

        Raises:
            EstimationError: If the data cannot be used.
        """


class LinearEstimator(Estimator[RegressionData]):
    """An estimator whose fit gives a triangle, for error bars, other unknowns and the constrained fit.

    Attributes:
        any_columns: Whether `free` accepts any named columns instead of base parameters.
    """

    physical_form: ClassVar[PhysicalForm] = "constrained"
    family: ClassVar[EstimatorFamily] = "linear"
    any_columns: ClassVar[bool] = True

    @abstractmethod
    def free(self, data: RegressionData, columns: BaseParameters) -> FreeFit:
        """Fit without physical constraints.

        Args:
            data: The rows.
            columns: Unknowns: base parameters, or any named columns if the class accepts them.
        """

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base).estimate(prior)
