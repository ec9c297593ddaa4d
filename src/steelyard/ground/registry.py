"""`Registry`: terms, estimators, log formats or other members of one kind, by name.

Each member has its own file and registers its name with a decorator. To list all members, the registry imports every
module of its packages, and the plug-ins that other packages declare under an entry-point group.
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
    """A plug-in could not be loaded; the message names it, its package and the reason."""


class Registry(Mapping[str, _T], Generic[_T]):
    """A mapping of members by name, filled at first use.

    Args:
        noun: Kind of the members, for messages: "estimator".
        packages: Dotted names of modules and packages with members; packages are searched recursively.
        group: Entry-point group for plug-ins; "" for none.
        adopt: Converts a name and the object of an entry point to a member, or raises; None: the object is a member.
    """

    def __init__(
        self, noun: str, packages: tuple[str, ...], group: str = "", adopt: Callable[[str, object], _T] | None = None
    ) -> None:
        self.noun, self.group = noun, group
        self._members: dict[str, _T] = {}
        self._unread, self._adopt, self._plugins_read = list(packages), adopt, False

    def register(self, name: str) -> Callable[[_T], _T]:
        """Return a decorator that registers a member under an unused `name`."""

        def enter(member: _T) -> _T:
            known = self._members.get(name)
            if known is not None and _place(known) != _place(member):
                raise SteelyardError(
                    f"The {self.noun} '{name}' is defined twice: {_place(known)} and {_place(member)}; rename one."
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
        """Import packages one by one until they define the wanted member; a broken plug-in causes a warning."""
        while self._unread and wanted not in self._members:
            _import_all(self._unread.pop(0))
        if self._plugins_read or wanted in self._members:
            return
        self._plugins_read = True
        for point in entry_points(group=self.group) if self.group else ():
            try:
                loaded = point.load()
                self.register(point.name)(loaded if self._adopt is None else self._adopt(point.name, loaded))
            except Exception as error:
                maker = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
                reason = f"{type(error).__name__}: {error}"
                message = f"The {self.noun} '{point.name}'{maker} is left out, it cannot be loaded ({reason})."
                warnings.warn(message, PluginWarning, stacklevel=2)


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of installed packages under `group`."""
    return _all_entry_points().select(group=group)


@cache
def _all_entry_points() -> EntryPoints:
    # It reads a file of every installed package, and its import takes longer than the rest of this module.
    from importlib import metadata

    return cast("EntryPoints", metadata.entry_points())  # under its older type where there are no arguments


def _import_all(name: str) -> None:
    module = import_module(name)
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        _import_all(f"{name}.{inner.name}")


def _place(member: object) -> str:
    return f"{getattr(member, '__module__', '?')}.{getattr(member, '__qualname__', repr(member))}"
