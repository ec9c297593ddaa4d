"""Lines over TCP and Unix sockets: this end listens (`tcp`, `unix`), or connects (`tcp-to`, `unix-to`)."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
from abc import abstractmethod
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.watch.lines import LineDecoder
from steelyard.watch.source import LIVE_SOURCES, LiveSource, SourceError, SourceLost, host_and_port

# Bytes that are read at once from a sender: at 20 kHz some thirty milliseconds of six axes.
PIECE = 1 << 18
# Senders at a time; one more is hung up on.
_MOST_SENDERS = 4
# A sender none of whose so many bytes made sense is hung up on.
_MOST_NONSENSE = 1 << 24
_CONNECT_S = 2.0
# A page in a browser can send such requests to any port of this machine, with lines of samples as their body.
_WEB = (b"GET ", b"POST ", b"HEAD ", b"PUT ", b"OPTIONS ", b"DELETE ", b"PATCH ", b"CONNECT ", b"TRACE ")


class _Sender:
    """A connection with what was understood of it."""

    def __init__(self, connection: socket.socket, decoder: LineDecoder) -> None:
        self.connection, self.decoder, self.nonsense, self.good = connection, decoder, 0, 0
        self.is_web, self._begun = False, False
        self._room = memoryview(bytearray(PIECE))  # once: a new one for every sample costs more than to read it

    def read(self) -> Array | None:
        """What has come; None where the sender has gone."""
        try:
            data = bytes(self._room[: self.connection.recv_into(self._room)])
        except BlockingIOError:
            data = b"\n"  # nothing after all
        except OSError:
            data = b""
        if not data:
            self.decoder.end()
            return None
        if not self._begun:
            self._begun, self.is_web = True, data.startswith(_WEB)
        if self.is_web:
            return None
        rows = self.decoder.feed(data)
        self.nonsense = self.nonsense + len(data) if self.decoder.good == self.good else 0
        self.good = self.decoder.good
        return rows


class Listening(LiveSource):
    """A socket at which senders may come and go; their samples go the same way."""

    apart = True

    def open(self) -> None:
        self._server = self.bound()
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ, None)
        self._senders: list[_Sender] = []

    @abstractmethod
    def bound(self) -> socket.socket:
        """A socket that listens."""

    def read(self, wait_s: float) -> Array | None:
        out = []
        for key, _ in self._selector.select(wait_s):
            sender = key.data
            if sender is None:
                self._accept()
                continue
            rows = sender.read()
            if rows is None or sender.nonsense > _MOST_NONSENSE:
                if sender.is_web:
                    self.tally.count("hung up on", "A browser, or a program like one, was hung up on; send lines.")
                elif rows is not None:
                    self.tally.count("hung up on", "A sender sends nothing but nonsense; it was hung up on.")
                self._drop(sender)
            elif len(rows):
                out.append(rows)
        return out[0] if len(out) == 1 else np.vstack(out) if out else self.nothing()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            if len(self._senders) >= _MOST_SENDERS:
                self.tally.count("hung up on", f"There are {_MOST_SENDERS} senders already; one more was hung up on.")
                connection.close()
                return
            _prepare(connection)
            sender = _Sender(connection, LineDecoder(self.options, self.tally))
            self._senders.append(sender)
            self._selector.register(connection, selectors.EVENT_READ, sender)
            self.tally.count("senders")

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


class Connecting(LiveSource):
    """A socket of somebody else's, who sends."""

    apart = True
    silent_s = 10.0
    _sender: _Sender | None = None

    def open(self) -> None:
        connection = self.connected()
        _prepare(connection)
        self._sender = _Sender(connection, LineDecoder(self.options, self.tally))
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    @abstractmethod
    def connected(self) -> socket.socket:
        """A socket that is connected."""

    def read(self, wait_s: float) -> Array | None:
        assert self._sender is not None
        if not self._selector.select(wait_s):
            return self.nothing()
        rows = self._sender.read()
        if rows is None:
            raise SourceLost(f"{self.address}: was closed by the other side")
        return rows

    def close(self) -> None:
        if self._sender is not None:
            self._selector.close()
            self._sender.connection.close()
            self._sender = None


def _reached(make: Any, address: str) -> socket.socket:
    try:
        found: socket.socket = make()
        return found
    except OSError as why:
        raise SourceLost(f"{address}: {why.strerror or why}") from None


@LIVE_SOURCES.register("tcp")
class TcpListener(Listening):
    """Lines from whoever connects to a port of this machine, or of the address that is named."""

    description = "JSON lines or CSV from who connects to this port"
    example = "tcp:PORT"

    def bound(self) -> socket.socket:
        place = host_and_port(self.address, "tcp")
        try:
            family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
            return socket.create_server(place, family=family, backlog=_MOST_SENDERS)
        except OSError as why:
            raise SourceError(f"tcp:{self.address} cannot be had ({why.strerror}); name another port.") from None

    @property
    def port(self) -> int:
        """The port that was given, where 0 was asked for."""
        return int(self._server.getsockname()[1])


@LIVE_SOURCES.register("tcp-to")
class TcpClient(Connecting):
    """Lines from a server, on this machine where no other is named."""

    description = "JSON lines or CSV from a server"
    example = "tcp-to:HOST:PORT"

    def connected(self) -> socket.socket:
        place = host_and_port(self.address, "tcp-to")
        return _reached(lambda: socket.create_connection(place, _CONNECT_S), f"tcp-to:{self.address}")


def _unix_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise SourceError("This system has no Unix sockets; use tcp:PORT.")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@LIVE_SOURCES.register("unix")
class UnixListener(Listening):
    """Lines from whoever connects to a socket in the file system, which nobody but this user may."""

    description = "JSON lines or CSV from who connects to this socket"
    example = "unix:PATH"

    def bound(self) -> socket.socket:
        made = _unix_socket()
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(self.address).st_mode) and not self._alive():
                os.unlink(self.address)
        old = os.umask(0o177)
        try:
            made.bind(self.address)
            made.listen(_MOST_SENDERS)
        except OSError as why:
            made.close()
            raise SourceError(f"unix:{self.address} cannot be had ({why.strerror}); name another path.") from None
        finally:
            os.umask(old)
        self._bound = True
        return made

    def _alive(self) -> bool:
        """Whether somebody listens there: what a process that was killed left behind is taken away."""
        with _unix_socket() as probe:
            return probe.connect_ex(self.address) == 0

    def close(self) -> None:
        super().close()
        if self.__dict__.pop("_bound", False):
            with contextlib.suppress(OSError):
                os.unlink(self.address)


@LIVE_SOURCES.register("unix-to")
class UnixClient(Connecting):
    """Lines from a server at a socket in the file system."""

    description = "JSON lines or CSV from a server at this socket"
    example = "unix-to:PATH"

    def connected(self) -> socket.socket:
        def made() -> socket.socket:
            connection = _unix_socket()
            connection.settimeout(_CONNECT_S)
            connection.connect(self.address)
            return connection

        return _reached(made, f"unix-to:{self.address}")
