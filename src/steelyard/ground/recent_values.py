"""`Recent`: a small cache of values that take long to compute."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A cache of at most `most` values that removes the oldest first.

    Unlike with `functools.lru_cache`, the key need not contain all inputs of the computation.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the stored value, or compute and store it.

        Args:
            key: Key of the value.
            make: Computes the value.
        """
        if key not in self._values:
            while len(self._values) >= self._most:
                del self._values[next(iter(self._values))]
            self._values[key] = make()
        return self._values[key]
