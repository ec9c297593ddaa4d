"""`RobotWatch`: the loop from a source to what is told: source, clock, observer, parts, outputs; and its snapshots."""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.clock import SampleClock
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.parts import PartState, WatchEvent, WatchPart
from steelyard.watch.patient import PatientParts
from steelyard.watch.snapshots import Snapshots
from steelyard.watch.source import Lasting
from steelyard.watch.tally import Tally

# A thread that draws or writes gives way to samples after this long (Python's own choice is 5 ms).
_GIVE_WAY_S = 1e-4
# So long a read waits for samples; then it is looked whether something is due.
_WAIT_S = 0.05


class Observing(Protocol):
    """What makes of samples what the parts see."""

    def take(self, batch: SampleBatch) -> Seen:
        """What is seen of the next `batch`."""

    def state(self) -> PartState:
        """All that the next batch needs."""

    def restore(self, state: PartState) -> None:
        """Go on from a `state`."""


@dataclass(frozen=True)
class WatchTimes:
    """How often things are done, s.

    Args:
        tell_s: between two reports; by the wall clock of a running robot, by the log's in a replay.
        snapshot_s: between two snapshots, by the wall clock.
    """

    tell_s: float = 0.2
    snapshot_s: float = 2.0


class RobotWatch:
    """A robot, watched.

    Args:
        source: where samples come from.
        clock: that orders them.
        observer: that sees them.
        parts: what is told, by name.
        outputs: where it goes.
        snapshots: where its state is kept; None for nowhere.
        times: how often.
        now: a clock that never goes back, s.
    """

    def __init__(
        self,
        source: Lasting,
        clock: SampleClock,
        observer: Observing,
        parts: Mapping[str, WatchPart],
        outputs: Outputs,
        snapshots: Snapshots | None = None,
        times: WatchTimes = WatchTimes(),  # noqa: B008
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source, self.clock, self.observer, self.outputs = source, clock, observer, outputs
        self.parts, self.snapshots, self.times = dict(parts), snapshots, times
        self.tally = Tally()
        self.t = float("nan")
        self._now, self._stale = now, False
        self._patient = PatientParts(self._show_patient, source.source.live, self._missed, self._failed)
        self._before: dict[str, int] = {}  # counts of the processes before this one
        self._tell_at, self._snap_at = -np.inf, now() + times.snapshot_s
        if snapshots is not None:
            self._go_on(snapshots.read())

    # ------------------------------------------------------------ one turn after the other

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Watch until the source ends or `stopped` says so; then the last snapshot is written, and outputs end."""
        gc.collect()
        gc.freeze()  # what is there stays; looking through it again and again would cost milliseconds
        before = sys.getswitchinterval()
        sys.setswitchinterval(_GIVE_WAY_S)
        try:
            while not stopped() and self.turn():
                pass
            for batch in self.clock.end():
                self._take(batch)
            self._patient.wait()
            self._tell_events()
            self.outputs.told(self.report())
            if self.snapshots is not None:
                self.snapshots.write(self.state())
        finally:
            self._patient.close()
            self.source.close()
            self.outputs.close()
            if self.snapshots is not None:
                self.snapshots.close()
            sys.setswitchinterval(before)
            gc.unfreeze()

    def turn(self, wait_s: float = _WAIT_S) -> bool:
        """Read what has come, for up to `wait_s` seconds, and do what is due; False when the source has ended."""
        rows = self.source.read(wait_s)
        if rows is None:
            return False
        if self.source.reopened:
            self.source.reopened = False
            self.clock.cut()
        if len(rows):
            for batch in self.clock.take(rows):
                self._take(batch)
        self._tell_events()
        now = self._now()
        clock = now if self.source.source.live else self.t
        if not clock < self._tell_at:
            self._tell_at = clock + self.times.tell_s
            self._report_soon()
        if self.snapshots is not None and now >= self._snap_at:
            self._snap_at = now + self.times.snapshot_s
            self._keep_soon()
        return True

    def _take(self, batch: SampleBatch) -> None:
        seen = self.observer.take(batch)
        self.t = float(batch.t[-1])
        for name, part in list(self.parts.items()):
            if part.urgent:
                self._show(name, part, seen)
        self._patient.see(seen)
        self.outputs.took(seen)

    def _show_patient(self, seen: Seen) -> None:
        for name, part in list(self.parts.items()):
            if not part.urgent:
                self._show(name, part, seen)
                for event in part.fetch_events():
                    self.outputs.happened(event)

    def _show(self, name: str, part: WatchPart, seen: Seen) -> None:
        try:
            part.take(seen)
        except Exception as why:  # a part that fails must not blind the others
            self.parts.pop(name, None)
            self._failed(why, f"The part '{name}'", "; the watch goes on without it")

    def _failed(self, why: Exception, what: str = "A part's report", then: str = "") -> None:
        message = f"{what} has failed ({type(why).__name__}: {why}){then}."
        self.outputs.happened(WatchEvent(self.t, "failed", message, alarm=True))
        self.tally.count("parts failed")

    def _missed(self) -> None:
        self.tally.count("missed by parts", "Samples come faster than all parts can take them; some miss some.")

    def _report_soon(self) -> None:
        """Tell what is known now: urgent parts at once, the others when they have seen as much."""
        told = self._told(True)
        made = WatchReport(self.t, self.source.stale, self.source.age_s, self.clock.period, self.counts(), told)
        self._patient.then(lambda: self.outputs.told(replace(made, parts={**told, **self._told(False)})))

    def _keep_soon(self) -> None:
        """Keep the state of now, in the same way: samples need not wait for the disk."""
        known = self._state_of(True)

        def keep() -> None:
            assert self.snapshots is not None
            try:
                self.snapshots.write({**known, **self._state_of(False)})
            except OSError as why:
                self.tally.count("not kept", f"The state cannot be kept ({why.strerror or why}); make room.")

        self._patient.then(keep)

    def _tell_events(self) -> None:
        for part in list(self.parts.values()):
            if part.urgent:
                for event in part.fetch_events():
                    self.outputs.happened(event)
        for tally in (self.source.source.tally, self.clock.tally, self.outputs.tally, self.tally):
            for sentence in tally.fetch():
                self.outputs.happened(WatchEvent(self.t, "source", sentence))
        stale = self.source.stale
        if stale != self._stale:
            self._stale = stale
            self.tally.count("stale", times=int(stale))
            old = f"There are no samples for {self.source.age_s:.1f} s: what is told is stale."
            kind, message = ("stale", old) if stale else ("fresh", "There are samples again.")
            self.outputs.happened(WatchEvent(self.t, kind, message, alarm=stale))

    # ------------------------------------------------------------ what it knows

    def report(self) -> WatchReport:
        """What is told now."""
        self._patient.wait()
        told = {**self._told(True), **self._told(False)}
        stale = self.source.stale
        return WatchReport(self.t, stale, self.source.age_s, self.clock.period, self.counts(), told)

    def _told(self, urgent: bool) -> dict[str, dict[str, Any]]:
        return {name: part.telling() for name, part in list(self.parts.items()) if part.urgent == urgent}

    def counts(self) -> dict[str, int]:
        """Samples, and what was wrong with others, by kind; of the processes before this one, too."""
        out = dict(self._before)
        for tally in (self.clock.tally, self.source.source.tally, self.outputs.tally, self.tally):
            for kind, count in list(tally.counts.items()):
                out[kind] = out.get(kind, 0) + count
        return out

    def state(self) -> PartState:
        """All that another process needs to go on."""
        self._patient.wait()
        return {**self._state_of(True), **self._state_of(False)}

    def _state_of(self, urgent: bool) -> PartState:
        """The state of parts that are urgent, with all that is not a part's; or of the others."""
        holders: dict[str, Any] = {f"part {name}": part for name, part in self.parts.items() if part.urgent == urgent}
        if urgent:
            holders |= {"clock": self.clock, "observer": self.observer, "source": self.source.source}
        out = {f"{name}/{key}": np.array(x) for name, holder in holders.items() for key, x in holder.state().items()}
        return {**out, "counts": np.array(json.dumps(self.counts())), "t": np.array(self.t)} if urgent else out

    def _go_on(self, state: PartState | None) -> None:
        if state is None:
            return
        holders: dict[str, Any] = {"clock": self.clock, "observer": self.observer}
        holders |= {f"part {name}": part for name, part in self.parts.items()}

        def of(name: str) -> PartState:
            return {key.split("/", 1)[1]: x for key, x in state.items() if key.startswith(f"{name}/")}

        for name, holder in holders.items():
            if found := of(name):
                holder.restore(found)
        if not self.source.source.restore(of("source")):
            self.clock.cut()  # what came in the meantime is lost
        self._before = {str(kind): int(count) for kind, count in json.loads(str(state["counts"])).items()}
        self.t = float(state["t"])


@contextmanager
def until_told() -> Iterator[Callable[[], bool]]:
    """In here the first Ctrl-C or SIGTERM is only noted; yields the function that tells whether there was one. The
    second ends the process as it would have."""
    told: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: Any) -> None:
        told.append(number)
        signal.signal(number, before[number])

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield lambda: bool(told)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
