"""Lines over TCP, Unix sockets and standard input.

This side of a socket listens (`tcp`, `unix`) or connects (`tcp-to`, `unix-to`).
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import socket
import stat
import sys
from abc import abstractmethod
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.watch.line_decoder import LineDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError, SourceLostError, host_and_port

# Largest number of bytes per read: about 30 ms of six axes at 20 kHz.
READ_BYTES = 1 << 18
# Largest number of connected senders; further connections are closed.
_MAX_SENDERS = 4
# A sender is disconnected after this many bytes without a valid line.
_MAX_INVALID_BYTES = 1 << 24
_CONNECT_S = 2.0
# Start of HTTP requests: a web page can send them to any port of this machine, with lines of samples as body.
_HTTP_METHODS = (b"GET ", b"POST ", b"HEAD ", b"PUT ", b"OPTIONS ", b"DELETE ", b"PATCH ", b"CONNECT ", b"TRACE ")


class _Sender:
    """A connection with its decoder."""

    def __init__(self, connection: socket.socket, decoder: LineDecoder) -> None:
        self.connection, self.decoder, self.invalid_bytes, self.valid = connection, decoder, 0, 0
        self.is_web, self._started = False, False
        self._buffer = memoryview(bytearray(READ_BYTES))  # reused: a new buffer per read costs more than the read

    def read(self) -> Array | None:
        """Return new samples; None if the sender has disconnected."""
        try:
            data = bytes(self._buffer[: self.connection.recv_into(self._buffer)])
        except BlockingIOError:
            data = b"\n"  # no data
        except OSError:
            data = b""
        if not data:
            self.decoder.finish()
            return None
        if not self._started:
            self._started, self.is_web = True, data.startswith(_HTTP_METHODS)
        if self.is_web:
            return None
        rows = self.decoder.feed(data)
        self.invalid_bytes = self.invalid_bytes + len(data) if self.decoder.valid == self.valid else 0
        self.valid = self.decoder.valid
        return rows


class ListeningSource(LiveSource):
    """A listening socket; samples of all senders are joined."""

    forkable = True

    def open(self) -> None:
        self._server = self.listen()
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ, None)
        self._senders: list[_Sender] = []

    @abstractmethod
    def listen(self) -> socket.socket:
        """Return a listening socket."""

    def read(self, wait_s: float) -> Array | None:
        out = []
        for key, _ in self._selector.select(wait_s):
            sender = key.data
            if sender is None:
                self._accept()
                continue
            rows = sender.read()
            if rows is None or sender.invalid_bytes > _MAX_INVALID_BYTES:
                if sender.is_web:
                    self.diagnostics.count(
                        "hung up on", "A sender used HTTP, like a browser, and was disconnected. Send plain lines."
                    )
                elif rows is not None:
                    self.diagnostics.count("hung up on", "A sender sent no valid lines and was disconnected.")
                self._drop(sender)
            elif len(rows):
                out.append(rows)
        return out[0] if len(out) == 1 else np.vstack(out) if out else self.no_samples()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            if len(self._senders) >= _MAX_SENDERS:
                self.diagnostics.count(
                    "hung up on", f"{_MAX_SENDERS} senders are connected already; another one was refused."
                )
                connection.close()
                return
            _prepare(connection)
            sender = _Sender(connection, LineDecoder(self.options, self.diagnostics))
            self._senders.append(sender)
            self._selector.register(connection, selectors.EVENT_READ, sender)
            self.diagnostics.count("senders")

    def _drop(self, sender: _Sender) -> None:
        self._selector.unregister(sender.connection)
        sender.connection.close()
        self._senders.remove(sender)

    def close(self) -> None:
        if hasattr(self, "_server"):
            for sender in list(self._senders):
                self._drop(sender)
            self._selector.close()
            self._server.close()


def _prepare(connection: socket.socket) -> None:
    connection.setblocking(False)
    if connection.family != getattr(socket, "AF_UNIX", None):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class ConnectingSource(LiveSource):
    """A connection to a server that sends samples."""

    forkable = True
    max_silence_s = 10.0
    _sender: _Sender | None = None

    def open(self) -> None:
        connection = self.connect()
        _prepare(connection)
        self._sender = _Sender(connection, LineDecoder(self.options, self.diagnostics))
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    @abstractmethod
    def connect(self) -> socket.socket:
        """Return a connected socket."""

    def read(self, wait_s: float) -> Array | None:
        assert self._sender is not None
        if not self._selector.select(wait_s):
            return self.no_samples()
        rows = self._sender.read()
        if rows is None:
            raise SourceLostError(f"{self.address}: the server closed the connection")
        return rows

    def close(self) -> None:
        if self._sender is not None:
            self._selector.close()
            self._sender.connection.close()
            self._sender = None


def _connect(make: Any, address: str) -> socket.socket:
    """Call `make`; a failure is a `SourceLostError`."""
    try:
        connection: socket.socket = make()
        return connection
    except OSError as why:
        raise SourceLostError(f"{address}: {why.strerror or why}") from None


@LIVE_SOURCES.register("tcp")
class TcpListener(ListeningSource):
    """Lines from programs that connect to a port of this machine, or of the given local address."""

    description = "JSON lines or CSV from programs that connect to this port"
    example = "tcp:PORT"

    def listen(self) -> socket.socket:
        place = host_and_port(self.address, "tcp")
        try:
            family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
            return socket.create_server(place, family=family, backlog=_MAX_SENDERS)
        except OSError as why:
            raise SourceError(f"tcp:{self.address} cannot be opened ({why.strerror}); give another port.") from None

    @property
    def port(self) -> int:
        """Port number; the system chooses it if the address has port 0."""
        return int(self._server.getsockname()[1])


@LIVE_SOURCES.register("tcp-to")
class TcpClient(ConnectingSource):
    """Lines from a server; without a host, on this machine."""

    description = "JSON lines or CSV from a server"
    example = "tcp-to:HOST:PORT"

    def connect(self) -> socket.socket:
        place = host_and_port(self.address, "tcp-to")
        return _connect(lambda: socket.create_connection(place, _CONNECT_S), f"tcp-to:{self.address}")


def _unix_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise SourceError("This system has no Unix sockets; use tcp:PORT.")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@LIVE_SOURCES.register("unix")
class UnixListener(ListeningSource):
    """Lines from programs of this user that connect to a socket in the file system."""

    description = "JSON lines or CSV from programs that connect to this socket"
    example = "unix:PATH"

    def listen(self) -> socket.socket:
        listener = _unix_socket()
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(self.address).st_mode) and not self._is_in_use():
                os.unlink(self.address)
        old = os.umask(0o177)
        try:
            listener.bind(self.address)
            listener.listen(_MAX_SENDERS)
        except OSError as why:
            listener.close()
            raise SourceError(f"unix:{self.address} cannot be opened ({why.strerror}); give another path.") from None
        finally:
            os.umask(old)
        self._owns_path = True
        return listener

    def _is_in_use(self) -> bool:
        """Whether a process listens at the path; a socket file of a killed process may be replaced."""
        with _unix_socket() as probe:
            return probe.connect_ex(self.address) == 0

    def close(self) -> None:
        super().close()
        if self.__dict__.pop("_owns_path", False):
            with contextlib.suppress(OSError):
                os.unlink(self.address)


@LIVE_SOURCES.register("unix-to")
class UnixClient(ConnectingSource):
    """Lines from a server at a socket in the file system."""

    description = "JSON lines or CSV from a server at this socket"
    example = "unix-to:PATH"

    def connect(self) -> socket.socket:
        def make() -> socket.socket:
            connection = _unix_socket()
            connection.settimeout(_CONNECT_S)
            connection.connect(self.address)
            return connection

        return _connect(make, f"unix-to:{self.address}")


@LIVE_SOURCES.register("stdin")
class StandardInput(LiveSource):
    """JSON lines or CSV from standard input; ends with the input."""

    description = "JSON lines or CSV on standard input"
    example = "-"
    forkable = True

    def open(self) -> None:
        self._decoder = LineDecoder(self.options, self.diagnostics)
        self._file = sys.stdin.fileno()

    def read(self, wait_s: float) -> Array | None:
        # Windows cannot wait for a pipe; there `os.read` blocks.
        if os.name != "nt" and not select.select([self._file], [], [], wait_s)[0]:
            return self.no_samples()
        data = os.read(self._file, READ_BYTES)
        if data:
            return self._decoder.feed(data)
        last = self._decoder.feed(b"\n")  # complete the last line
        return last if len(last) else None

    def close(self) -> None:
        pass
