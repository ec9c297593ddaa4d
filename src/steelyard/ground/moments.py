"""`Moments`: a few hundred of whatever comes along, evenly spread, without knowing beforehand how long it goes on."""

from __future__ import annotations

from typing import Generic, TypeVar

_Any = TypeVar("_Any")


class Moments(Generic[_Any]):
    """Keeps every moment until there are `most`, then every second one, and so on; the newest is always there.

    Args:
        most: how many are kept at most; at least two.
    """

    def __init__(self, most: int = 256) -> None:
        self._most, self._stride, self._seen = max(most, 2), 1, 0
        self._kept: list[_Any] = []
        self._newest: list[_Any] = []

    def add(self, moment: _Any) -> None:
        """The next `moment`."""
        if self._seen % self._stride == 0:
            self._kept.append(moment)
            self._newest = []
        else:
            self._newest = [moment]
        self._seen += 1
        if len(self._kept) > self._most:
            if len(self._kept) % 2 == 0:
                self._newest = [self._kept[-1]]
            del self._kept[1::2]
            self._stride *= 2

    def __len__(self) -> int:
        return len(self.all)

    @property
    def all(self) -> list[_Any]:
        """The first, some between, and the newest."""
        return [*self._kept, *self._newest]
