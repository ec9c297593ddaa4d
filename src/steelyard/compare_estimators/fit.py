"""One run: an estimator on an experiment, with its result, its errors and its time; failures are results, too."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from steelyard.compare_estimators.methods import Method
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, Result

# How runs end. Of the first three there are numbers.
FOUND = ("converged", "boundary", "not-converged")
FAILED = ("refused", "too-slow", "broken", "no-data")
# The parts of a cell's key, in their order.
FACTORS = ("trajectory", "noise", "rate", "cutoff", "controller", "start")
_CODES = {Result.CONVERGED: "converged", Result.BOUNDARY: "boundary", Result.NOT_CONVERGED: "not-converged"}


@dataclass(frozen=True)
class Run:
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

    def level(self, factor: str) -> str:
        """What of the cell's key one factor had, such as the cut-off."""
        return self.cell.split("/")[FACTORS.index(factor)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Run:
        return cls(**{f.name: document[f.name] for f in fields(cls) if f.name in document})


class TooSlowError(BaseException):
    """The limit is over. No `Exception`: nobody on the way may take it for something else."""


def try_fit(cell: str, method: Method, fit: Callable[[], Estimate], limit: float) -> tuple[Run, Estimate | None]:
    """The estimate, and how it came about; never an exception but the user's own interruption."""
    begun = time.process_time()

    def ended(result: str, reason: str) -> Run:
        return Run(cell, method.name, result, reason, time.process_time() - begun)

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
    run = ended(_CODES[found.result], "" if found.result is not Result.NOT_CONVERGED else " ".join(found.notes))
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
