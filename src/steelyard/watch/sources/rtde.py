"""`RtdeSource`: a client of Universal Robots' Real-Time Data Exchange that reads every package.

A message has a length (two bytes), a type (one byte) and a payload, big-endian. The client requests version 2 of the
protocol (type V) and the output variables with their rate (O), and starts the stream (S). The robot sends data packages
(U): the number of the recipe and the variables in the requested order.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.watch.columns import LiveColumns, state_columns
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError, SourceLostError, host_and_port

_PORT = 30004
_AXES = 6
_TIMEOUT_S = 2.0
# Variables for torque, best first: torques of the drives in N m (PolyScope 5.23 and X), currents in A.
_TORQUES = ("actual_current_as_torque", "actual_current")
_VERSION, _SETUP, _START, _DATA, _TEXT = (ord(letter) for letter in "VOSUM")
# Sample rates of the controllers of e-Series and CB3 [1/s], best first.
_RATES = (500.0, 125.0)


@LIVE_SOURCES.register("rtde")
class RtdeSource(LiveSource):
    """A controller of Universal Robots; without a host, a simulator on this machine."""

    description = "Universal Robots' RTDE"
    example = "rtde:HOST"
    forkable = True
    max_silence_s = 2.0
    _socket: socket.socket | None = None

    def open(self) -> None:
        if self.options.robot.dof != _AXES:
            raise SourceError(f"rtde: needs a model with {_AXES} joints, and this one has {self.options.robot.dof}.")
        place = host_and_port(self.address, "rtde", _PORT)
        try:
            self._socket = socket.create_connection(place, _TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._data = b""
            self._request(_VERSION, struct.pack(">H", 2))
            self.torque, self.rate = self._set_up()
            self._request(_START, b"")
        except OSError as why:
            self.close()
            raise SourceLostError(f"rtde:{self.address}: {why.strerror or why}") from None
        names = self.options.robot.joint_names
        columns = state_columns(names)
        if self.torque == "actual_current":  # the mapping has the torque constants
            columns = tuple(name.replace("effort/", "current/") for name in columns)
        self._columns = LiveColumns(columns, self.options.robot, self.options.mapping, names)
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def _set_up(self) -> tuple[str, float]:
        """Select torque variable and rate; return the first that this controller supports."""
        for torque in [self.options.torque] if self.options.torque else _TORQUES:
            for rate in _RATES:
                variables = f"timestamp,actual_q,actual_qd,{torque}"
                answer = self._request(_SETUP, struct.pack(">d", rate) + variables.encode())
                kinds = answer[1:].decode("ascii", "replace").split(",")
                if kinds == ["DOUBLE", "VECTOR6D", "VECTOR6D", "VECTOR6D"] and answer[0]:
                    self._recipe = answer[0]
                    return torque, rate
                if "NOT_FOUND" in kinds:
                    break
        raise SourceError(f"rtde:{self.address} has no variable {self.options.torque or ' or '.join(_TORQUES)}.")

    def _request(self, kind: int, payload: bytes) -> bytes:
        assert self._socket is not None
        self._socket.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
        for _ in range(1000):
            for answer_kind, answer in self._packages(self._socket.recv(4096)):
                if answer_kind == kind:
                    if kind != _SETUP and answer[:1] != b"\x01":
                        raise SourceError(f"rtde:{self.address} refuses the request {chr(kind)!r}; check the address.")
                    return answer
        raise SourceLostError(f"rtde:{self.address}: does not answer")

    def _packages(self, data: bytes) -> list[tuple[int, bytes]]:
        """Add data; return the complete messages."""
        if not data:
            raise SourceLostError(f"rtde:{self.address}: the robot closed the connection")
        self._data += data
        out, at = [], 0
        while len(self._data) - at >= 3:
            size, kind = struct.unpack_from(">HB", self._data, at)
            if size < 3:
                raise SourceLostError(f"rtde:{self.address}: the data are not RTDE")
            if len(self._data) - at < size:
                break
            out.append((kind, self._data[at + 3 : at + size]))
            at += size
        self._data = self._data[at:]
        return out

    def read(self, wait_s: float) -> Array | None:
        assert self._socket is not None
        if not self._selector.select(wait_s):
            return self.no_samples()
        values = []
        with contextlib.suppress(BlockingIOError):
            for kind, package in self._packages(self._socket.recv(1 << 16)):
                if kind == _DATA and len(package) == 1 + 8 * (1 + 3 * _AXES) and package[0] == self._recipe:
                    values.append(struct.unpack_from(f">{1 + 3 * _AXES}d", package, 1))
                elif kind == _TEXT:
                    self.diagnostics.count("texts of the robot")
                else:
                    self.diagnostics.count("not understood", "The robot sent an unexpected package, which is dropped.")
        return self._columns.rows(np.array(values)) if values else self.no_samples()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if hasattr(self, "_selector"):
                self._selector.close()
