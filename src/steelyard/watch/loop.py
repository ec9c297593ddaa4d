"""`RobotWatch`: the loop from a source to what is told: source, clock, observer, parts, outputs; and its snapshots."""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from steelyard.watch.batch import SampleBatch, Seen, joined
from steelyard.watch.clock import SampleClock
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.parts import PartState, WatchEvent, WatchPart
from steelyard.watch.snapshots import Snapshots
from steelyard.watch.source import Lasting
from steelyard.watch.tally import Tally

# A thread that draws or writes gives way to samples after this long (Python's own choice is 5 ms).
_GIVE_WAY_S = 5e-6
# Parts that are not urgent see so many samples together, for a call costs as much as a few samples; one part a turn, so
# that the next sample waits for one of them at most; none waits for more than so many.
_TOGETHER, _AT_MOST = 16, 64
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
        # What parts that are not urgent have not seen yet, and how many samples that is.
        self._later: dict[str, list[Seen]] = {name: [] for name, part in self.parts.items() if not part.urgent}
        self._waiting = dict.fromkeys(self._later, 0)
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
            self._catch_up()
            self._tell_events()
            self.outputs.told(self.report())
            if self.snapshots is not None:
                self.snapshots.write(self.state())
        finally:
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
            self.outputs.told(self.report())
        if self.snapshots is not None and now >= self._snap_at:
            self._snap_at = now + self.times.snapshot_s
            self.snapshots.keep(self.state())
        return True

    def _take(self, batch: SampleBatch) -> None:
        seen = self.observer.take(batch)
        self.t = float(batch.t[-1])
        if batch.fresh:
            self._catch_up()
        for name in list(self.parts):
            if name not in self._later:
                self._show(name, seen)
        for name, waiting in self._later.items():
            waiting.append(seen)
            self._waiting[name] += len(batch)
        if self._later:
            longest = max(self._waiting, key=self._waiting.__getitem__)
            self._catch_up([longest] if self._waiting[longest] >= _TOGETHER else [])
            self._catch_up([name for name, count in self._waiting.items() if count >= _AT_MOST])
        self.outputs.took(seen)

    def _catch_up(self, names: Sequence[str] | None = None) -> None:
        """Let parts that are not urgent, all or those with these names, see what they have not seen yet."""
        for name in list(self._later) if names is None else names:
            if self._later[name]:
                seen, self._later[name], self._waiting[name] = joined(self._later[name]), [], 0
                self._show(name, seen)

    def _show(self, name: str, seen: Seen) -> None:
        try:
            self.parts[name].take(seen)
        except Exception as why:  # a part that fails must not blind the others
            del self.parts[name]
            self._later.pop(name, None)
            self._waiting.pop(name, None)
            message = f"The part '{name}' has failed ({type(why).__name__}: {why}); the watch goes on without it."
            self.outputs.happened(WatchEvent(self.t, "failed", message, alarm=True))
            self.tally.count("parts failed")

    def _tell_events(self) -> None:
        for part in self.parts.values():
            for event in part.fetch_events():
                self.outputs.happened(event)
        for tally in (self.source.source.tally, self.clock.tally, self.outputs.tally):
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
        if not self.source.source.live:
            self._catch_up()
        told = {name: part.telling() for name, part in self.parts.items()}
        stale = self.source.stale
        return WatchReport(self.t, stale, self.source.age_s, self.clock.period, self.counts(), told)

    def counts(self) -> dict[str, int]:
        """Samples, and what was wrong with others, by kind; of the processes before this one, too."""
        out = dict(self._before)
        for tally in (self.clock.tally, self.source.source.tally, self.outputs.tally, self.tally):
            for kind, count in list(tally.counts.items()):
                out[kind] = out.get(kind, 0) + count
        return out

    def state(self) -> PartState:
        """All that another process needs to go on."""
        self._catch_up()
        holders: dict[str, Any] = {"clock": self.clock, "observer": self.observer, "source": self.source.source}
        holders |= {f"part {name}": part for name, part in self.parts.items()}
        out = {f"{name}/{key}": np.array(x) for name, holder in holders.items() for key, x in holder.state().items()}
        out["counts"] = np.array(json.dumps(self.counts()))
        out["t"] = np.array(self.t)
        return out

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
