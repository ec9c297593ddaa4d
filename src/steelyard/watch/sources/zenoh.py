"""`ZenohSource`: joint states of ROS 2 over Zenoh, from `rmw_zenoh` or a bridge."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra
from steelyard.watch.joint_states import Inbox, StateDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError, SourceLostError, host_and_port

_PORT = 7447  # of a Zenoh router
_CONNECT_MS = 2000


@LIVE_SOURCES.register("zenoh")
class ZenohSource(LiveSource):
    """A topic of joint states at a Zenoh router or peer; without a host, on this machine."""

    description = "ROS 2 joint states over Zenoh (needs eclipse-zenoh, no ROS)"
    example = "zenoh:TOPIC@HOST:PORT"
    max_silence_s = 10.0
    _session: Any = None

    def open(self) -> None:
        zenoh = import_extra("zenoh", "zenoh", "A source over Zenoh", SourceError)
        topic, _, place = self.address.partition("@")
        topic = topic.strip("/") or "joint_states"
        host, port = host_and_port(place, "zenoh:TOPIC@HOST", _PORT)
        host = f"[{host}]" if ":" in host else host
        config = zenoh.Config()
        for key, value in {
            "mode": "client",
            "connect/endpoints": [f"tcp/{host}:{port}"],
            "connect/timeout_ms": _CONNECT_MS,
            "scouting/multicast/enabled": False,  # connect only to the given address
        }.items():
            config.insert_json5(key, json.dumps(value))
        self._inbox, self._decoder = Inbox(self.diagnostics), StateDecoder(self.options, self.diagnostics)
        try:
            self._session = zenoh.open(config)
            # A bridge keeps the name of the topic; rmw_zenoh adds the domain before it and the type after it.
            for key in (topic, f"*/{topic}/**"):
                self._session.declare_subscriber(key, self._on_message)
        except zenoh.ZError as why:
            self.close()
            raise SourceLostError(f"zenoh:{self.address}: {str(why).split(' at /')[0]}") from None

    def _on_message(self, sample: Any) -> None:
        self._inbox.put(time.time(), bytes(sample.payload))

    def read(self, wait_s: float) -> Array | None:
        if self._session.is_closed():
            raise SourceLostError(f"zenoh:{self.address}: the session was closed")
        return self._decoder.rows(self._inbox.fetch(wait_s))

    def close(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):
                self._session.close()
            self._session = None
