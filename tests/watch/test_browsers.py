"""Pages in a browser, which can send requests to any port of the machine that they are read on."""

from __future__ import annotations

import socket

from live_cases import json_lines, samples
from test_sources import gathered, opened


def test_a_page_in_a_browser_cannot_send_samples() -> None:
    """A page may post any text to any port of the machine that it is read on."""
    lines = b"".join(json_lines(samples(20)))
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
    with opened("tcp:0") as source, socket.create_connection(("127.0.0.1", source.port)) as page:
        page.sendall(head % len(lines) + lines)
        assert len(gathered(source, 20, 5)) == 0
        assert source.tally.counts["hung up on"] == 1
        with socket.create_connection(("127.0.0.1", source.port)) as robot:
            robot.sendall(lines)
            assert len(gathered(source, 20)) == 20
