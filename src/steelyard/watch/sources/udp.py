"""`UdpListener`: complete lines in datagrams."""

from __future__ import annotations

import select
import socket

from steelyard.ground.arrays import Array
from steelyard.watch.line_decoder import LineDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceError, host_and_port

# Largest number of datagrams per read, so that samples are processed before more are read.
_AT_ONCE = 256
# Size of the system's buffer [bytes]: half a second of six axes at 8 kHz.
_BUFFER_BYTES = 1 << 21


@LIVE_SOURCES.register("udp")
class UdpListener(LiveSource):
    """Datagrams with lines at a port of this machine, or of the given local address."""

    description = "datagrams with JSON lines or CSV"
    example = "udp:PORT"
    forkable = True
    _socket: socket.socket | None = None

    def open(self) -> None:
        place = host_and_port(self.address, "udp")
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_DGRAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            listener.bind(place)
        except OSError as why:
            listener.close()
            raise SourceError(f"udp:{self.address} cannot be opened ({why.strerror}); give another port.") from None
        listener.setblocking(False)
        self._socket = listener
        self._decoder = LineDecoder(self.options, self.diagnostics)

    @property
    def port(self) -> int:
        """Port number; the system chooses it if the address has port 0."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def read(self, wait_s: float) -> Array | None:
        assert self._socket is not None
        if not select.select([self._socket], [], [], wait_s)[0]:
            return self.no_samples()
        lines: list[bytes] = []
        for _ in range(_AT_ONCE):
            try:
                lines += self._socket.recv(1 << 16).split(b"\n")
            except OSError:  # no more data
                break
        return self._decoder.decode_lines(lines)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
