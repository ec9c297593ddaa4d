"""`Ros2Source`: joint states through a ROS 2 node; needs `rclpy`, works with every middleware."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import Any

from steelyard.ground.arrays import Array
from steelyard.watch.joint_states import Inbox, StateDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError


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
