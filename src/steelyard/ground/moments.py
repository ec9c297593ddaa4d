"""`Moments`: a few hundred evenly spaced items of a sequence of unknown length."""

from __future__ import annotations

from typing import Generic, TypeVar

_Any = TypeVar("_Any")


class Moments(Generic[_Any]):
    """Stores every item up to a limit, then every second one, and so on; the newest is always included.

    Args:
        most: Largest number of stored items; at least two.
    """

    def __init__(self, most: int = 256) -> None:
        self._most, self._stride, self._count = max(most, 2), 1, 0
        self._items: list[_Any] = []
        self._newest: list[_Any] = []

    def add(self, moment: _Any) -> None:
        """Add the next item, `moment`."""
        if self._count % self._stride == 0:
            self._items.append(moment)
            self._newest = []
        else:
            self._newest = [moment]
        self._count += 1
        if len(self._items) > self._most:
            if len(self._items) % 2 == 0:
                self._newest = [self._items[-1]]
            del self._items[1::2]
            self._stride *= 2

    def __len__(self) -> int:
        return len(self.all)

    @property
    def all(self) -> list[_Any]:
        """The stored items in order, from the first to the newest."""
        return [*self._items, *self._newest]
