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
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule, check_arrays
from steelyard.ground.untrusted import parse_json
from steelyard.watch.apart import watched_apart
from steelyard.watch.aside import WatchAside, added, ask_parts, show_part, states_of
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.clock import SampleClock
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.parts import PartState, WatchEvent, WatchPart
from steelyard.watch.snapshots import REMEDY, OtherWatchError, SnapshotError, Snapshots
from steelyard.watch.source import Lasting
from steelyard.watch.tally import Tally

# A thread that draws or writes gives way to samples after this long (Python's own choice is 5 ms).
_GIVE_WAY_S = 1e-4
# So long a read waits for samples; then it is looked whether something is due.
_WAIT_S = 0.05


class Resting(Protocol):
    """Who gets what the loop has seen, and does the rest."""

    def seen(self, seen: Seen) -> None:
        """Samples that were `seen`."""

    def happened(self, event: WatchEvent) -> None:
        """An `event`."""

    def reported(self, made: WatchReport) -> None:
        """A report, as far as it was `made`."""

    def kept(self, known: PartState) -> None:
        """Keep the state that is `known`."""

    def tell(self) -> None:
        """Pass on what there is to say."""


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
        apart: samples are seen in a process of their own, which nothing else delays (`steelyard.watch.apart`).
        real_time: that process asks to go before all ordinary ones.
    """

    def __init__(
        self,
        source: Lasting,
        clock: SampleClock,
        observer: Observing,
        parts: Mapping[str, WatchPart],
        outputs: Outputs,
        snapshots: Snapshots | None = None,
        times: WatchTimes = WatchTimes(),
        now: Callable[[], float] = time.monotonic,
        apart: bool = False,
        real_time: bool = False,
    ) -> None:
        self.source, self.clock, self.observer, self.outputs = source, clock, observer, outputs
        self.parts, self.snapshots, self.times = dict(parts), snapshots, times
        self.tally = Tally()
        self.t = float("nan")
        self._now, self._stale = now, False
        self._apart, self._real_time = apart, real_time
        self.aside = WatchAside(self.parts, outputs, snapshots, source.source.live)
        self.rest: Resting = self.aside  # who gets what was seen: here, or in the process that this one was made by
        self._before: dict[str, int] = {}  # counts of the processes before this one
        self._tell_at, self._snap_at = -np.inf, now() + times.snapshot_s
        if snapshots is not None:
            snapshots.read(self._go_on_from_file)

    # ------------------------------------------------------------ one turn after the other

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Watch until the source ends or `stopped` says so; then the last snapshot is written, and outputs end."""
        gc.collect()
        gc.freeze()  # what is there stays; looking through it again and again would cost milliseconds
        before = sys.getswitchinterval()
        sys.setswitchinterval(_GIVE_WAY_S)
        try:
            made = watched_apart(self, stopped, self._real_time) if self._apart else None
            if made is None:
                while not stopped() and self.turn():
                    pass
                self.finish()
                made = self.made()
            self.aside.end()
            self.aside.tell()
            self.outputs.told(self.aside.whole(made))
            if self.snapshots is not None:
                self.snapshots.write(self.state())
        finally:
            self.source.close()
            self.aside.close()
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
            self.rest.reported(self.made())
        if self.snapshots is not None and now >= self._snap_at:
            self._snap_at = now + self.times.snapshot_s
            self.rest.kept(self.urgent_state())
        return True

    def finish(self) -> None:
        """No more will come: take what the clock still holds back."""
        for batch in self.clock.end():
            self._take(batch)
        self._tell_events()

    def _take(self, batch: SampleBatch) -> None:
        seen = self.observer.take(batch)
        self.t = batch.rows.item(len(batch) - 1, 0)
        for name, part in list(self.parts.items()):
            if part.urgent:
                show_part(self.parts, name, seen, self._failed)
        self.rest.seen(seen)

    def _failed(self, why: str) -> None:
        self.tally.count("parts failed")
        self.rest.happened(WatchEvent(self.t, "failed", why, alarm=True))

    def _tell_events(self) -> None:
        for part in list(self.parts.values()):
            if part.urgent:
                for event in part.fetch_events():
                    self.rest.happened(event)
        for tally in (self.source.source.tally, self.clock.tally, self.tally):
            for sentence in tally.fetch():
                self.rest.happened(WatchEvent(self.t, "source", sentence))
        self.rest.tell()
        stale = self.source.stale
        if stale != self._stale:
            self._stale = stale
            self.tally.count("stale", times=int(stale))
            old = f"There are no samples for {self.source.age_s:.1f} s: what is told is stale."
            kind, message = ("stale", old) if stale else ("fresh", "There are samples again.")
            self.rest.happened(WatchEvent(self.t, kind, message, alarm=stale))

    # ------------------------------------------------------------ what it knows

    def report(self) -> WatchReport:
        """What is told now."""
        self.aside.wait()
        return self.aside.whole(self.made())

    def made(self) -> WatchReport:
        """The report of what is known here."""
        told = ask_parts(self.parts, True, self._failed)
        return WatchReport(self.t, self.source.stale, self.source.age_s, self.clock.period, self._counts(), told)

    def counts(self) -> dict[str, int]:
        """Samples, and what was wrong with others, by kind; of the processes before this one, too."""
        return self.aside.counts(self._counts())

    def _counts(self) -> dict[str, int]:
        return added(self._before, self.clock.tally, self.source.source.tally, self.tally)

    def state(self) -> PartState:
        """All that another process needs to go on."""
        self.aside.wait()
        return self.aside.whole_state(self.urgent_state())

    def urgent_state(self) -> PartState:
        """The state of all but what is done aside."""
        more = {"clock": self.clock, "observer": self.observer, "source": self.source.source}
        counts = np.array(json.dumps(self._counts()))
        return {**states_of(self.parts, True, **more), "counts": counts, "t": np.array(self.t)}

    def go_on(self, state: PartState) -> None:
        """Go on from a `state`, of all parts or of some."""
        for name, holder in self._holders().items():
            if found := _state_of(name, state):
                holder.restore(found)
        if not self.source.source.restore(_state_of("source", state)):
            self.clock.cut()  # what came in the meantime is lost
        self._before = _counts_of(state)
        self.t = float(state["t"])

    def _holders(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "observer": self.observer,
            **{f"part {name}": part for name, part in self.parts.items()},
        }

    def check_state(self, state: PartState) -> PartState:
        """The `state`, refused where no watch of this robot, source and these parts can have written it."""
        own = {name: x for name, x in self.urgent_state().items() if "/" not in name}
        checked = check_arrays(own, state, _OWN_RULES, "the state", SnapshotError)
        _counts_of(state)
        source, found = self.source.source, _state_of("source", state)
        if bool(found) != bool(source.state()):
            raise OtherWatchError(f"the state is that of another source; {REMEDY}.")
        holders = {**self._holders(), "source": source}
        for name, holder in holders.items():
            # A part that was not watched before begins anew.
            if (saved := _state_of(name, state)) or not name.startswith("part "):
                rules = getattr(holder, "state_rules", {})
                what = f"the state of {name.removeprefix('part ')}"
                fits = check_arrays(holder.state(), saved, rules, what, SnapshotError)
                checked |= {f"{name}/{key}": x for key, x in fits.items()}
        return checked

    def _go_on_from_file(self, state: PartState) -> None:
        checked = self.check_state(state)
        try:
            self.go_on(checked)
        except OtherWatchError:
            raise
        except SteelyardError as why:
            raise SnapshotError(str(why)) from None
        # The shapes fit, the numbers contradict each other: any code that uses them may fail, plug-ins included.
        except Exception as why:
            raise SnapshotError(f"the state contradicts itself ({type(why).__name__}: {why}).") from None


_OWN_RULES = {"counts": ArrayRule(any_text=True)}
# A watch counts some twenty kinds of things.
_MOST_KINDS, _LONGEST_KIND, _MOST_COUNTED = 200, 100, 10**15


def _state_of(name: str, state: PartState) -> PartState:
    return {key.split("/", 1)[1]: x for key, x in state.items() if key.startswith(f"{name}/")}


def _counts_of(state: PartState) -> dict[str, int]:
    """The counts of a `state`, by kind."""
    counts = parse_json(str(state["counts"]), "counts", SnapshotError)
    if not isinstance(counts, dict) or len(counts) > _MOST_KINDS:
        raise SnapshotError("the counts are damaged.")
    for kind, count in counts.items():
        fits = type(count) is int and 0 <= count <= _MOST_COUNTED
        if not fits or len(kind) > _LONGEST_KIND or not kind.isprintable():
            raise SnapshotError("the counts are damaged.")
    return counts


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
