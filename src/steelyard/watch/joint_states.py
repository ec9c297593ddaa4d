"""`StateDecoder`: decodes joint states of ROS 2 without ROS. `Inbox`: a queue for messages from other threads."""

from __future__ import annotations

import queue
import struct
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.signals.readers.bags import JOINT_STATE, joint_state_places
from steelyard.watch.columns import SIGNAL_NAMES, LiveColumns, state_columns
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.live_source import SourceError, SourceOptions

MAX_MESSAGE = 1 << 16  # bytes
_MAX_WAITING = 20_000  # messages; two and a half seconds at 8 kHz
_MAX_LAYOUTS = 64


class _Layout:
    """Positions and meaning of the numbers in messages that differ only in stamps and values."""

    def __init__(self, data: bytes, message: Any, options: SourceOptions) -> None:
        places = joint_state_places(message, data, True)
        if places is None or data[1] & 1 == 0 or set(places) != set(SIGNAL_NAMES):
            missing = [name for name in SIGNAL_NAMES if not len(getattr(message, name))]
            what = f"has no {missing[0]}" if missing else "has an unknown encoding"
            raise SourceError(f"it {what}.")
        self._signals = [slice(*places[name]) for name in SIGNAL_NAMES]
        names = tuple(message.name)
        self.columns = LiveColumns(state_columns(names), options.robot, options.mapping, names)
        # All bytes except stamp and values are equal in messages of one layout.
        edges = [0, 4, 12, *(edge for place in sorted(places.values()) for edge in place), len(data)]
        self._fixed = [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]
        self._template = [data[section] for section in self._fixed]

    def fits(self, data: bytes) -> bool:
        return all(data[section] == same for section, same in zip(self._fixed, self._template, strict=True))

    def values(self, data: bytes, arrived: float) -> list[float]:
        seconds, rest = struct.unpack_from("<iI", data, 4)
        t = seconds + 1e-9 * rest if seconds or rest else arrived
        raw = b"".join([data[place] for place in self._signals])
        return [t, *struct.unpack(f"<{len(raw) // 8}d", raw)]


class StateDecoder:
    """Decodes messages of type sensor_msgs/JointState in CDR, the encoding of `rosbag2` and of every ROS 2 middleware.

    Args:
        options: Settings of the source.
        diagnostics: Counts "not understood", "other joints" and "too long".
    """

    def __init__(self, options: SourceOptions, diagnostics: Diagnostics) -> None:
        from rosbags.typesys import Stores, get_typestore

        self._options, self._diagnostics = options, diagnostics
        self._decode = get_typestore(Stores.ROS2_HUMBLE).deserialize_cdr
        self._layouts: dict[int, list[_Layout]] = {}
        self._count = 0

    def rows(self, messages: list[tuple[float, bytes]]) -> Array:
        """Decode `messages`, each with its time of arrival [s since 1970]."""
        groups: list[tuple[LiveColumns, list[list[float]]]] = []
        for arrived, data in messages:
            layout = self._layout(data)
            if layout is not None:
                if not groups or groups[-1][0] is not layout.columns:
                    groups.append((layout.columns, []))
                groups[-1][1].append(layout.values(data, arrived))
        rows = [columns.rows(np.array(values)) for columns, values in groups]
        return np.vstack(rows) if rows else np.zeros((0, 1 + 3 * self._options.robot.dof))

    def _layout(self, data: bytes) -> _Layout | None:
        if len(data) > MAX_MESSAGE:
            self._diagnostics.count("too long", f"A message is longer than {MAX_MESSAGE} bytes and is dropped.")
            return None
        for layout in self._layouts.get(len(data), ()):
            if layout.fits(data):
                return layout
        if self._count >= _MAX_LAYOUTS:
            self._diagnostics.count(
                "other joints", "The senders use too many message layouts; further ones are dropped."
            )
            return None
        try:
            message = self._decode(data, JOINT_STATE)
        except Exception:  # errors of the decoder lack a common base class
            self._diagnostics.count("not understood", "A message is not a sensor_msgs/JointState and is dropped.")
            return None
        self._count += 1
        try:
            layout = _Layout(data, message, self._options)
        except SteelyardError as error:
            self._diagnostics.count("other joints", f"A message is dropped: {error}")
            return None
        self._layouts.setdefault(len(data), []).append(layout)
        return layout


class Inbox:
    """A bounded queue of messages from another thread; it drops and counts messages when it is full.

    Args:
        diagnostics: Counts "overrun".
    """

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._waiting: queue.Queue[tuple[float, bytes]] = queue.Queue(_MAX_WAITING)
        self._diagnostics = diagnostics

    def put(self, arrived: float, data: bytes) -> None:
        """Add a message.

        Args:
            arrived: Time of arrival [s since 1970].
            data: Encoded message.
        """
        try:
            self._waiting.put_nowait((arrived, data))
        except queue.Full:
            self._diagnostics.count("overrun", "Messages come faster than they are read; some are dropped.")

    def fetch(self, wait_s: float) -> list[tuple[float, bytes]]:
        """Return all waiting messages; wait up to `wait_s` seconds for the first."""
        out: list[tuple[float, bytes]] = []
        try:
            out.append(self._waiting.get(timeout=max(wait_s, 1e-4)))
            while True:
                out.append(self._waiting.get_nowait())
        except queue.Empty:
            return out
