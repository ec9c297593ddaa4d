"""A WebSocket that Foxglove opens, on a port of this machine, with a layout that comes with the package."""

from __future__ import annotations

import time
from importlib.resources import files
from typing import Any

from steelyard.ground.extras import import_extra
from steelyard.ground.files import plain
from steelyard.watch.batch import Seen
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport
from steelyard.watch.parts import WatchEvent
from steelyard.watch.source import host_and_port

_PORT = 8765  # Foxglove's own
_EVERY_S = 0.02  # samples are shown fifty times a second, whatever their rate


def foxglove_layout() -> str:
    """Where the layout is that Foxglove imports: plots of external torque, its limits and speeds, and the events."""
    return str(files("steelyard.watch.outputs").joinpath("assets", "foxglove-layout.json"))


@WATCH_OUTPUTS.register("foxglove")
class FoxgloveServer(WatchOutput):
    """Messages of JSON: /steelyard/samples, /steelyard/report and /steelyard/events."""

    description = "a live view for Foxglove at a port of this machine (needs foxglove-sdk)"
    wants_samples = True
    _next = -1e9

    def open(self) -> str:
        foxglove = import_extra("foxglove", "foxglove", "A live view in Foxglove")
        place = (
            host_and_port(self.where, "foxglove", _PORT)
            if not self.where.isdecimal()
            else ("127.0.0.1", int(self.where))
        )
        self._context = context = foxglove.Context()  # its channels live as long as it does
        self._server = foxglove.start_server(name=self.setup.title, host=place[0], port=place[1], context=context)
        names = ("samples", "report", "events")
        schema = {"type": "object"}
        self._channels = {
            name: foxglove.Channel(f"/steelyard/{name}", schema=schema, message_encoding="json", context=context)
            for name in names
        }
        self.port = int(self._server.port)
        return f"Foxglove: open ws://{place[0]}:{self.port}, and import the layout {foxglove_layout()}."

    def _log(self, name: str, t: float, message: dict[str, Any]) -> None:
        stamp = max(0, round(t * 1e9)) if t == t else 0
        self._channels[name].log(plain(message), log_time=stamp)

    def took(self, seen: Seen) -> None:
        now = time.monotonic()
        if now < self._next and self.setup.live:
            return
        self._next = now + _EVERY_S
        b = seen.batch
        last = {"q": b.q, "dq": b.dq, "tau": b.tau, "external_torque": seen.r}
        t = float(b.t[-1])
        self._log("samples", t, {"t": t, **{name: x[-1].tolist() for name, x in last.items()}})

    def told(self, report: WatchReport) -> None:
        self._log("report", report.t, report.plain())

    def happened(self, event: WatchEvent) -> None:
        self._log("events", event.t, {**event.plain(), "level": 4 if event.alarm else 2, "name": event.kind})

    def close(self) -> None:
        self._server.stop()
