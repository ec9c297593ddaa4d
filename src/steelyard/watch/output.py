"""`WatchOutput`: a destination for reports and events; `WATCH_OUTPUTS`: their registry; `Outputs`: all of them.

`Outputs` has its own thread, so that a slow disk or a stopped terminal never delays the robot's samples.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from steelyard.errors import SteelyardError
from steelyard.ground.registry import Registry
from steelyard.ground.short_repr import short_repr
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.monitor_base import WatchEvent

# Items that may wait for the outputs. A watch of a running robot drops later ones and counts them.
_MAX_WAITING = 4096


@short_repr
@dataclass(frozen=True)
class WatchReport:
    """Estimates of all monitors at one moment.

    Args:
        t: Time of the last sample by the clock of the source [s].
        stale: Whether no samples have arrived for some time, so that the estimates are old.
        age_s: Time since the last sample [s].
        period_s: Sample period [s]; 0 if not known yet.
        counts: Number of samples and of problems, by kind.
        monitors: Report of each monitor, by name.
    """

    t: float
    stale: bool
    age_s: float
    period_s: float
    counts: Mapping[str, int]
    monitors: Mapping[str, Mapping[str, Any]]

    def numbers(self) -> Iterator[tuple[str, str, float | list[float]]]:
        """Yield all values that can be plotted: monitor, name, number or list of numbers."""
        for monitor, values in self.monitors.items():
            for name, value in values.items():
                if isinstance(value, int | float) or (
                    isinstance(value, list) and value and all(isinstance(x, int | float) for x in value)
                ):
                    yield monitor, name, value

    def plain(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        head = {"t": self.t, "stale": self.stale, "age_s": round(self.age_s, 4), "period_s": self.period_s}
        return {**head, "counts": dict(self.counts), **{name: dict(values) for name, values in self.monitors.items()}}


@dataclass(frozen=True)
class OutputSetup:
    """Settings of outputs.

    Args:
        joints: Names of the model's joints.
        title: Name of the model and source, for display.
        titles: Titles of the monitors, by name.
        units: Unit of each joint's torque, "N m" or "N".
        live: Whether the samples come from a running robot.
        origins: Web pages and host names beyond this machine that servers accept.
    """

    joints: Sequence[str]
    title: str = "steelyard watch"
    titles: Mapping[str, str] = field(default_factory=dict)
    units: Sequence[str] = ()
    live: bool = True
    origins: Sequence[str] = ()


class WatchOutput(ABC):
    """A destination for reports and events.

    Args:
        where: File or port: the text after "=".
        setup: Settings.
    """

    description: ClassVar[str] = ""
    wants_samples: ClassVar[bool] = False  # all samples, besides reports and events

    def __init__(self, where: str, setup: OutputSetup) -> None:
        self.where, self.setup = where, setup
        self.diagnostics = Diagnostics()  # `Outputs` replaces it by one that all outputs share

    def open(self) -> str:
        """Open the output in the calling thread; return a sentence for the user, or ""."""
        return ""

    def write_samples(self, batch: ObservedBatch) -> None:  # noqa: B027
        """Write a `batch` of samples."""

    @abstractmethod
    def write_report(self, report: WatchReport) -> None:
        """Write a `report`."""

    @abstractmethod
    def write_event(self, event: WatchEvent) -> None:
        """Write an `event`."""

    def close(self) -> None:  # noqa: B027
        """Complete what was written, and close the output."""


WATCH_OUTPUTS: Registry[type[WatchOutput]] = Registry("output", ("steelyard.watch.outputs",), group="steelyard.outputs")


def make_output(text: str, setup: OutputSetup) -> WatchOutput:
    """Create an output.

    Args:
        text: KIND or KIND=WHERE.
        setup: Settings.
    """
    kind, _, where = text.partition("=")
    return WATCH_OUTPUTS[kind](where, setup)


class Outputs:
    """All outputs of a watch, in one thread.

    Args:
        members: The outputs, opened.
        waits: Whether the caller waits for slow outputs, as a replay does; otherwise items are dropped.
        diagnostics: Counts dropped items and failed outputs.
    """

    def __init__(
        self, members: Sequence[WatchOutput], waits: bool = False, diagnostics: Diagnostics | None = None
    ) -> None:
        self.members, self.diagnostics = list(members), diagnostics or Diagnostics()
        for member in self.members:
            member.diagnostics = self.diagnostics
        self._waits = waits
        self._queue: queue.Queue[tuple[str, Any] | None] = queue.Queue(_MAX_WAITING)
        self._wants_samples = any(member.wants_samples for member in members)
        self._thread: threading.Thread | None = None  # starts with the first item

    def write_samples(self, batch: ObservedBatch) -> None:
        """Pass a `batch` to the outputs that want samples."""
        if self._wants_samples:
            self._put("write_samples", batch)

    def write_report(self, report: WatchReport) -> None:
        """Pass a `report` to all outputs."""
        self._put("write_report", report)

    def write_event(self, event: WatchEvent) -> None:
        """Pass an `event` to all outputs."""
        self._put("write_event", event)

    def _put(self, method: str, value: Any) -> None:
        if not self.members:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="watch outputs")
            self._thread.start()
        if self._waits:
            self._queue.put((method, value))
            return
        try:
            self._queue.put_nowait((method, value))
        except queue.Full:
            self.diagnostics.count("not written", "The outputs are too slow; some reports or events are dropped.")

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            method, value = item
            for member in list(self.members):
                if method != "write_samples" or member.wants_samples:
                    self._call(member, method, value)

    def _call(self, member: WatchOutput, method: str, *values: Any) -> None:
        try:
            getattr(member, method)(*values)
        except Exception as why:  # an output may fail with any error of its library; the watch continues without it
            self.members.remove(member)
            reason = str(why) if isinstance(why, SteelyardError | OSError) else f"{type(why).__name__}: {why}"
            kind = type(member).__name__
            self.diagnostics.count(f"output {kind} ended", f"An output failed and is closed ({reason.rstrip('.')}).")

    def close(self) -> None:
        """Write all waiting items, and close all outputs."""
        if self._thread is not None and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        for member in list(self.members):
            self._call(member, "close")
