"""`News`: what happens, told to every open page; and the clock that jobs go by."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from steelyard.studio.jobs import Jobs, StudioJob
from steelyard.studio.place import StudioError

# Seconds between two looks at the jobs, and between two signs of life.
_LOOK, _ALIVE = 0.2, 10.0
# Pages that may listen, and what waits for a page that does not read before it is let go.
_MOST_LISTENERS, _MOST_WAITING = 40, 1000


class News:
    """Tells pages.

    Args:
        jobs: whose progress it tells.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._listeners: set[asyncio.Queue[str]] = set()
        self._read: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._looked = False

    def changed(self, stage: str, tab: str) -> None:
        """Something on the disk is other than it was: by an action of a `stage`, on the page `tab`."""
        self._tell({"type": "changed", "stage_name": stage, "tab": tab})

    async def told(self) -> AsyncIterator[str]:
        """What happens from now on, as server-sent events."""
        if len(self._listeners) >= _MOST_LISTENERS:
            raise StudioError("Too many pages of this studio are open; close some.")
        queue: asyncio.Queue[str] = asyncio.Queue(_MOST_WAITING)
        self._listeners.add(queue)
        try:
            yield "retry: 1000\n\n"
            while queue in self._listeners:
                try:
                    yield await asyncio.wait_for(queue.get(), _ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(queue)

    async def go_on(self) -> None:
        """Look at the jobs again and again: start what may start, tell what is new."""
        while True:
            with contextlib.suppress(OSError, StudioError):
                self.jobs.step()
                self._look(self.jobs.all())
            await asyncio.sleep(_LOOK)

    def _look(self, jobs: list[StudioJob]) -> None:
        for job in jobs:
            before = self._states.get(job.id)
            if job.state == "running" or (before is not None and before != job.state):
                events, self._read[job.id] = self.jobs.events(job.id, self._read.get(job.id, 0))
                if events:
                    seen = [event["seen"] for event in events if "seen" in event]
                    self._tell({"type": "progress", "job": job.id, **events[-1], "seen": seen})
            if before != job.state:
                self._states[job.id] = job.state
                if self._looked or job.live:  # what is new and over already was told by nobody
                    self._tell({"type": "job", "job": job.id, "state": job.state, "stage_name": job.stage})

        self._looked = True

    def _tell(self, what: dict[str, Any]) -> None:
        text = f"data: {json.dumps(what)}\n\n"
        for queue in list(self._listeners):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                self._listeners.discard(queue)  # its browser will come back
