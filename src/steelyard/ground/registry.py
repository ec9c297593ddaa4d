"""`Registry`: the members of one noun (terms, estimators, log formats …), by name.

A member stands in a file of its own and says with a decorator what it is called; what it can do stands on its class.
Nothing else lists it: whoever needs all members asks the registry, which then imports every module of its packages, and
the plug-ins that other packages announce under an entry-point group.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from steelyard.errors import SteelyardError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

_T = TypeVar("_T")


class PluginWarning(UserWarning):
    """A plug-in that could not be loaded: names it, the package it came with, and the reason."""


class Registry(Mapping[str, _T], Generic[_T]):
    """The members of one noun by name; a mapping that is filled when it is first looked through.

    Args:
        noun: what a member is, for messages: "estimator".
        packages: dotted names of modules and packages in which members stand; packages are searched to the bottom.
        group: the entry-point group under which other packages announce theirs; "" for none.
        adopt: makes a member of a name and of what an entry point holds, or raises where that is none; None: it is one.
    """

    def __init__(
        self, noun: str, packages: tuple[str, ...], group: str = "", adopt: Callable[[str, object], _T] | None = None
    ) -> None:
        self.noun, self.group = noun, group
        self._members: dict[str, _T] = {}
        self._unread, self._adopt, self._plugins_read = list(packages), adopt, False

    def register(self, name: str) -> Callable[[_T], _T]:
        """A decorator that enters a member under `name`, which must be free."""

        def enter(member: _T) -> _T:
            known = self._members.get(name)
            if known is not None and _place(known) != _place(member):
                raise SteelyardError(
                    f"The {self.noun} '{name}' of {_place(member)} is there already: {_place(known)}; rename one."
                )
            self._members[name] = member
            return member

        return enter

    def __getitem__(self, name: str) -> _T:
        if name not in self:
            raise UnknownNameError(self.noun, name, self._members)
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        self._load(name)
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(dict(self._members))

    def __len__(self) -> int:
        self._load()
        return len(self._members)

    def _load(self, wanted: object = None) -> None:
        """Import what may hold members, package by package, until the one that is wanted is there.

        A broken plug-in is told in one sentence, and stops nothing else.
        """
        while self._unread and wanted not in self._members:
            _import_all(self._unread.pop(0))
        if self._plugins_read or wanted in self._members:
            return
        self._plugins_read = True
        for point in entry_points(group=self.group) if self.group else ():
            try:
                held = point.load()
                self.register(point.name)(held if self._adopt is None else self._adopt(point.name, held))
            except Exception as error:
                maker = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
                reason = f"{type(error).__name__}: {error}"
                message = f"The {self.noun} '{point.name}'{maker} is left out, it cannot be loaded ({reason})."
                warnings.warn(message, PluginWarning, stacklevel=2)


def entry_points(group: str) -> EntryPoints:
    """What other packages announce under `group`."""
    return _all_entry_points().select(group=group)


@cache
def _all_entry_points() -> EntryPoints:
    # Every installed package's file is read for it; importing what does so takes longer than the rest of this file.
    from importlib import metadata

    return cast("EntryPoints", metadata.entry_points())  # under its older type where there are no arguments


def _import_all(name: str) -> None:
    module = import_module(name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        _import_all(f"{name}.{found.name}")


def _place(member: object) -> str:
    return f"{getattr(member, '__module__', '?')}.{getattr(member, '__qualname__', repr(member))}"
