"""`monitor`: runs the monitors over logs or a running robot from Python, and returns the events."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.export.coerce import ModelLike, as_model
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns, by_columns
from steelyard.signals.log import Log
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import OutputSetup, WatchOutput, WatchReport
from steelyard.watch.settings import SourceLike, WatchSettings, make_watch

# Newest events in a result: enough for years of alarms, and bounded if a sensor fails in every sample.
_MOST_EVENTS = 10_000


@dataclass(frozen=True, repr=False)
class MonitoringResult(DisplayMixin):
    """Events and final estimates of the monitors.

    Args:
        robot: Name of the robot.
        events: Events in order of detection; the newest 10,000.
        report: Estimates of all monitors at the end.
    """

    robot: str
    events: tuple[WatchEvent, ...]
    report: WatchReport

    @property
    def alarms(self) -> tuple[WatchEvent, ...]:
        """Events for which a person should look at the robot."""
        return tuple(event for event in self.events if event.alarm)

    def headline(self) -> Headline:
        samples = self.report.counts.get("samples", 0)
        alarms = self.alarms
        sentence = f"{self.robot}: {samples:,} samples, {len(self.events)} events, {len(alarms)} of them alarms"
        return Headline("warning" if alarms else "good", sentence, tuple(event.message for event in alarms))

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        heads = ("t", "kind", "alarm", "message")
        rows = [[getattr(event, head) for head in heads] for event in self.events]
        return {"events": lambda: by_columns(heads, rows)}


class _Collector(WatchOutput):
    """Collects events and the last report."""

    def __init__(self) -> None:
        super().__init__("", OutputSetup(()))
        self.events: deque[WatchEvent] = deque(maxlen=_MOST_EVENTS)
        self.report: WatchReport | None = None

    def write_report(self, report: WatchReport) -> None:
        self.report = report

    def write_event(self, event: WatchEvent) -> None:
        self.events.append(event)


class _Callbacks(WatchOutput):
    """Passes events and reports to functions of the caller."""

    def __init__(
        self, on_event: Callable[[WatchEvent], Any] | None, on_report: Callable[[WatchReport], Any] | None
    ) -> None:
        super().__init__("", OutputSetup(()))
        self._on_event, self._on_report = on_event, on_report

    def write_report(self, report: WatchReport) -> None:
        if self._on_report is not None:
            self._on_report(report)

    def write_event(self, event: WatchEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)


def monitor(
    model: ModelLike,
    sources: SourceLike | Sequence[SourceLike],
    *,
    settings: WatchSettings | None = None,
    on_event: Callable[[WatchEvent], Any] | None = None,
    on_report: Callable[[WatchReport], Any] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> MonitoringResult:
    """Monitor a robot with its model: contacts, payload, wear of the drives, and validity of the model.

    Logs are processed as fast as possible, unless the settings state a speed. A running robot is monitored until
    `stopped` returns True. The functions of the caller run in a thread of their own and never delay a sample; one that
    raises an error is not called again.

    Args:
        model: Run folder, result of `identify`, exported model, or `Model`; with a covariance its limits are sharper.
        sources: Log, path or list of them, or the address of a running robot, such as "tcp:5005".
        settings: Monitors, outputs, false-alarm rate and state; default: all monitors, one false alarm per day.
        on_event: Receives each event when it is detected.
        on_report: Receives the report of all monitors, several times per second.
        stopped: Returns True to end; called about ten times per second.
    """
    single = isinstance(sources, str | os.PathLike | Log)
    listed: list[SourceLike] = [sources] if single else list(sources)  # type: ignore[list-item, arg-type]
    collector = _Collector()
    outputs = (collector, _Callbacks(on_event, on_report))
    watch, _ = make_watch(model, listed, settings or WatchSettings(speed=math.inf), outputs)
    watch.run(stopped)
    if collector.report is None:
        raise SteelyardError("The source ended without samples; check its address and the columns of the log.")
    return MonitoringResult(as_model(model).robot.name, tuple(collector.events), collector.report)
