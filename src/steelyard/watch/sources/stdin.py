"""`StandardInput`: lines on standard input."""

from __future__ import annotations

import os
import select
import sys

from steelyard.ground.arrays import Array
from steelyard.watch.line_decoder import LineDecoder
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource
from steelyard.watch.sources.sockets import READ_BYTES


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
