"""`Tally`: what went wrong, counted by kind; the first of each kind is told in a sentence, and again after a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from steelyard.errors import shortened

# Of a trouble that lasts, one sentence a minute.
AGAIN_S = 60.0
# Sentences that wait for being told.
_MOST = 50


class Tally:
    """Counts by kind, and sentences about them that were not told yet.

    Args:
        now: a clock that never goes back, s.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.counts: dict[str, int] = {}
        self._now, self._told, self._waiting = now, dict[str, float](), list[str]()

    def count(self, kind: str, sentence: str = "", times: int = 1) -> None:
        """One more of a `kind`, or so many (`times`); `sentence` says to people what happened, and what to do."""
        self.counts[kind] = self.counts.get(kind, 0) + times
        if sentence:
            now = self._now()
            if now - self._told.get(kind, -AGAIN_S) >= AGAIN_S and len(self._waiting) < _MOST:
                self._told[kind] = now
                self._waiting.append(shortened(sentence))

    def fetch(self) -> list[str]:
        """The sentences since this was last asked."""
        found, self._waiting = self._waiting, []
        return found
