"""`Diagnostics`: counts problems by kind, with one message per kind and minute."""

from __future__ import annotations

import time
from collections.abc import Callable

from steelyard.errors import shortened

# A lasting problem gives one message in this time.
_MESSAGE_PERIOD_S = 60.0
# Messages that may wait to be fetched.
_MAX_WAITING = 50


class Diagnostics:
    """Counts by kind, and messages that were not fetched yet.

    Args:
        now: Monotonic clock [s].
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.counts: dict[str, int] = {}
        self._now, self._last, self._waiting = now, dict[str, float](), list[str]()

    def count(self, kind: str, message: str = "", times: int = 1) -> None:
        """Increase a count.

        Args:
            kind: Name of the count.
            message: What happened and what to do, for the user; "" for no message.
            times: Increment.
        """
        self.counts[kind] = self.counts.get(kind, 0) + times
        if message:
            now = self._now()
            if (
                now - self._last.get(kind, -_MESSAGE_PERIOD_S) >= _MESSAGE_PERIOD_S
                and len(self._waiting) < _MAX_WAITING
            ):
                self._last[kind] = now
                self._waiting.append(shortened(message))

    def fetch(self) -> list[str]:
        """Return and clear the waiting messages."""
        messages, self._waiting = self._waiting, []
        return messages
