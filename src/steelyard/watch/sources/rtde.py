"""Universal Robots' Real-Time Data Exchange, spoken as its documentation says: every package, none polled away.

A message is its length (two bytes), its type (one) and what it holds, numbers with the highest byte first. Version 2 of
the protocol is asked for (type V), then the output variables with their rate (O), then the robot is told to begin (S),
and sends data packages (U): the number of the recipe and the variables in the order in which they were asked for.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.watch.columns import LiveColumns, state_columns
from steelyard.watch.source import LIVE_SOURCES, LiveSource, SourceError, SourceLost, host_and_port

_PORT = 30004
_AXES = 6
_TIMEOUT_S = 2.0
# What may stand for torque: measured by the drives in N m (PolyScope 5.23 and X), else currents in A.
_TORQUES = ("actual_current_as_torque", "actual_current")
_VERSION, _SETUP, _START, _DATA, _TEXT = (ord(letter) for letter in "VOSUM")
# Samples a second: what the controllers of e-Series and of the older CB3 can give, best first.
_RATES = (500.0, 125.0)


@LIVE_SOURCES.register("rtde")
class RtdeSource(LiveSource):
    """A controller of Universal Robots, or its simulator on this machine where no other is named."""

    description = "Universal Robots' RTDE"
    example = "rtde:HOST"
    apart = True
    silent_s = 2.0
    _socket: socket.socket | None = None

    def open(self) -> None:
        if self.options.robot.dof != _AXES:
            raise SourceError(f"rtde: is for robots of {_AXES} joints, and the model has {self.options.robot.dof}.")
        place = host_and_port(self.address, "rtde", _PORT)
        try:
            self._socket = socket.create_connection(place, _TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._data = b""
            self._ask(_VERSION, struct.pack(">H", 2))
            self.torque, self.rate = self._set_up()
            self._ask(_START, b"")
        except OSError as why:
            self.close()
            raise SourceLost(f"rtde:{self.address}: {why.strerror or why}") from None
        names = self.options.robot.joint_names
        columns = state_columns(names)
        if self.torque == "actual_current":  # the mapping has to say what an ampere is
            columns = tuple(name.replace("effort/", "current/") for name in columns)
        self._columns = LiveColumns(columns, self.options.robot, self.options.mapping, names)
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)

    def _set_up(self) -> tuple[str, float]:
        """The torque and the rate that this controller has."""
        for torque in [self.options.torque] if self.options.torque else _TORQUES:
            for rate in _RATES:
                wanted = f"timestamp,actual_q,actual_qd,{torque}"
                answer = self._ask(_SETUP, struct.pack(">d", rate) + wanted.encode())
                kinds = answer[1:].decode("ascii", "replace").split(",")
                if kinds == ["DOUBLE", "VECTOR6D", "VECTOR6D", "VECTOR6D"] and answer[0]:
                    self._recipe = answer[0]
                    return torque, rate
                if "NOT_FOUND" in kinds:
                    break
        raise SourceError(f"rtde:{self.address} has none of {self.options.torque or ' and '.join(_TORQUES)} to give.")

    def _ask(self, kind: int, payload: bytes) -> bytes:
        assert self._socket is not None
        self._socket.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
        for _ in range(1000):
            for found, answer in self._packages(self._socket.recv(4096)):
                if found == kind:
                    if kind != _SETUP and answer[:1] != b"\x01":
                        raise SourceError(f"rtde:{self.address} refuses to begin ({chr(kind)}); is it another program?")
                    return answer
        raise SourceLost(f"rtde:{self.address}: does not answer")

    def _packages(self, data: bytes) -> list[tuple[int, bytes]]:
        """The messages that are whole after some more data."""
        if not data:
            raise SourceLost(f"rtde:{self.address}: was closed by the robot")
        self._data += data
        out, at = [], 0
        while len(self._data) - at >= 3:
            size, kind = struct.unpack_from(">HB", self._data, at)
            if size < 3:
                raise SourceLost(f"rtde:{self.address}: does not speak RTDE")
            if len(self._data) - at < size:
                break
            out.append((kind, self._data[at + 3 : at + size]))
            at += size
        self._data = self._data[at:]
        return out

    def read(self, wait_s: float) -> Array | None:
        assert self._socket is not None
        if not self._selector.select(wait_s):
            return self.nothing()
        values = []
        with contextlib.suppress(BlockingIOError):
            for kind, package in self._packages(self._socket.recv(1 << 16)):
                if kind == _DATA and len(package) == 1 + 8 * (1 + 3 * _AXES) and package[0] == self._recipe:
                    values.append(struct.unpack_from(f">{1 + 3 * _AXES}d", package, 1))
                elif kind == _TEXT:
                    self.tally.count("texts of the robot")
                else:
                    self.tally.count("not understood", "A package of the robot was not asked for; it is left out.")
        return self._columns.rows(np.array(values)) if values else self.nothing()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if hasattr(self, "_selector"):
                self._selector.close()
