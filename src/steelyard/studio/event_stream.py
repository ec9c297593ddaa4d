"""`EventStream`: reports changes and job progress to every open page, and drives the job queue."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from steelyard.studio.jobs import Jobs, StudioJob
from steelyard.studio.studio_folder import StudioError

# Seconds between two polls of the jobs, and between two keep-alive messages.
_POLL_SECONDS, _KEEP_ALIVE_SECONDS = 0.2, 10.0
# Largest number of listening pages, and of unread messages before a page is dropped.
_MOST_LISTENERS, _MOST_UNREAD = 40, 1000


class EventStream:
    """Sends events to pages.

    Args:
        jobs: The jobs of the studio.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._listeners: set[asyncio.Queue[str]] = set()
        self._read: dict[str, int] = {}
        self._states: dict[str, str] = {}
        self._polled = False

    def notify_change(self, stage: str, tab: str) -> None:
        """Report that an action changed something on the disk.

        Args:
            stage: Stage of the action.
            tab: Id of the page that called it.
        """
        self._publish({"type": "changed", "stage_name": stage, "tab": tab})

    async def subscribe(self) -> AsyncIterator[str]:
        """Yield all further events as server-sent events."""
        if len(self._listeners) >= _MOST_LISTENERS:
            raise StudioError("Too many pages of this studio are open; close some.")
        queue: asyncio.Queue[str] = asyncio.Queue(_MOST_UNREAD)
        self._listeners.add(queue)
        try:
            yield "retry: 1000\n\n"
            while queue in self._listeners:
                try:
                    yield await asyncio.wait_for(queue.get(), _KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(queue)

    async def run(self) -> None:
        """Poll the jobs forever: start waiting jobs and report progress."""
        while True:
            with contextlib.suppress(OSError, StudioError):
                self.jobs.step()
                self._report(self.jobs.all())
            await asyncio.sleep(_POLL_SECONDS)

    def _report(self, jobs: list[StudioJob]) -> None:
        for job in jobs:
            before = self._states.get(job.id)
            if job.state == "running" or (before is not None and before != job.state):
                events, self._read[job.id] = self.jobs.events(job.id, self._read.get(job.id, 0))
                if events:
                    seen = [event["seen"] for event in events if "seen" in event]
                    self._publish({"type": "progress", "job": job.id, **events[-1], "seen": seen})
            if before != job.state:
                self._states[job.id] = job.state
                if self._polled or job.live:  # jobs that ended before the server started are old news
                    self._publish({"type": "job", "job": job.id, "state": job.state, "stage_name": job.stage})

        self._polled = True

    def _publish(self, event: dict[str, Any]) -> None:
        text = f"data: {json.dumps(event)}\n\n"
        for queue in list(self._listeners):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                self._listeners.discard(queue)  # its browser reconnects
