"""`Registry`: the members of one noun (terms, estimators, log formats …), by name.

A member stands in a file of its own and says with a decorator what it is called; what it can do stands on its class.
Nothing else lists it: whoever needs all members asks the registry, which then imports every module of its packages, and
the plug-ins that other packages announce under an entry-point group.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from steelyard.errors import SteelyardError, UnknownNameError

T = TypeVar("T")


class PluginWarning(UserWarning):
    """A plug-in that could not be loaded: names it, the package it came with, and the reason."""


class Registry(Mapping[str, T], Generic[T]):
    """The members of one noun by name; a mapping that is filled when it is first looked through.

    Args:
        noun: what a member is, for messages: "estimator".
        packages: dotted names of modules and packages in which members stand; packages are searched to the bottom.
        group: the entry-point group under which other packages announce theirs; "" for none.
    """

    def __init__(self, noun: str, packages: tuple[str, ...], group: str = "") -> None:
        self.noun, self.group, self._packages = noun, group, packages
        self._members: dict[str, T] = {}
        self._complete = False

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that enters a member under a name, which must be free."""

        def enter(member: T) -> T:
            known = self._members.get(name)
            if known is not None and _place(known) != _place(member):
                raise SteelyardError(
                    f"The {self.noun} '{name}' of {_place(member)} is there already: {_place(known)}; rename one."
                )
            self._members[name] = member
            return member

        return enter

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            self._load()
        if name not in self._members:
            raise UnknownNameError(self.noun, name, self._members)
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._members:
            self._load()
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(dict(self._members))

    def __len__(self) -> int:
        self._load()
        return len(self._members)

    def _load(self) -> None:
        """Import all that may hold a member. A broken plug-in is told in one sentence, and stops nothing else."""
        if self._complete:
            return
        self._complete = True
        for package in self._packages:
            _import_all(package)
        for point in entry_points(group=self.group) if self.group else ():
            try:
                self.register(point.name)(point.load())
            except Exception as error:
                maker = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
                reason = f"{type(error).__name__}: {error}"
                message = f"The {self.noun} '{point.name}'{maker} is left out, it cannot be loaded ({reason})."
                warnings.warn(message, PluginWarning, stacklevel=2)


def _import_all(name: str) -> None:
    module = import_module(name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        _import_all(f"{name}.{found.name}")


def _place(member: object) -> str:
    return f"{getattr(member, '__module__', '?')}.{getattr(member, '__qualname__', repr(member))}"
