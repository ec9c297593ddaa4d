"""Lines in datagrams: one or more samples each, none of them cut."""

from __future__ import annotations

import select
import socket

from steelyard.ground.arrays import Array
from steelyard.watch.lines import LineDecoder
from steelyard.watch.source import LIVE_SOURCES, LiveSource, SourceError, host_and_port

# Datagrams that are taken at once, so that what has come is looked at before more is read.
_AT_ONCE = 256
# Bytes that the system keeps while nobody reads: half a second of six axes at 8 kHz.
_KEPT = 1 << 21


@LIVE_SOURCES.register("udp")
class UdpListener(LiveSource):
    """Datagrams with lines, at a port of this machine, or of the address that is named."""

    description = "datagrams with JSON lines or CSV"
    example = "udp:PORT"
    apart = True
    _socket: socket.socket | None = None

    def open(self) -> None:
        place = host_and_port(self.address, "udp")
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        made = socket.socket(family, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _KEPT)
            made.bind(place)
        except OSError as why:
            made.close()
            raise SourceError(f"udp:{self.address} cannot be had ({why.strerror}); name another port.") from None
        made.setblocking(False)
        self._socket = made
        self._decoder = LineDecoder(self.options, self.tally)

    @property
    def port(self) -> int:
        """The port that was given, where 0 was asked for."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def read(self, wait_s: float) -> Array | None:
        assert self._socket is not None
        if not select.select([self._socket], [], [], wait_s)[0]:
            return self.nothing()
        lines: list[bytes] = []
        for _ in range(_AT_ONCE):
            try:
                lines += self._socket.recv(1 << 16).split(b"\n")
            except OSError:  # no more has come
                break
        return self._decoder.whole(lines)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
