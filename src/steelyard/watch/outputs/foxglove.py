"""A WebSocket that Foxglove opens, on a port of this machine, with a layout that comes with the package.

The protocol is Foxglove's own (`foxglove.sdk.v1`): the server says who it is and which channels it has; a client
subscribes to some; every message is a binary frame. The library `foxglove-sdk` speaks it, too, but answers every page
that a browser has open. Here the names in `Host` and `Origin` are checked before the connection is opened.
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
from steelyard.watch.batch import Seen
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport
from steelyard.watch.parts import WatchEvent
from steelyard.watch.source import SourceError, host_and_port

_PORT = 8765  # Foxglove's own
_EVERY_S = 0.02  # samples are shown fifty times a second, whatever their rate
_PROTOCOL = "foxglove.sdk.v1"
_CHANNELS = {"samples": 1, "report": 2, "events": 3}
# Before the JSON of a message: its kind, the client's number of the subscription, the time in nanoseconds.
_MESSAGE = struct.Struct("<BIQ")
_MESSAGE_DATA = 1
# Messages that wait for one client; the oldest goes first.
_MOST_WAITING = 1024
_MOST_CLIENTS = 16
# Of a client we expect a list of at most a few subscriptions.
_LONGEST_REQUEST = 1 << 16
_LARGEST_NUMBER = 2**32 - 1


def foxglove_layout() -> str:
    """Where the layout is that Foxglove imports: plots of external torque, its limits and speeds, and the events."""
    return str(files("steelyard.watch.outputs").joinpath("assets", "foxglove-layout.json"))


class _Client:
    """One connection: its subscriptions, and the messages that wait for it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.subscriptions: dict[int, int] = {}  # channel by the client's number
        self._waiting: queue.Queue[str | bytes | None] = queue.Queue(_MOST_WAITING)

    def put(self, message: str | bytes | None) -> None:
        """Let a `message` wait; None ends the connection."""
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
        """Send what waits, until the connection ends."""
        try:
            while (message := self._waiting.get()) is not None:
                self.connection.send(message)
        except Exception:  # however the connection broke: its reader ends, too
            pass
        finally:
            self.connection.close()

    def log(self, channel: int, stamp: int, body: bytes) -> None:
        """Send a message of a `channel` to every subscription that asks for it."""
        for number, wanted in list(self.subscriptions.items()):
            if wanted == channel:
                self.put(_MESSAGE.pack(_MESSAGE_DATA, number, stamp) + body)

    def take(self, request: str | bytes) -> None:
        """Do what a client's `request` asks for; tell it where that makes no sense."""
        try:
            asked = json.loads(request)
            operation = asked["op"]
            if operation == "subscribe":
                self._subscribe([(entry["id"], entry["channelId"]) for entry in asked["subscriptions"]])
            elif operation == "unsubscribe":
                for number in asked["subscriptionIds"]:
                    self.subscriptions.pop(number, None)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.put(json.dumps({"op": "status", "level": 2, "message": "Invalid message"}))

    def _subscribe(self, wanted: list[tuple[Any, Any]]) -> None:
        for number, channel in wanted:
            fits = type(number) is int and 0 <= number <= _LARGEST_NUMBER and type(channel) is int
            if not fits or channel not in _CHANNELS.values() or len(self.subscriptions) >= _MOST_WAITING:
                raise ValueError
            self.subscriptions[number] = channel


@WATCH_OUTPUTS.register("foxglove")
class FoxgloveServer(WatchOutput):
    """Messages of JSON: /steelyard/samples, /steelyard/report and /steelyard/events."""

    description = "a live view for Foxglove at a port of this machine (needs websockets)"
    wants_samples = True
    _next = -1e9

    def open(self) -> str:
        import_extra("websockets", "foxglove", "A live view in Foxglove")
        from websockets.sync.server import serve

        place = (
            host_and_port(self.where, "foxglove", _PORT)
            if not self.where.isdecimal()
            else ("127.0.0.1", int(self.where))
        )
        self._names = AllowedNames(place[0], self.setup.origins)
        self._clients: set[_Client] = set()
        self._closing = False
        try:
            self._server = serve(
                self._serve_client,
                *place,
                process_request=self._answer,
                subprotocols=[_PROTOCOL],  # type: ignore[list-item]
                select_subprotocol=_select_protocol,
                max_size=_LONGEST_REQUEST,
                open_timeout=5,
                close_timeout=1,
                compression=None,
                server_header=None,
                logger=_silent_logger(),
            )
        except (OSError, OverflowError) as why:
            reason = getattr(why, "strerror", None) or why
            raise SourceError(f"foxglove={self.where} cannot be had ({reason}); name another port.") from None
        threading.Thread(target=self._server.serve_forever, daemon=True, name="watch foxglove").start()
        self.port = int(self._server.socket.getsockname()[1])
        return f"Foxglove: open ws://{place[0]}:{self.port}, and import the layout {foxglove_layout()}."

    def _answer(self, connection: Any, request: Any) -> Any:
        """A refusal of an opening `request`; None where it may go on."""
        why = self._names.refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if not why and len(self._clients) >= _MOST_CLIENTS:
            why = f"There are {_MOST_CLIENTS} views open already."
        if not why:
            return None
        origin = request.headers.get("Origin", "")
        sentence = f"A live view is refused: {why}"
        if origin:
            page = shortened(origin, 80)
            sentence = f"A page of '{page}' asks for the live view and is refused; allow it with --allow-origin {page}."
        self.tally.count("refused", sentence)
        return connection.respond(403, f"{why}\n")

    def _serve_client(self, connection: Any) -> None:
        """Serve one client, in the thread of its `connection`."""
        client = _Client(connection)
        self._clients.add(client)
        sender = threading.Thread(target=client.send_all, daemon=True, name="watch foxglove client")
        sender.start()
        try:
            for message in self._greeting():
                client.put(json.dumps(message, separators=(",", ":")))
            for request in connection:
                client.take(request)
        except Exception:  # however the connection broke
            pass
        finally:
            self._clients.discard(client)
            client.put(None)

    def _greeting(self) -> list[dict[str, Any]]:
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
        for client in list(self._clients):
            client.put(None)
        self._server.shutdown()


def _select_protocol(connection: Any, offered: Any) -> Any:
    """Foxglove's protocol, which a client must offer."""
    from websockets.exceptions import NegotiationError

    if _PROTOCOL not in offered:
        raise NegotiationError(f"The client must offer the protocol {_PROTOCOL}.")
    return _PROTOCOL


def _silent_logger() -> Any:
    """A logger that writes nothing: a refused or broken connection is counted, not printed over the terminal."""
    import logging

    logger = logging.getLogger("steelyard.watch.foxglove")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
