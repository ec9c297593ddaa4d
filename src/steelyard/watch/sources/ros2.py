"""Joint states by a node of ROS 2, where `rclpy` is: inside a ROS environment, over whatever middleware it has."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import Any

from steelyard.ground.arrays import Array
from steelyard.watch.joint_states import Inbox, StateDecoder
from steelyard.watch.source import LIVE_SOURCES, LiveSource, SourceError


@LIVE_SOURCES.register("ros2")
class NodeStates(LiveSource):
    """A topic of joint states, heard by a node of this process; messages are taken as they are encoded."""

    description = "ROS 2 joint states by a node (where rclpy is installed)"
    example = "ros2:/TOPIC"
    _node: Any = None

    def open(self) -> None:
        try:
            rclpy, messages = import_module("rclpy"), import_module("sensor_msgs.msg")
            executors, qos = import_module("rclpy.executors"), import_module("rclpy.qos")
        except ImportError:
            raise SourceError(
                "ros2: needs rclpy, which comes with ROS 2 and not from a package index: source its setup file first, "
                "or use zenoh:TOPIC@HOST:PORT, which needs no ROS."
            ) from None
        self._inbox, self._decoder = Inbox(self.tally), StateDecoder(self.options, self.tally)
        self._context = rclpy.Context()
        self._context.init()
        self._node = rclpy.create_node("steelyard_watch", context=self._context)
        topic = self.address or "/joint_states"
        came = qos.qos_profile_sensor_data
        self._node.create_subscription(messages.JointState, topic, self._came, came, raw=True)
        self._executor = executors.SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        threading.Thread(target=self._executor.spin, daemon=True).start()

    def _came(self, message: bytes) -> None:
        self._inbox.put(time.time(), bytes(message))

    def read(self, wait_s: float) -> Array | None:
        return self._decoder.rows(self._inbox.fetch(wait_s))

    def close(self) -> None:
        if self._node is not None:
            self._executor.shutdown()
            self._node.destroy_node()
            self._context.try_shutdown()
            self._node = None
