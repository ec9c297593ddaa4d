"""The estimators that can be compared, from the registry, and the limits for a single fit."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.registry import ESTIMATORS, RegisteredEstimator, estimator_names, fit_by_name
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.regression.base_parameters import BaseParameters

_PHYSICAL = "-physical"


@dataclass(frozen=True)
class Method:
    """An estimator in a comparison: its name in the registry, optionally with "-physical"."""

    name: str

    @property
    def _entry(self) -> RegisteredEstimator:
        return ESTIMATORS[self.name.removesuffix(_PHYSICAL)]

    @property
    def family(self) -> str:
        """Family of the estimator, as its class defines it."""
        return self._entry.of.family

    @property
    def needs_controller(self) -> bool:
        """Whether it simulates the closed loop and needs controller and reference."""
        return self._entry.of.needs_controller

    @property
    def physical(self) -> bool:
        """Whether its results are physically possible."""
        return self.name.endswith(_PHYSICAL)

    def fit(
        self, experiment: Experiment, base: BaseParameters, prior: Prior | None, from_log: bool = False
    ) -> Estimate:
        """Estimate base parameters. Rows are computed again for every fit so that its time includes them.

        Args:
            experiment: The data.
            base: Base parameters.
            prior: Prior knowledge; None: none.
            from_log: As in `fit_by_name`.
        """
        data = experiment.regression(base) if self._entry.of.needs == "rows" else experiment
        return fit_by_name(self._entry.name, data, base, prior, physical=self.physical, from_log=from_log)


def _methods() -> dict[str, Method]:
    """All methods by family: the free estimators, then the physical forms.

    "physical" equals wls-physical, and the physical form of rls equals that of ols; each is included once.
    """
    plain = [ESTIMATORS[name] for name in estimator_names() if ESTIMATORS[name].of.physical_form != "itself"]
    possible = [e.name + _PHYSICAL for e in plain if e.has_physical_form and not e.of.weights_like]
    return {name: Method(name) for name in (*(e.name for e in plain), *possible)}


METHODS: dict[str, Method] = _methods()

# Names of groups of methods.
_FAMILIES = {"rows": "linear", "networks": "network", "loops": "loop", "filters": "filter"}
GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(METHODS),
    **{group: tuple(n for n, m in METHODS.items() if m.family == family) for group, family in _FAMILIES.items()},
    "physical": tuple(n for n, m in METHODS.items() if m.physical),
}


def select_methods(names: Sequence[str]) -> tuple[Method, ...]:
    """Select methods in the order of the registry; without `names` all of them.

    A name may be that of a method or a group; "-ukf" excludes a method.
    """
    included, excluded = set[str](), set[str]()
    for name in names:
        plain = name.removeprefix("-")
        if plain not in METHODS and plain not in GROUPS:
            raise UnknownNameError("estimator", plain, (*METHODS, *GROUPS))
        (excluded if name.startswith("-") else included).update(GROUPS.get(plain, (plain,)))
    selection = (included or set(METHODS)) - excluded
    if not selection:
        raise SteelyardError("No estimator is left to compare; name at least one.")
    return tuple(method for name, method in METHODS.items() if name in selection)


# Results of runs. Those in WITH_ESTIMATE have an estimate; the first two of them converged.
WITH_ESTIMATE = ("converged", "boundary", "not-converged", "overconfident", "diverged")
FAILED = ("refused", "too-slow", "broken", "no-data")
# Parts of a cell's key, in order.
FACTORS = ("trajectory", "noise", "rate", "cutoff", "controller", "start")
NOT_CONVERGED = WITH_ESTIMATE[2:]


@dataclass(frozen=True)
class MethodRun:
    """Result of one estimator in one experiment.

    Attributes:
        cell: Key of the experiment.
        estimator: Name of the estimator.
        result: One of `WITH_ESTIMATE` ("boundary": on the boundary of physically possible models) or of `FAILED`:
            "refused" (the estimator gives the reason), "too-slow" (raise_too_slow the limit), "broken" (unexpected
            error), "no-data" (the experiment failed).
        reason: Explanation of `result`.
        seconds: Processor time of the fit.
        distance_percent: Distance in base parameters, percent of their norm. Errors are None if they are unknown.
        median_error_percent: Median relative error of the base parameters.
        torque_error_percent: Torque error on other motions, percent of the torque's standard deviation.
        position_error: Position error of replays [rad, m].
        position_reason: Why `position_error` is None.
        simulable: Whether the mass matrix is positive definite in all checked postures.
        possible: Whether all links are physically possible.
    """

    cell: str
    estimator: str
    result: str
    reason: str = ""
    seconds: float = 0.0
    distance_percent: float | None = None
    median_error_percent: float | None = None
    torque_error_percent: float | None = None
    position_error: float | None = None
    position_reason: str = ""
    simulable: bool | None = None
    possible: bool | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.cell, self.estimator

    @property
    def has_estimate(self) -> bool:
        return self.result in WITH_ESTIMATE

    @property
    def why_missing(self) -> dict[str, str]:
        """Why errors are None, by field."""
        reason = self.reason or "It is not finite."
        return {f.name: reason for f in fields(self)} | {"position_error": self.position_reason or reason}

    def level(self, factor: str) -> str:
        """Return the level of one `factor`, such as "cutoff", from the cell's key."""
        return self.cell.split("/")[FACTORS.index(factor)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> MethodRun:
        """Read a `document` of `to_json`."""
        return build(cls, Field(dict(document), "run", error=SteelyardError, exact=True), others=True)


class TooSlowError(BaseException):
    """Raised when a fit exceeds its time limit. It is no `Exception`, so that `except Exception` in a fit does not
    catch it."""


def try_fit(cell: str, method: Method, fit: Callable[[], Estimate], limit: float) -> tuple[MethodRun, Estimate | None]:
    """Run a fit; return its outcome, and the estimate if there is one. Only an interruption by the user is raised.

    Args:
        cell: Key of the experiment.
        method: The method.
        fit: Computes the estimate.
        limit: Limit of processor time [s].
    """
    start = time.process_time()

    def run_with(result: str, reason: str) -> MethodRun:
        return MethodRun(cell, method.name, result, reason, time.process_time() - start)

    try:
        with _at_most(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimate = fit()
    except TooSlowError:
        return run_with("too-slow", f"It took more than {limit:g} s of processor time."), None
    except SteelyardError as error:
        return run_with("refused", str(error)), None
    except Exception as error:
        return run_with("broken", f"{type(error).__name__}: {error}"), None
    code = estimate.result.name.lower().replace("_", "-")
    run = run_with(code, "" if estimate.result.settled else " ".join(estimate.notes))
    if not (np.all(np.isfinite(estimate.beta)) and np.all(np.isfinite(estimate.theta))):
        return replace(run, result="broken", reason="The estimate is not finite."), None
    return run, estimate


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Limit processor time, if the system has such timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_too_slow(*_: Any) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, raise_too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
