"""`TimedProtocol`: closes connections that send no complete request, so that idle ones cannot block the server.

uvicorn limits the time between two requests, but not the time until the headers of a request are complete.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Time limit for the headers of a request [s].
HEADER_SECONDS = 10.0
# Largest number of idle connections; the oldest is closed if there are more.
MOST_IDLE = 64


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a time limit for headers and a limit on idle connections."""

    # Idle connections by server, oldest first.
    _idle: dict[int, dict[TimedProtocol, asyncio.TimerHandle]] = {}  # noqa: RUF012

    @property
    def _mine(self) -> dict[TimedProtocol, asyncio.TimerHandle]:
        return self._idle.setdefault(id(self.server_state), {})

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection with this `transport`."""
        super().connection_made(transport)
        self._wait()

    def handle_events(self) -> None:
        """Process received data; a complete request ends the time limit."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request."""
        super().on_response_complete()
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended; `exc` is the error, or None if it was closed."""
        self._stop_waiting()
        if not self._mine:
            self._idle.pop(id(self.server_state), None)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._mine[self] = self.loop.call_later(HEADER_SECONDS, self._give_up)
        while len(self._mine) > MOST_IDLE:
            next(iter(self._mine))._give_up()

    def _stop_waiting(self) -> None:
        timer = self._mine.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()
