"""`StateDecoder`: samples from encoded messages of joint states, as ROS 2 sends them, without ROS; `Inbox`, where
messages that a library's own thread brings wait to be read."""

from __future__ import annotations

import queue
import struct
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.signals.readers.bags import JOINT_STATE, joint_state_places
from steelyard.watch.columns import SIGNAL_NAMES, LiveColumns, state_columns
from steelyard.watch.source import SourceError, SourceOptions
from steelyard.watch.tally import Tally

MOST_MESSAGE = 1 << 16  # bytes
_MOST_WAITING = 20_000  # messages; two and a half seconds at 8 kHz
_MOST_KINDS = 64


class _Kind:
    """Messages that differ in their stamps and values alone: where the numbers lie, and what they mean."""

    def __init__(self, data: bytes, message: Any, options: SourceOptions) -> None:
        places = joint_state_places(message, data, True)
        if places is None or data[1] & 1 == 0 or set(places) != set(SIGNAL_NAMES):
            missing = [name for name in SIGNAL_NAMES if not len(getattr(message, name))]
            what = f"has no {missing[0]}" if missing else "is encoded in a way not known"
            raise SourceError(f"it {what}.")
        self._signals = [slice(*places[name]) for name in SIGNAL_NAMES]
        names = tuple(message.name)
        self.columns = LiveColumns(state_columns(names), options.robot, options.mapping, names)
        # All bytes but the stamp's and the values': alike in messages of one kind.
        edges = [0, 4, 12, *(edge for place in sorted(places.values()) for edge in place), len(data)]
        self._fixed = [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]
        self._model = [data[part] for part in self._fixed]

    def fits(self, data: bytes) -> bool:
        return all(data[part] == same for part, same in zip(self._fixed, self._model, strict=True))

    def values(self, data: bytes, arrived: float) -> list[float]:
        seconds, rest = struct.unpack_from("<iI", data, 4)
        t = seconds + 1e-9 * rest if seconds or rest else arrived
        raw = b"".join([data[place] for place in self._signals])
        return [t, *struct.unpack(f"<{len(raw) // 8}d", raw)]


class StateDecoder:
    """Messages of type sensor_msgs/JointState in CDR, as `rosbag2` and every ROS 2 middleware hold them.

    Args:
        options: of the source.
        tally: where what is wrong is counted: "not understood", "other joints", "too long".
    """

    def __init__(self, options: SourceOptions, tally: Tally) -> None:
        from rosbags.typesys import Stores, get_typestore

        self._options, self._tally = options, tally
        self._decode = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr
        self._kinds: dict[int, list[_Kind]] = {}
        self._asked = 0

    def rows(self, messages: list[tuple[float, bytes]]) -> Array:
        """The samples of `messages`, each with the time (s since 1970) at which it arrived."""
        groups: list[tuple[LiveColumns, list[list[float]]]] = []
        for arrived, data in messages:
            kind = self._kind(data)
            if kind is not None:
                if not groups or groups[-1][0] is not kind.columns:
                    groups.append((kind.columns, []))
                groups[-1][1].append(kind.values(data, arrived))
        rows = [columns.rows(np.array(values)) for columns, values in groups]
        return np.vstack(rows) if rows else np.zeros((0, 1 + 3 * self._options.robot.dof))

    def _kind(self, data: bytes) -> _Kind | None:
        if len(data) > MOST_MESSAGE:
            self._tally.count("too long", f"A message is longer than {MOST_MESSAGE} bytes; it is left out.")
            return None
        for kind in self._kinds.get(len(data), ()):
            if kind.fits(data):
                return kind
        if self._asked >= _MOST_KINDS:
            self._tally.count("other joints", "Messages name their joints in too many ways; they are left out.")
            return None
        try:
            message = self._decode(data, JOINT_STATE)
        except Exception:  # CDR, numbers, texts: the decoder has no family of errors
            self._tally.count("not understood", "A message is no sensor_msgs/JointState; it is left out.")
            return None
        self._asked += 1
        try:
            kind = _Kind(data, message, self._options)
        except SteelyardError as error:
            self._tally.count("other joints", f"A message is left out: {error}")
            return None
        self._kinds.setdefault(len(data), []).append(kind)
        return kind


class Inbox:
    """Where messages wait that another thread brings; what finds no room is counted and lost.

    Args:
        tally: where it is counted, as "overrun".
    """

    def __init__(self, tally: Tally) -> None:
        self._waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(_MOST_WAITING)
        self._tally = tally

    def put(self, arrived: float, data: bytes) -> None:
        """Bring a message, `data`, that `arrived` at that time (s since 1970)."""
        try:
            self._waiting.put_nowait((arrived, data))
        except queue.Full:
            self._tally.count("overrun", "Messages come faster than they are read; some are lost.")

    def fetch(self, wait_s: float) -> list[tuple[float, bytes]]:
        """All that waits, after waiting for up to `wait_s` seconds for the first."""
        out: list[tuple[float, bytes]] = []
        try:
            out.append(self._waiting.get(timeout=max(wait_s, 1e-4)))
            while True:
                out.append(self._waiting.get_nowait())
        except queue.Empty:
            return out
