"""Joint states of ROS 2: `Ros2Source` through a node, `ZenohSource` over Zenoh.

A node needs `rclpy` and works with every middleware. Zenoh needs no ROS, but `rmw_zenoh` or a bridge on the robot.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from importlib import import_module
from typing import Any

from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra
from steelyard.watch.joint_states import Inbox, StateDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError, SourceLostError, host_and_port


@LIVE_SOURCES.register("ros2")
class Ros2Source(LiveSource):
    """A topic of joint states, received by a node in this process; messages are decoded here."""

    description = "ROS 2 joint states by a node (where rclpy is installed)"
    example = "ros2:/TOPIC"
    _node: Any = None

    def open(self) -> None:
        try:
            rclpy, messages = import_module("rclpy"), import_module("sensor_msgs.msg")
            executors, qos = import_module("rclpy.executors"), import_module("rclpy.qos")
        except ImportError:
            raise SourceError(
                "ros2: needs rclpy, which is part of ROS 2 and not on PyPI: source its setup file first, "
                "or use zenoh:TOPIC@HOST:PORT, which needs no ROS."
            ) from None
        self._inbox, self._decoder = Inbox(self.diagnostics), StateDecoder(self.options, self.diagnostics)
        self._context = rclpy.Context()
        self._context.init()
        self._node = rclpy.create_node("steelyard_watch", context=self._context)
        topic = self.address or "/joint_states"
        profile = qos.qos_profile_sensor_data
        self._node.create_subscription(messages.JointState, topic, self._on_message, profile, raw=True)
        self._executor = executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        threading.Thread(target=self._executor.spin, daemon=True).start()

    def _on_message(self, message: bytes) -> None:
        self._inbox.put(time.time(), bytes(message))

    def read(self, wait_s: float) -> Array | None:
        return self._decoder.rows(self._inbox.fetch(wait_s))

    def close(self) -> None:
        if self._node is not None:
            self._executor.shutdown()
            self._node.destroy_node()
            self._context.try_shutdown()
            self._node = None


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
