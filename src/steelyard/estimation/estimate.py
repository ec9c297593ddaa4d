"""The contract of all estimators: frozen settings in, one `Estimate` out, and what each says of itself."""

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
from steelyard.ground.renamed import renamed
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

if TYPE_CHECKING:
    from steelyard.estimation.linear._free import FreeFit


class EstimationError(SteelyardError):
    """Data that no estimate can be made from: names the parameters or the row, and what would help."""


class Result(Enum):
    """How an estimation ended."""

    CONVERGED = "converged"
    BOUNDARY = "at the boundary of what is physically possible"
    NOT_CONVERGED = "stopped before it converged"
    OVERCONFIDENT = "more certain than its own errors allow"
    DIVERGED = "diverged"

    @property
    def settled(self) -> bool:
        """Whether the numbers and their error bars can be taken as they are."""
        return self in (Result.CONVERGED, Result.BOUNDARY)


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


@renamed(spread="residual_std")
@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator found.

    `beta` are the base parameters with their `covariance`; `theta` a full vector of parameters that has exactly
    these base parameters (physically possible if `physical`). `residual_std` is the residuals' standard deviation per
    equation, `cost` the weighted sum of squares, `history` the path of an iteration. `details` holds, for all
    estimators, "inflation" (how much each variance grew because residuals are correlated), "degrees_of_freedom" (of
    each standard error, for t quantiles) and "rows" (of each equation).
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
        """The way of the base parameters, to be drawn or written; None where the estimator has none to tell."""
        title = f"Base parameters of {self.base.robot.name}"
        made = ParameterHistory.of(title, self.base.names, self.base.units, self.history, self.standard_errors)
        return None if made is None else replace(made, least=self.base.least_values)


# What an estimator works on: `RegressionData` (rows of a scheme) or an `Experiment` (motions and their controller).
Data = TypeVar("Data")
EstimatorFamily = Literal["linear", "network", "loop", "likelihood", "filter", "other"]
PhysicalForm = Literal["constrained", "rounds", "nearest", "itself", "none"]


class Estimator(ABC, Generic[Data]):
    """What every method of estimation is: settings in the fields of a frozen dataclass, one verb, and what it claims.

    The claims are attributes of the class. The command line, the comparison, the tests and the tables of the docs ask
    for them; nothing else keeps a list of estimators. Known to `identify` is what stands in the registry
    (`steelyard.estimation.registry`), under a name, or is announced by another package under the entry-point group
    "steelyard.estimators".

    Attributes:
        needs: "rows" of a scheme, or a whole "experiment".
        needs_controller: whether it simulates the closed loop, and so must know controller and reference.
        physical_form: how its physically possible form is made: "constrained" (the same weights inside the cones, by
            `PhysicallyConsistent`), "rounds" (a field `physical` keeps every round possible), "nearest" (the possible
            robot nearest to its estimate, by its covariance), "itself" (it is one), "none".
        weights_like: the estimator whose weights the constrained fit takes, where it has none of its own.
        family: what it is akin to: "linear", "network", "loop", "likelihood", "filter".
        order_matters: whether the order of the rows (of an experiment: the runs) changes the result.
        log_settings: fields that are set where a log and a description are all there is, as in `identify`.
        honest_errors: whether its covariance tells how far it is from the truth.
        about: one line for tables and help texts.
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
        """The base parameters, and full parameters that have them.

        Args:
            data: rows or an experiment, as `needs` says; what cannot be used is refused by an `EstimationError`.
            base: the base parameters that are looked for.
            prior: what is known before of the full parameters.
        """


class LinearEstimator(Estimator[RegressionData]):
    """An estimator whose fit leaves a triangle: for error bars, for other unknowns, for the constrained fit.

    Attributes:
        any_columns: whether `free` takes any named columns in place of base parameters.
    """

    physical_form: ClassVar[PhysicalForm] = "constrained"
    family: ClassVar[EstimatorFamily] = "linear"
    any_columns: ClassVar[bool] = True

    @abstractmethod
    def free(self, data: RegressionData, columns: BaseParameters) -> FreeFit:
        """The fit without physical constraints.

        Args:
            data: the rows.
            columns: what is looked for: base parameters, or any named columns where the class takes them.
        """

    def fit(self, data: RegressionData, /, base: BaseParameters, prior: Prior | None = None) -> Estimate:
        return self.free(data, base).estimate(prior)
