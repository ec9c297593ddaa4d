"""Read the joint states of a rosbag2: a folder with metadata.yaml, or a bare .db3 file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, UnknownNameError
from steelyard.signals.table import Column, Table

# Turn the JointState messages of a bag into columns; needs the package `rosbags`, and no ROS.


JOINT_STATE = "sensor_msgs/msg/JointState"
SIGNALS = ("position", "velocity", "effort")


def read_joint_states(path: Path, topic: str | None) -> Table:
    """Columns `t`, `position/<joint>`, `velocity/<joint>`, `effort/<joint>` of one topic of a bag.

    The time is that of the messages' headers, or that of recording if the headers have none.
    """
    try:
        from rosbags.rosbag2 import Reader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise LogError(f"{path}: reading bags needs the package rosbags: pip install 'steelyard[ros]'.") from None
    # The message has been the same in every ROS 2; a fixed definition needs nothing of what the bag says about types.
    store = get_typestore(Stores.ROS2_HUMBLE)
    try:
        with Reader(path) as bag:
            chosen = _chosen(path, [(c.topic, c.msgtype) for c in bag.connections], topic)
            connections = [c for c in bag.connections if c.topic == chosen]
            messages = [
                (stamp, store.deserialize_cdr(data, JOINT_STATE))
                for _, stamp, data in bag.messages(connections=connections)
            ]
    except LogError:
        raise
    except Exception as error:  # the reader's own errors, and those of SQLite, CDR and zstd below it
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LogError(f"{path}: is not a readable bag, or is cut short ({reason}); record or copy it again.") from None
    if not messages:
        raise LogError(f"{path}: topic '{chosen}' has no messages.")
    return _table(path, messages, chosen)


def _chosen(path: Path, topics: Iterable[tuple[str, str]], wanted: str | None) -> str:
    all_topics = sorted(set(topics))
    usable = [name for name, kind in all_topics if kind == JOINT_STATE]
    if not usable:
        there = ", ".join(f"{name} ({kind})" for name, kind in all_topics) or "none"
        raise LogError(f"{path}: the bag has no topic of type sensor_msgs/JointState; its topics: {there}.")
    if wanted is not None:
        if wanted not in usable:
            raise LogError(f"{path}: {UnknownNameError('topic of joint states', wanted, usable)}")
        return wanted
    if len(usable) > 1:
        raise LogError(
            f"{path}: the bag has several topics of joint states: {', '.join(usable)}; choose one with the mapping's "
            f'key topic, e.g. topic = "{usable[0]}".'
        )
    return usable[0]


def _table(path: Path, messages: list[tuple[int, Any]], topic: str) -> Table:
    stamps = np.array(
        [m.header.stamp.sec * 1_000_000_000 + m.header.stamp.nanosec for _, m in messages], dtype=np.int64
    )
    remarks: tuple[str, ...] = ()
    if not stamps.any():
        stamps = np.array([stamp for stamp, _ in messages], dtype=np.int64)
        remarks = (f"The headers of topic {topic} hold no time; the time of recording is used.",)
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, (_, message) in enumerate(messages):
        groups.setdefault(tuple(message.name), []).append(row)
    joints = tuple(dict.fromkeys(name for names in groups for name in names))
    columns: dict[str, Column] = {"t": stamps.astype("datetime64[ns]")}
    for signal in SIGNALS:
        found = {joint: np.full(len(messages), np.nan) for joint in joints}
        for names, rows in groups.items():
            _fill(path, found, names, rows, [getattr(messages[row][1], signal) for row in rows], signal)
        columns |= {f"{signal}/{joint}": x for joint, x in found.items() if not np.isnan(x).all()}
    return Table(str(path), columns, joints=joints, sparse=len(groups) > 1, remarks=remarks)


def _fill(
    path: Path, found: dict[str, Column], names: tuple[str, ...], rows: list[int], arrays: list[Any], signal: str
) -> None:
    """Write one signal of the messages with these names; a message may leave a signal out."""
    for row, array in zip(rows, arrays, strict=True):
        if len(array) not in (0, len(names)):
            raise LogError(f"{path}: message {row + 1} has {len(names)} names but {len(array)} values of {signal}.")
    full = [k for k, array in enumerate(arrays) if len(array)]
    if not full or not names:
        return
    values = np.stack([arrays[k] for k in full])
    where = np.array(rows)[full]
    for k, name in enumerate(names):
        found[name][where] = values[:, k]


# Read the joint states of an MCAP file.


MAGIC = b"\x89MCAP0\r\n"


def read_mcap(path: Path, topic: str | None = None) -> Table:
    """The joint states of one topic. A recording that was cut off lacks the closing mark and is refused."""
    with path.open("rb") as file:
        opening = file.read(len(MAGIC))
        file.seek(0, 2)
        file.seek(max(0, file.tell() - len(MAGIC)))
        closing = file.read()
    if opening != MAGIC:
        raise LogError(f"{path}: is not an MCAP file.")
    if closing != MAGIC:
        raise LogError(f"{path}: the MCAP file is cut short; mend it with `mcap recover`, or copy it again.")
    return read_joint_states(path, topic)


def read_rosbag2(path: Path, topic: str | None = None) -> Table:
    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise LogError(f"{path}: is a folder without metadata.yaml, so not a rosbag2; name the log file itself.")
    return read_joint_states(path, topic)
