"""An RTDE server like a controller of Universal Robots, with a given motion."""

from __future__ import annotations

import socket
import struct
import threading
import time

from steelyard.ground.arrays import Array

KINDS = {"timestamp": "DOUBLE", "actual_q": "VECTOR6D", "actual_qd": "VECTOR6D", "actual_current": "VECTOR6D"}
SIZES = {"DOUBLE": ">d", "VECTOR6D": ">6d", "UINT32": ">I", "INT32": ">i", "UINT64": ">Q", "VECTOR3D": ">3d"}


class FakeRobot:
    """Serves one client at a time.

    Args:
        rows: Samples to send: t, q, dq and tau of six axes.
        torque: Variable for tau.
        period: Time between two packages [s].
        address: Host and port.
    """

    def __init__(
        self, rows: Array, torque: str, period: float = 0.0, address: tuple[str, int] = ("127.0.0.1", 0)
    ) -> None:
        self.rows, self.period = rows, period
        self.kinds = {**KINDS, torque: "VECTOR6D"}
        self.torque = torque
        self.server = socket.create_server(address)
        self.port = self.server.getsockname()[1]
        self.requested: list[str] = []
        self.sent = 0
        self.stopping = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while not self.stopping:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            try:
                self._serve_client(connection)
            except OSError:
                pass
            finally:
                connection.close()

    def _serve_client(self, connection: socket.socket) -> None:
        variables: list[str] = []
        while True:
            head = self._receive(connection, 3)
            size, kind = struct.unpack(">HB", head)
            payload = self._receive(connection, size - 3)
            if kind == ord("V"):
                self._send(connection, kind, b"\x01")
            elif kind == ord("v"):
                self._send(connection, kind, struct.pack(">4I", 5, 11, 0, 0))
            elif kind == ord("O"):
                variables = [name for name in payload[8:].decode().split(",") if name]
                self.requested += variables
                kinds = [self.kinds.get(name, "NOT_FOUND") for name in variables]
                self._send(connection, kind, bytes([0 if "NOT_FOUND" in kinds else 1]) + ",".join(kinds).encode())
            elif kind == ord("S"):
                self._send(connection, kind, b"\x01")
                self._send(connection, ord("M"), b"\x04warm\x05robot\x02")
                self._stream(connection, variables)
                return

    def _stream(self, connection: socket.socket, variables: list[str]) -> None:
        for row in self.rows.tolist():
            values = {"timestamp": row[:1], "actual_q": row[1:7], "actual_qd": row[7:13], self.torque: row[13:19]}
            parts = []
            for name in variables:
                form = SIZES[self.kinds[name]]
                count = 1 if len(form) == 2 else int(form[1])
                numbers = values.get(name, [0] * count)
                parts.append(struct.pack(form, *numbers))
            self._send(connection, ord("U"), b"\x01" + b"".join(parts))
            self.sent += 1
            time.sleep(self.period)
        time.sleep(0.2)

    def _send(self, connection: socket.socket, kind: int, payload: bytes) -> None:
        connection.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)

    def _receive(self, connection: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                raise OSError("gone")
            data += more
        return data

    def stop(self) -> None:
        self.stopping = True
        self.server.close()
