"""How far long work is, and how it is called off: one small protocol for bars, notebooks and pages.

Whoever wants to know gives a long function `progress=watch`, a function of one `HowFar`. What the long function calls
tells within the part of the whole that it is given; nothing needs to be handed down. To call the work off, `watch`
raises: anything that is no `Exception`, such as `CancelledError`, passes all that mends failures on its way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_Long = TypeVar("_Long", bound=Callable[..., Any])


@dataclass(frozen=True)
class HowFar:
    """How far work is: what is being done (`stage`), which share of the whole is done, 0 to 1, and a word on it.

    `seen` is what has come out on the way, for whoever draws it: plain numbers, texts and lists, as JSON holds them,
    with the kind of work under "of" ("motion", "structure", "fit", "rehearsal"). Most tellings have none.
    """

    stage: str
    fraction: float
    message: str = ""
    seen: Mapping[str, Any] = field(default_factory=dict)


Watch = Callable[[HowFar], Any]


class CancelledError(BaseException):
    """Raise it in a `progress` function to call the work off; nothing was written. It is no `Exception`, since much of
    what goes wrong on the way is mended, and this is not to be."""


class _Listener:
    """Who is told; the share never falls."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.told = watch, 0.0

    def tell(self, stage: str, fraction: float, message: str, seen: Mapping[str, Any]) -> None:
        self.told = max(self.told, min(fraction, 1.0))
        self.watch(HowFar(stage, self.told, message, seen))


# Who is told, which part of the whole the work at hand is, and what it belongs to.
_at: ContextVar[tuple[_Listener, float, float, str] | None] = ContextVar("progress", default=None)


@contextmanager
def told_to(watch: Watch | None) -> Iterator[None]:
    """In here long work tells `watch` how far it is; None: whoever was told before."""
    if watch is None:
        yield
        return
    before = _at.set((_Listener(watch), 0.0, 1.0, ""))
    try:
        yield
    finally:
        _at.reset(before)


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """In here the work is the part from `begin` to `end`, shares of the work around it."""
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


def is_told() -> bool:
    """Whether anybody listens: what is only seen on the way need not be reckoned out for nobody."""
    return _at.get() is not None


def tell_progress(stage: str, fraction: float = 0.0, message: str = "", seen: Mapping[str, Any] | None = None) -> None:
    """Say what is being done (`stage`), and which share (`fraction`, 0 to 1) of the work at hand is done; `message` is
    a word on it, `seen` what `HowFar` says. Whoever listens may raise."""
    at = _at.get()
    if at is not None:
        listener, low, high, within = at
        named = f"{within} · {stage}" if within else stage
        listener.tell(named, low + fraction * (high - low), message, seen or {})


def steps(
    items: Iterable[_T], stage: str, name: Callable[[_T], str] = str, begin: float = 0.0, end: float = 1.0
) -> Iterator[_T]:
    """Goes through `items`, each an equal part of the work, and tells before each; what is told inside names it.

    Args:
        items: what is worked on.
        stage: what is done with them.
        name: what an item is called.
        begin: the share of the work at hand that is done before.
        end: the share that is done behind the last.
    """
    listed: Sequence[_T] = list(items)
    width = (end - begin) / max(len(listed), 1)
    for k, item in enumerate(listed):
        tell_progress(stage, begin + k * width, name(item))
        at = _at.get()
        if at is None:
            yield item
            continue
        # Set and taken back around each, since a generator's own `with` would outlive its consumer's.
        listener, low, high, within = at
        here, named = begin + k * width, name(item)
        inside = " · ".join(filter(None, (within, f"{stage} {named}" if named else "")))
        _at.set((listener, low + here * (high - low), low + (here + width) * (high - low), inside))
        try:
            yield item
        finally:
            _at.set(at)


def watched(function: _Long) -> _Long:
    """Decorates a long `function` that has an argument `progress`: what it does, and what it calls, is told to that."""

    @wraps(function)
    def call(*args: Any, progress: Watch | None = None, **given: Any) -> Any:
        with told_to(progress):
            return function(*args, **given)

    return cast(_Long, call)
