"""`FoxgloveServer`: a WebSocket server for Foxglove on a port of this machine; a layout is part of the package.

The protocol is `foxglove.sdk.v1`: the server announces its channels, a client subscribes to some, and every message is
a binary frame. The library `foxglove-sdk` accepts connections from every web page. This server checks the headers
`Host` and `Origin` first.
"""

from __future__ import annotations

import json
import queue
import struct
import threading
import time
from importlib.resources import files
from typing import Any

from steelyard.errors import shortened
from steelyard.ground.extras import import_extra
from steelyard.ground.files import plain
from steelyard.ground.local_web import AllowedNames
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.live_source import SourceError, host_and_port
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport

_PORT = 8765  # default of Foxglove
_SAMPLE_PERIOD_S = 0.02  # samples are sent at 50 Hz, whatever their rate
_PROTOCOL = "foxglove.sdk.v1"
_CHANNELS = {"samples": 1, "report": 2, "events": 3}
# Header of a message: kind, number of the client's subscription, time in nanoseconds.
_MESSAGE = struct.Struct("<BIQ")
_MESSAGE_DATA = 1
# Messages that may wait for one client; beyond this the oldest is dropped.
_MAX_WAITING = 1024
_MAX_CLIENTS = 16
# Largest request [bytes]; a client sends short lists of subscriptions.
_MAX_REQUEST = 1 << 16
_MAX_NUMBER = 2**32 - 1


def foxglove_layout() -> str:
    """Return the path of the layout for Foxglove: plots of external torque, limits and velocities, and the events."""
    return str(files("steelyard.watch.outputs").joinpath("assets", "foxglove-layout.json"))


class _Client:
    """A connection with its subscriptions and waiting messages."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.subscriptions: dict[int, int] = {}  # channels by the client's subscription number
        self._waiting: queue.Queue[str | bytes | None] = queue.Queue(_MAX_WAITING)

    def put(self, message: str | bytes | None) -> None:
        """Queue a `message`; None ends the connection."""
        while True:
            try:
                self._waiting.put_nowait(message)
                return
            except queue.Full:
                try:
                    self._waiting.get_nowait()
                except queue.Empty:
                    continue

    def send_all(self) -> None:
        """Send queued messages until the connection ends."""
        try:
            while (message := self._waiting.get()) is not None:
                self.connection.send(message)
        except Exception:  # any failure of the connection also ends its reader
            pass
        finally:
            self.connection.close()

    def log(self, channel: int, stamp: int, body: bytes) -> None:
        """Queue a message of a channel for every subscription to it."""
        for number, subscribed in list(self.subscriptions.items()):
            if subscribed == channel:
                self.put(_MESSAGE.pack(_MESSAGE_DATA, number, stamp) + body)

    def handle(self, request: str | bytes) -> None:
        """Handle a client's `request`; answer an invalid one with an error status."""
        try:
            content = json.loads(request)
            operation = content["op"]
            if operation == "subscribe":
                self._subscribe([(entry["id"], entry["channelId"]) for entry in content["subscriptions"]])
            elif operation == "unsubscribe":
                for number in content["subscriptionIds"]:
                    self.subscriptions.pop(number, None)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.put(json.dumps({"op": "status", "level": 2, "message": "Invalid message"}))

    def _subscribe(self, subscriptions: list[tuple[Any, Any]]) -> None:
        for number, channel in subscriptions:
            fits = type(number) is int and 0 <= number <= _MAX_NUMBER and type(channel) is int
            if not fits or channel not in _CHANNELS.values() or len(self.subscriptions) >= _MAX_WAITING:
                raise ValueError
            self.subscriptions[number] = channel


@WATCH_OUTPUTS.register("foxglove")
class FoxgloveServer(WatchOutput):
    """Sends JSON messages on /steelyard/samples, /steelyard/report and /steelyard/events."""

    description = "a live view for Foxglove at a port of this machine (needs websockets)"
    wants_samples = True
    _next = -1e9

    def open(self) -> str:
        import_extra("websockets", "foxglove", "A live view in Foxglove")
        from websockets.sync.server import serve

        address = (
            host_and_port(self.where, "foxglove", _PORT)
            if not self.where.isdecimal()
            else ("127.0.0.1", int(self.where))
        )
        self._names = AllowedNames(address[0], self.setup.origins)
        self._clients: set[_Client] = set()
        self._closing = False
        try:
            self._server = serve(
                self._serve_client,
                *address,
                process_request=self._answer,
                subprotocols=[_PROTOCOL],  # type: ignore[list-item]
                select_subprotocol=_select_protocol,
                max_size=_MAX_REQUEST,
                open_timeout=5,
                close_timeout=1,
                compression=None,
                server_header=None,
                logger=_silent_logger(),
            )
        except (OSError, OverflowError) as why:
            reason = getattr(why, "strerror", None) or why
            raise SourceError(f"foxglove={self.where} cannot be opened ({reason}); give another port.") from None
        threading.Thread(target=self._server.serve_forever, daemon=True, name="watch foxglove").start()
        self.port = int(self._server.socket.getsockname()[1])
        return f"Foxglove: open ws://{address[0]}:{self.port}, and import the layout {foxglove_layout()}."

    def _answer(self, connection: Any, request: Any) -> Any:
        """Return a refusal of an opening `request`, or None to accept it."""
        why = self._names.refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if not why and len(self._clients) >= _MAX_CLIENTS:
            why = f"{_MAX_CLIENTS} views are open already."
        if not why:
            return None
        origin = request.headers.get("Origin", "")
        message = f"A live view is refused: {why}"
        if origin:
            page = shortened(origin, 80)
            message = (
                f"A page of '{page}' requested the live view and was refused; allow it with --allow-origin {page}."
            )
        self.diagnostics.count("refused", message)
        return connection.respond(403, f"{why}\n")

    def _serve_client(self, connection: Any) -> None:
        """Serve one client in the thread of its `connection`."""
        client = _Client(connection)
        self._clients.add(client)
        sender = threading.Thread(target=client.send_all, daemon=True, name="watch foxglove client")
        sender.start()
        try:
            for message in self._announcement():
                client.put(json.dumps(message, separators=(",", ":")))
            for request in connection:
                client.handle(request)
        except Exception:  # any failure of the connection
            pass
        finally:
            self._clients.discard(client)
            client.put(None)

    def _announcement(self) -> list[dict[str, Any]]:
        info = {"op": "serverInfo", "name": self.setup.title, "capabilities": [], "metadata": {}}
        schema = {"schemaName": "steelyard", "schemaEncoding": "jsonschema", "schema": json.dumps({"type": "object"})}
        channels = [
            {"id": number, "topic": f"/steelyard/{name}", "encoding": "json", **schema}
            for name, number in _CHANNELS.items()
        ]
        return [{**info, "sessionId": str(time.time_ns())}, {"op": "advertise", "channels": channels}]

    def _log(self, name: str, t: float, message: dict[str, Any]) -> None:
        clients = list(self._clients)
        if not clients:
            return
        stamp = min(max(0, round(t * 1e9)), 2**63) if t == t else 0
        body = json.dumps(plain(message), allow_nan=False).encode()
        for client in clients:
            client.log(_CHANNELS[name], stamp, body)

    def write_samples(self, batch: ObservedBatch) -> None:
        now = time.monotonic()
        if now < self._next and self.setup.live:
            return
        self._next = now + _SAMPLE_PERIOD_S
        b = batch.samples
        last = {"q": b.q, "dq": b.dq, "tau": b.tau, "external_torque": batch.r}
        t = float(b.t[-1])
        self._log("samples", t, {"t": t, **{name: x[-1].tolist() for name, x in last.items()}})

    def write_report(self, report: WatchReport) -> None:
        self._log("report", report.t, report.plain())

    def write_event(self, event: WatchEvent) -> None:
        self._log("events", event.t, {**event.plain(), "level": 4 if event.alarm else 2, "name": event.kind})

    def close(self) -> None:
        for client in list(self._clients):
            client.put(None)
        self._server.shutdown()


def _select_protocol(connection: Any, protocols: Any) -> Any:
    """Select Foxglove's protocol; refuse a client that does not offer it."""
    from websockets.exceptions import NegotiationError

    if _PROTOCOL not in protocols:
        raise NegotiationError(f"The client must offer the protocol {_PROTOCOL}.")
    return _PROTOCOL


def _silent_logger() -> Any:
    """Return a logger that writes nothing, so that refused connections do not disturb the terminal page."""
    import logging

    logger = logging.getLogger("steelyard.watch.foxglove")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
