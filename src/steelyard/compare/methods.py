"""The estimators that are compared, by name, with what each of them needs; found in the registry."""

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
from steelyard.estimation.registry import ESTIMATORS, Named, estimator_names, fit_by_name
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.ground.field import Field
from steelyard.ground.schema import build
from steelyard.regression.base_parameters import BaseParameters

_PHYSICAL = "-physical"


@dataclass(frozen=True)
class Method:
    """An estimator as it stands in a comparison: by its name, or by its name and "-physical"."""

    name: str

    @property
    def _known(self) -> Named:
        return ESTIMATORS[self.name.removesuffix(_PHYSICAL)]

    @property
    def family(self) -> str:
        """What it is akin to, as its class says."""
        return self._known.of.family

    @property
    def needs_controller(self) -> bool:
        """Whether it simulates the closed loop, and so must know controller and reference."""
        return self._known.of.needs_controller

    @property
    def physical(self) -> bool:
        """Whether it stays inside what is physically possible."""
        return self.name.endswith(_PHYSICAL)

    def fit(
        self, experiment: Experiment, base: BaseParameters, prior: Prior | None, from_log: bool = False
    ) -> Estimate:
        """An estimate of `base` from an `experiment`. Rows are made anew for every fit, so that its time includes them.
        `prior`: what is known before, None for nothing. `from_log` as in `fit_by_name`."""
        data = experiment.regression(base) if self._known.of.needs == "rows" else experiment
        return fit_by_name(self._known.name, data, base, prior, physical=self.physical, from_log=from_log)


def _methods() -> dict[str, Method]:
    """All, family by family: the free estimators, then the physically possible forms of those that have one.

    "physical" is the same as wls-physical, and the constrained fit of rls that of ols: each stands there once.
    """
    plain = [ESTIMATORS[name] for name in estimator_names() if ESTIMATORS[name].of.physical_form != "itself"]
    possible = [e.name + _PHYSICAL for e in plain if e.has_physical_form and not e.of.weights_like]
    return {name: Method(name) for name in (*(e.name for e in plain), *possible)}


METHODS: dict[str, Method] = _methods()

# Names for several at once.
_FAMILIES = {"rows": "linear", "networks": "network", "loops": "loop", "filters": "filter"}
GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(METHODS),
    **{group: tuple(n for n, m in METHODS.items() if m.family == family) for group, family in _FAMILIES.items()},
    "physical": tuple(n for n, m in METHODS.items() if m.physical),
}


def chosen_methods(names: Sequence[str]) -> tuple[Method, ...]:
    """By `names` and groups of names, in the order of the registry, each once; "-ukf" takes one away again."""
    wanted, away = set[str](), set[str]()
    for name in names:
        plain = name.removeprefix("-")
        if plain not in METHODS and plain not in GROUPS:
            raise UnknownNameError("estimator", plain, (*METHODS, *GROUPS))
        (away if name.startswith("-") else wanted).update(GROUPS.get(plain, (plain,)))
    left = (wanted or set(METHODS)) - away
    if not left:
        raise SteelyardError("No estimator is left to compare; name at least one.")
    return tuple(method for name, method in METHODS.items() if name in left)


# How runs end. Of the first there are numbers, and the first two settled.
FOUND = ("converged", "boundary", "not-converged", "overconfident", "diverged")
FAILED = ("refused", "too-slow", "broken", "no-data")
# The parts of a cell's key, in their order.
FACTORS = ("trajectory", "noise", "rate", "cutoff", "controller", "start")
UNSETTLED = FOUND[2:]


@dataclass(frozen=True)
class MethodRun:
    """What one estimator made of one experiment.

    `result` is one of `FOUND` ("boundary": of what is physically possible) or of `FAILED`: "refused" (the estimator
    says why), "too-slow" (over the limit), "broken" (an error that is ours), "no-data" (the experiment itself failed).
    `reason` says why; errors are None where there are none. `seconds` are of the processor.
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
    def found(self) -> bool:
        return self.result in FOUND

    @property
    def why_missing(self) -> dict[str, str]:
        """Why figures are None, by field."""
        reason = self.reason or "It is not finite."
        return {f.name: reason for f in fields(self)} | {"position_error": self.position_reason or reason}

    def level(self, factor: str) -> str:
        """What of the cell's key one `factor` had, such as the cut-off."""
        return self.cell.split("/")[FACTORS.index(factor)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> MethodRun:
        """What `to_json` wrote, read as a `document`."""
        return build(cls, Field(dict(document), "run", error=SteelyardError, exact=True), others=True)


class TooSlowError(BaseException):
    """The limit is over. No `Exception`: nobody on the way may take it for something else."""


def try_fit(cell: str, method: Method, fit: Callable[[], Estimate], limit: float) -> tuple[MethodRun, Estimate | None]:
    """The estimate by `fit`, and how it came about; never an exception but the user's own interruption. `cell` is the
    experiment's key, `method` whose fit it is, `limit` in seconds of the processor."""
    begun = time.process_time()

    def ended(result: str, reason: str) -> MethodRun:
        return MethodRun(cell, method.name, result, reason, time.process_time() - begun)

    try:
        with _at_most(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fit()
    except TooSlowError:
        return ended("too-slow", f"It took more than {limit:g} s of processor time."), None
    except SteelyardError as error:
        return ended("refused", str(error)), None
    except Exception as error:
        return ended("broken", f"{type(error).__name__}: {error}"), None
    code = found.result.name.lower().replace("_", "-")
    run = ended(code, "" if found.result.settled else " ".join(found.notes))
    if not (np.all(np.isfinite(found.beta)) and np.all(np.isfinite(found.theta))):
        return replace(run, result="broken", reason="The estimate is not finite."), None
    return run, found


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """A limit of processor time, where the system has such timers and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(*_: Any) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
