"""`JsonLines`: one line of JSON per report and event."""

from __future__ import annotations

import json
import sys
from typing import IO, Any

from steelyard.ground.files import plain
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, WatchOutput, WatchReport


@WATCH_OUTPUTS.register("jsonl")
class JsonLines(WatchOutput):
    """Appends to a file or writes to standard output; each line is written at once."""

    description = "a line of JSON for every report and event, to a file or standard output"
    _file: IO[str] | None = None

    def open(self) -> str:
        self._file = open(self.where, "a", encoding="utf-8") if self.where else sys.stdout  # noqa: SIM115
        return ""

    def write_report(self, report: WatchReport) -> None:
        self._write(report.plain())

    def write_event(self, event: WatchEvent) -> None:
        self._write(event.plain())

    def _write(self, value: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(plain(value), allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()
