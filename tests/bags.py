"""Write bags of ROS 2 and ROS 1 messages without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write_bag(path: Path, topics: dict[str, list[dict[str, Any]]], storage: str = "sqlite3") -> Path:
    """A bag whose topics hold JointState messages: dicts of stamp, name, position, velocity, effort, log_time (ns).

    A topic whose messages have `data` is of type std_msgs/String.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    with Writer(path, version=9, storage_plugin=plugin) as bag:
        for topic, messages in topics.items():
            text = "data" in messages[0]
            kind = "std_msgs/msg/String" if text else "sensor_msgs/msg/JointState"
            connection = bag.add_connection(topic, kind, typestore=store)
            for message in messages:
                if text:
                    value = kinds[kind](data=message["data"])
                else:
                    stamp = int(message["stamp"])
                    time = kinds["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
                    header = kinds["std_msgs/msg/Header"](stamp=time, frame_id="")
                    arrays = {s: np.asarray(message.get(s, []), float) for s in ("position", "velocity", "effort")}
                    value = kinds[kind](header=header, name=list(message["name"]), **arrays)
                bag.write(
                    connection, int(message.get("log_time", message.get("stamp", 1))), store.serialize_cdr(value, kind)
                )
    return path


def write_bag1(path: Path, topics: dict[str, list[dict[str, Any]]]) -> Path:
    """The same, of ROS 1."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    kinds = store.types
    with Writer(path) as bag:
        for topic, messages in topics.items():
            kind = "sensor_msgs/msg/JointState"
            connection = bag.add_connection(topic, kind, typestore=store)
            for number, message in enumerate(messages):
                stamp = int(message["stamp"])
                time = kinds["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
                header = kinds["std_msgs/msg/Header"](seq=number, stamp=time, frame_id="base")
                arrays = {s: np.asarray(message.get(s, []), float) for s in ("position", "velocity", "effort")}
                value = kinds[kind](header=header, name=list(message["name"]), **arrays)
                bag.write(connection, stamp, store.serialize_ros1(value, kind))
    return path


def joint_states(
    names: list[str], signals: dict[str, np.ndarray], start: int = 1_700_000_000_000_000_000
) -> list[dict[str, Any]]:
    """One message per sample of t, q, dq, tau."""
    return [
        {
            "stamp": start + round(1e9 * t),
            "name": names,
            "position": signals["q"][k],
            "velocity": signals["dq"][k],
            "effort": signals["tau"][k],
        }
        for k, t in enumerate(signals["t"])
    ]
