"""`TerminalPage`: a live page in the terminal."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

from steelyard.errors import printable
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, OutputSetup, WatchOutput, WatchReport

_SHOWN_EVENTS = 8
_REDRAW_PERIOD_S = 0.25


@WATCH_OUTPUTS.register("terminal")
class TerminalPage(WatchOutput):
    """Shows a table of the joints, all other values, and the last events.

    If standard output is not a terminal, it prints one line per event, and a summary at the end.
    """

    description = "a live page in the terminal"

    def __init__(self, where: str, setup: OutputSetup) -> None:
        super().__init__(where, setup)
        self._events: deque[WatchEvent] = deque(maxlen=_SHOWN_EVENTS)
        self._live: Any = None
        self._drawn = -1e9
        self._last: WatchReport | None = None
        self._alarms = 0

    def open(self) -> str:
        if sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False)
            self._live.start()
        return ""

    def write_event(self, event: WatchEvent) -> None:
        self._events.append(event)
        self._alarms += event.alarm
        if self._live is None:
            print(
                f"{event.t:.3f}  {'ALARM ' if event.alarm else ''}{event.kind}: {printable(event.message)}", flush=True
            )

    def write_report(self, report: WatchReport) -> None:
        self._last = report
        if self._live is not None and time.monotonic() - self._drawn > _REDRAW_PERIOD_S:
            self._live.update(self.page(report), refresh=True)
            self._drawn = time.monotonic()

    def page(self, report: WatchReport) -> Any:
        """Return the page of a `report` for Rich."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        state = f"STALE for {report.age_s:.1f} s" if report.stale else "live" if self.setup.live else "replay"
        rate = f", {_rate(report)}" if report.period_s else ""
        problems = _problems(report)
        head = Text(
            f"{printable(self.setup.title)}: {state}{rate}, t = {report.t:.2f} s",
            style="bold red" if report.stale else "bold",
        )
        counted = Text(f"{report.counts.get('samples', 0)} samples{'; ' if problems else ''}{problems}", style="dim")
        joints = Table("", *(printable(name) for name in self.setup.joints), box=None, padding=(0, 1))
        lines = Table(box=None, show_header=False, padding=(0, 1))
        for monitor, values in report.monitors.items():
            title = self.setup.titles.get(monitor) or monitor
            for name, value in values.items():
                label = f"{title} · {name.replace('_', ' ')}"
                if isinstance(value, list) and len(value) == len(self.setup.joints):
                    joints.add_row(label, *(_formatted(x) for x in value))
                else:
                    lines.add_row(label, _formatted(value))
        events = Table(box=None, show_header=False, padding=(0, 1))
        for event in reversed(self._events):
            style = "bold red" if event.alarm else ""
            events.add_row(f"{event.t:.2f} s", Text(printable(event.message), style=style))
        return Group(head, counted, joints, lines, events)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._last is not None:
            print(f"End at t = {self._last.t:.2f} s: {self._summary(self._last)}.", flush=True)

    def _summary(self, report: WatchReport) -> str:
        parts = [
            f"{report.counts.get('samples', 0)} samples",
            _rate(report) if report.period_s else "",
            _problems(report),
        ]
        alarms = "no alarm" if self._alarms == 0 else "1 alarm" if self._alarms == 1 else f"{self._alarms} alarms"
        return ", ".join([p for p in parts if p] + [alarms])


def _rate(report: WatchReport) -> str:
    return f"{1.0 / report.period_s:.4g} Hz"


def _problems(report: WatchReport) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in report.counts.items() if kind != "samples")


def _formatted(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_formatted(x) for x in value[:12])
    if isinstance(value, dict):
        return ", ".join(f"{key} {_formatted(x)}" for key, x in list(value.items())[:12])
    return printable(str(value))
