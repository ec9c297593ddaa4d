"""`Recent`: the last few things that took long to make."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """At most `most` things by what they were made from; the oldest is forgotten first.

    For what `functools.lru_cache` cannot keep: things whose makers take more than what tells them apart.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The thing kept under `key`, or else what `make` makes now."""
        if key not in self._kept:
            while len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = make()
        return self._kept[key]
