"""Web pages must not be able to send samples."""

from __future__ import annotations

import socket

from live_samples import json_lines, samples
from test_sources import collect, open_for_test


def test_a_page_in_a_browser_cannot_send_samples() -> None:
    """A web page may post any text to any port of the local machine."""
    lines = b"".join(json_lines(samples(20)))
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
    with open_for_test("tcp:0") as source, socket.create_connection(("127.0.0.1", source.port)) as page:
        page.sendall(head % len(lines) + lines)
        assert len(collect(source, 20, 5)) == 0
        assert source.diagnostics.counts["hung up on"] == 1
        with socket.create_connection(("127.0.0.1", source.port)) as robot:
            robot.sendall(lines)
            assert len(collect(source, 20)) == 20
