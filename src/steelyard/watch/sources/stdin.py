"""Lines on standard input."""

from __future__ import annotations

import os
import select
import sys

from steelyard.ground.arrays import Array
from steelyard.watch.lines import LineDecoder
from steelyard.watch.source import LIVE_SOURCES, LiveSource
from steelyard.watch.sources.stream import PIECE


@LIVE_SOURCES.register("stdin")
class StandardInput(LiveSource):
    """JSON lines or CSV that another program writes; its end is the end."""

    description = "JSON lines or CSV on standard input"
    example = "-"
    apart = True

    def open(self) -> None:
        self._decoder = LineDecoder(self.options, self.tally)
        self._file = sys.stdin.fileno()

    def read(self, wait_s: float) -> Array | None:
        # Windows cannot wait for a pipe; there reading itself waits.
        if os.name != "nt" and not select.select([self._file], [], [], wait_s)[0]:
            return self.nothing()
        data = os.read(self._file, PIECE)
        if data:
            return self._decoder.feed(data)
        last = self._decoder.feed(b"\n")  # the last line may lack its end
        return last if len(last) else None

    def close(self) -> None:
        pass
