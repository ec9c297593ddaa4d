"""`RobotWatch`: the sample loop from a source through clock, observer and monitors to the outputs; its snapshots."""

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
from steelyard.ground.untrusted_files import parse_json
from steelyard.watch.background import BackgroundTasks, add_counts, collect_reports, collect_states, update_monitor
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.clock import SampleClock
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.helper_process import run_in_helper
from steelyard.watch.live_source import ReconnectingSource
from steelyard.watch.monitor_base import Monitor, StateArrays, WatchEvent
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.snapshots import REMEDY, ForeignSnapshotError, SnapshotError, Snapshots

# A background thread yields to the sample loop after this time (Python's default is 5 ms).
_THREAD_SWITCH_S = 1e-4
# A read waits this long for samples before periodic tasks are checked.
_WAIT_S = 0.05


class BatchSink(Protocol):
    """Receives the loop's output and handles everything that is not time-critical."""

    def on_batch(self, batch: ObservedBatch) -> None:
        """Handle a `batch` of samples."""

    def on_event(self, event: WatchEvent) -> None:
        """Handle an `event`."""

    def on_report(self, report: WatchReport) -> None:
        """Handle the `report` of the urgent monitors."""

    def save_state(self, state: StateArrays) -> None:
        """Save the `state` of the loop and the urgent monitors."""

    def flush(self) -> None:
        """Pass on pending messages."""


class BatchObserver(Protocol):
    """Computes the external torque that the monitors use."""

    def observe(self, samples: SampleBatch) -> ObservedBatch:
        """Process the next `samples`."""

    def state(self) -> StateArrays:
        """Return the values that the processing of the next batch needs."""

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state`."""


@dataclass(frozen=True)
class WatchTimes:
    """Periods of reports and snapshots.

    Args:
        report_s: Time between two reports [s], by the wall clock for a running robot, by the log's clock in a replay.
        snapshot_s: Time between two snapshots [s], by the wall clock.
    """

    report_s: float = 0.2
    snapshot_s: float = 2.0


class RobotWatch:
    """Watches one robot.

    Args:
        source: Where samples come from.
        clock: Orders the samples.
        observer: Computes the external torque.
        monitors: Monitors by name.
        outputs: Destinations of reports and events.
        snapshots: Storage of the state; None for no storage.
        times: Periods of reports and snapshots.
        now: Monotonic clock [s].
        use_helper: Whether samples are processed in a helper process, which other work cannot delay.
        real_time: Whether the helper asks for real-time priority.
    """

    def __init__(
        self,
        source: ReconnectingSource,
        clock: SampleClock,
        observer: BatchObserver,
        monitors: Mapping[str, Monitor],
        outputs: Outputs,
        snapshots: Snapshots | None = None,
        times: WatchTimes = WatchTimes(),
        now: Callable[[], float] = time.monotonic,
        use_helper: bool = False,
        real_time: bool = False,
    ) -> None:
        self.source, self.clock, self.observer, self.outputs = source, clock, observer, outputs
        self.monitors, self.snapshots, self.times = dict(monitors), snapshots, times
        self.diagnostics = Diagnostics()
        self.t = float("nan")
        self._now, self._stale = now, False
        self._use_helper, self._real_time = use_helper, real_time
        self.background = BackgroundTasks(self.monitors, outputs, snapshots, source.source.live)
        self.sink: BatchSink = self.background  # in the helper process: the link to its parent
        self._earlier_counts: dict[str, int] = {}  # of the processes before this one
        self._report_at, self._snapshot_at = -np.inf, now() + times.snapshot_s
        if snapshots is not None:
            snapshots.read(self._restore_from_file)

    # ------------------------------------------------------------ loop

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Watch until the source ends or `stopped` returns True; then write the last snapshot and close the outputs."""
        gc.collect()
        gc.freeze()  # existing objects stay; scanning them in every collection would cost milliseconds
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_THREAD_SWITCH_S)
        try:
            report = run_in_helper(self, stopped, self._real_time) if self._use_helper else None
            if report is None:
                while not stopped() and self.step():
                    pass
                self.finish()
                report = self.urgent_report()
            self.background.finish()
            self.background.flush()
            self.outputs.write_report(self.background.complete_report(report))
            if self.snapshots is not None:
                self.snapshots.write(self.state())
        finally:
            self.source.close()
            self.background.close()
            sys.setswitchinterval(interval)
            gc.unfreeze()

    def step(self, wait_s: float = _WAIT_S) -> bool:
        """Wait up to `wait_s` seconds for samples and process them; return False when the source has ended."""
        rows = self.source.read(wait_s)
        if rows is None:
            return False
        if self.source.reopened:
            self.source.reopened = False
            self.clock.mark_gap()
        if len(rows):
            for samples in self.clock.add(rows):
                self._process(samples)
        self._pass_events()
        now = self._now()
        clock = now if self.source.source.live else self.t
        if not clock < self._report_at:
            self._report_at = clock + self.times.report_s
            self.sink.on_report(self.urgent_report())
        if self.snapshots is not None and now >= self._snapshot_at:
            self._snapshot_at = now + self.times.snapshot_s
            self.sink.save_state(self.urgent_state())
        return True

    def finish(self) -> None:
        """Process the samples that the clock still holds back, at the end of the source."""
        for samples in self.clock.finish():
            self._process(samples)
        self._pass_events()

    def _process(self, samples: SampleBatch) -> None:
        batch = self.observer.observe(samples)
        self.t = samples.rows.item(len(samples) - 1, 0)
        for name, monitor in list(self.monitors.items()):
            if monitor.urgent:
                update_monitor(self.monitors, name, batch, self._on_failure)
        self.sink.on_batch(batch)

    def _on_failure(self, message: str) -> None:
        self.diagnostics.count("parts failed")
        self.sink.on_event(WatchEvent(self.t, "failed", message, alarm=True))

    def _pass_events(self) -> None:
        for monitor in list(self.monitors.values()):
            if monitor.urgent:
                for event in monitor.fetch_events():
                    self.sink.on_event(event)
        for diagnostics in (self.source.source.diagnostics, self.clock.diagnostics, self.diagnostics):
            for message in diagnostics.fetch():
                self.sink.on_event(WatchEvent(self.t, "source", message))
        self.sink.flush()
        stale = self.source.stale
        if stale != self._stale:
            self._stale = stale
            self.diagnostics.count("stale", times=int(stale))
            old = f"No samples for {self.source.age_s:.1f} s: the report is stale."
            kind, message = ("stale", old) if stale else ("fresh", "Samples come again.")
            self.sink.on_event(WatchEvent(self.t, kind, message, alarm=stale))

    # ------------------------------------------------------------ report and state

    def report(self) -> WatchReport:
        """Return the present report."""
        self.background.wait()
        return self.background.complete_report(self.urgent_report())

    def urgent_report(self) -> WatchReport:
        """Return the report of the loop and of the monitors that run in the time of a sample (`urgent`)."""
        reports = collect_reports(self.monitors, True, self._on_failure)
        return WatchReport(
            self.t, self.source.stale, self.source.age_s, self.clock.mean_period, self._counts(), reports
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers of samples and of problems, by kind, including earlier runs from the same state."""
        return self.background.counts(self._counts())

    def _counts(self) -> dict[str, int]:
        return add_counts(
            self._earlier_counts, self.clock.diagnostics, self.source.source.diagnostics, self.diagnostics
        )

    def state(self) -> StateArrays:
        """Return all that another process needs to continue."""
        self.background.wait()
        return self.background.complete_state(self.urgent_state())

    def urgent_state(self) -> StateArrays:
        """Return the state of the loop and the urgent monitors."""
        others = {"clock": self.clock, "observer": self.observer, "source": self.source.source}
        counts = np.array(json.dumps(self._counts()))
        return {**collect_states(self.monitors, True, **others), "counts": counts, "t": np.array(self.t)}

    def restore(self, state: StateArrays) -> None:
        """Continue from a `state` of all monitors or of some."""
        for name, owner in self._owners().items():
            if saved := _state_of(name, state):
                owner.restore(saved)
        if not self.source.source.restore(_state_of("source", state)):
            self.clock.mark_gap()  # samples of the meantime are lost
        self._earlier_counts = _counts_of(state)
        self.t = float(state["t"])

    def _owners(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "observer": self.observer,
            **{f"part {name}": monitor for name, monitor in self.monitors.items()},
        }

    def check_state(self, state: StateArrays) -> StateArrays:
        """Return the `state`; refuse it if no watch of this robot, source and monitors can have written it."""
        own = {name: x for name, x in self.urgent_state().items() if "/" not in name}
        checked = check_arrays(own, state, _OWN_RULES, "the state", SnapshotError)
        _counts_of(state)
        source = self.source.source
        if bool(_state_of("source", state)) != bool(source.state()):
            raise ForeignSnapshotError(f"the state belongs to another source; {REMEDY}.")
        for name, owner in {**self._owners(), "source": source}.items():
            # A monitor without a saved state starts from scratch.
            if (saved := _state_of(name, state)) or not name.startswith("part "):
                rules = getattr(owner, "state_rules", {})
                title = f"the state of {name.removeprefix('part ')}"
                arrays = check_arrays(owner.state(), saved, rules, title, SnapshotError)
                checked |= {f"{name}/{key}": x for key, x in arrays.items()}
        return checked

    def _restore_from_file(self, state: StateArrays) -> None:
        checked = self.check_state(state)
        try:
            self.restore(checked)
        except ForeignSnapshotError:
            raise
        except SteelyardError as why:
            raise SnapshotError(str(why)) from None
        # Shapes are right, but values contradict each other; any code that uses them may fail, also plug-ins.
        except Exception as why:
            raise SnapshotError(f"the state contradicts itself ({type(why).__name__}: {why}).") from None


_OWN_RULES = {"counts": ArrayRule(any_text=True)}
# A watch has about twenty counts.
_MAX_KINDS, _MAX_KIND_LENGTH, _MAX_COUNT = 200, 100, 10**15


def _state_of(name: str, state: StateArrays) -> StateArrays:
    return {key.split("/", 1)[1]: x for key, x in state.items() if key.startswith(f"{name}/")}


def _counts_of(state: StateArrays) -> dict[str, int]:
    """Read the counts of a state, by kind."""
    counts = parse_json(str(state["counts"]), "counts", SnapshotError)
    if not isinstance(counts, dict) or len(counts) > _MAX_KINDS:
        raise SnapshotError("the counts are damaged.")
    for kind, count in counts.items():
        fits = type(count) is int and 0 <= count <= _MAX_COUNT
        if not fits or len(kind) > _MAX_KIND_LENGTH or not kind.isprintable():
            raise SnapshotError("the counts are damaged.")
    return counts


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Catch the first Ctrl-C or SIGTERM; yield a function that returns whether there was one.

    A second signal ends the process as usual.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def catch(number: int, frame: Any) -> None:
        signals.append(number)
        signal.signal(number, before[number])

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, catch)
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
