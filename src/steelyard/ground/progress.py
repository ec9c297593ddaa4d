"""Reports the progress of long functions, and cancels them; used by progress bars, notebooks and web pages.

A caller passes a callback of one `ProgressReport` as `progress`. Nested functions report to it within their share of
the work, without passing it on. To cancel, the callback raises `CancelledError`, which no handler for failures catches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

from steelyard.ground.short_repr import short_repr

_T = TypeVar("_T")
_Long = TypeVar("_Long", bound=Callable[..., Any])


@short_repr
@dataclass(frozen=True)
class ProgressReport:
    """One progress report.

    Attributes:
        stage: Current activity.
        fraction: Finished share of the whole work, 0 to 1.
        message: Detail of the activity.
        results: Intermediate results for plots, as JSON data with the kind of work under "of" ("motion", "structure",
            "fit", "rehearsal"); empty in most reports.
    """

    stage: str
    fraction: float
    message: str = ""
    results: Mapping[str, Any] = field(default_factory=dict)


ProgressCallback = Callable[[ProgressReport], Any]


class CancelledError(BaseException):
    """Raised by a progress callback to cancel the work; nothing is written.

    It is not an `Exception`, so that code that handles failures does not catch it.
    """


class _Listener:
    """Calls the callback with a fraction that never decreases."""

    def __init__(self, callback: ProgressCallback) -> None:
        self.callback, self.fraction = callback, 0.0

    def report(self, stage: str, fraction: float, message: str, results: Mapping[str, Any]) -> None:
        self.fraction = max(self.fraction, min(fraction, 1.0))
        self.callback(ProgressReport(stage, self.fraction, message, results))


# Listener, begin and end of the current work as fractions of the whole, and the name of the enclosing activity.
_at: ContextVar[tuple[_Listener, float, float, str] | None] = ContextVar("progress", default=None)


@contextmanager
def report_progress_to(callback: ProgressCallback | None) -> Iterator[None]:
    """Inside this context, long functions report to `callback`; None keeps the current one."""
    if callback is None:
        yield
        return
    before = _at.set((_Listener(callback), 0.0, 1.0, ""))
    try:
        yield
    finally:
        _at.reset(before)


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """Inside this context, progress counts as a part of the enclosing work.

    Args:
        begin: Fraction of the enclosing work before this part.
        end: Fraction after this part.
    """
    at = _at.get()
    if at is None:
        yield
        return
    listener, low, high, within = at
    before = _at.set((listener, low + begin * (high - low), low + end * (high - low), within))
    try:
        yield
    finally:
        _at.reset(before)


def has_progress_callback() -> bool:
    """Whether a callback is set; without one, intermediate results for reports need not be computed."""
    return _at.get() is not None


def report_progress(
    stage: str, fraction: float = 0.0, message: str = "", results: Mapping[str, Any] | None = None
) -> None:
    """Report progress to the current callback, which may raise to cancel.

    Args:
        stage: Current activity.
        fraction: Finished share of the current work, 0 to 1.
        message: Detail of the activity.
        results: Intermediate results, as in `ProgressReport`.
    """
    at = _at.get()
    if at is not None:
        listener, low, high, within = at
        named = f"{within} · {stage}" if within else stage
        listener.report(named, low + fraction * (high - low), message, results or {})


def steps(
    items: Iterable[_T], stage: str, name: Callable[[_T], str] = str, begin: float = 0.0, end: float = 1.0
) -> Iterator[_T]:
    """Iterate over items as equal parts of the work, with a report before each; reports inside include its name.

    Args:
        items: Items to process.
        stage: Activity.
        name: Returns the name of an item.
        begin: Fraction of the current work before the first item.
        end: Fraction after the last item.
    """
    listed: Sequence[_T] = list(items)
    width = (end - begin) / max(len(listed), 1)
    for k, item in enumerate(listed):
        report_progress(stage, begin + k * width, name(item))
        at = _at.get()
        if at is None:
            yield item
            continue
        # Set and reset around each item: a `with` in a generator could end after the consumer's own.
        listener, low, high, within = at
        here, named = begin + k * width, name(item)
        inside = " · ".join(filter(None, (within, f"{stage} {named}" if named else "")))
        _at.set((listener, low + here * (high - low), low + (here + width) * (high - low), inside))
        try:
            yield item
        finally:
            _at.set(at)


def reports_progress(function: _Long) -> _Long:
    """Decorate a long `function` so that it and the functions it calls report to its argument `progress`."""

    @wraps(function)
    def call(*args: Any, progress: ProgressCallback | None = None, **options: Any) -> Any:
        with report_progress_to(progress):
            return function(*args, **options)

    return cast(_Long, call)
