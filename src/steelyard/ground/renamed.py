"""Accepts old names of arguments and attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar

from steelyard.errors import SteelyardError

_Named = TypeVar("_Named", bound=Callable[..., Any])


def renamed(**names: str) -> Callable[[_Named], _Named]:
    """Return a decorator for a function or dataclass that also accepts old `names` of arguments and attributes."""

    def decorate(thing: _Named) -> _Named:
        made: Any = thing
        is_class = isinstance(thing, type)
        call = made.__init__ if is_class else made

        @wraps(call)
        def accepting(*args: Any, **given: Any) -> Any:
            for old in names.keys() & given.keys():
                if names[old] in given:
                    raise SteelyardError(f"'{old}' is the old name of '{names[old]}'; give one of them, not both.")
                given[names[old]] = given.pop(old)
            return call(*args, **given)

        if not is_class:
            return accepting  # type: ignore[return-value]
        made.__init__ = accepting
        for old, now in names.items():
            setattr(made, old, property(attrgetter(now), doc=f"The old name of `{now}`."))
        return thing

    return decorate
