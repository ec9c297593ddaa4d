"""`BackgroundTasks`: the work of a watch that is not time-critical: slow monitors, outputs, snapshots.

`BackgroundQueue` passes the samples to it, outside of the sample loop.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.watch.batch import ObservedBatch, join_batches
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.monitor_base import Monitor, StateArrays, WatchEvent
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.snapshots import Snapshots

# Samples are collected up to this number before a call, because a call costs as much as a few samples.
_MIN_SAMPLES = 64
# Batches that may wait. Monitors that are too slow for the robot miss later ones.
_MAX_WAITING = 8192


class BackgroundQueue:
    """Passes batches to monitors in order, and runs other tasks between them.

    Args:
        process: Passes a batch to the monitors.
        threaded: Whether to use a thread, so that urgent monitors never wait. A replay processes batches at once.
        on_miss: Called when a batch is dropped because too many wait.
        on_failure: Called with a message when a task fails.
    """

    def __init__(
        self,
        process: Callable[[ObservedBatch], None],
        threaded: bool,
        on_miss: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._process, self._on_miss, self._on_failure = process, on_miss, on_failure
        self._collected, self._count, self._gap = list[ObservedBatch](), 0, False
        self._queue: queue.SimpleQueue[ObservedBatch | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._threaded = threaded

    def put(self, batch: ObservedBatch) -> None:
        """Add a `batch` that follows the previous one."""
        if not self._runs():
            self._collect(batch)
        elif self._queue.qsize() > _MAX_WAITING:
            self._gap = True
            self._on_miss()
        else:
            if self._gap:
                self._gap, batch = False, batch.after_gap()
            self._queue.put(batch)

    def then(self, task: Callable[[], None]) -> None:
        """Run a `task` when the monitors have processed all batches so far."""
        if self._runs():
            self._queue.put(task)
        else:
            self._flush()
            task()

    def wait(self) -> None:
        """Wait until all batches and tasks so far are done."""
        done = threading.Event()
        self.then(done.set)
        done.wait()

    def close(self) -> None:
        """Wait until all is done, and end the thread."""
        self.wait()
        self._threaded = False
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _runs(self) -> bool:
        """Whether the thread runs. It starts late, because a process with threads must not fork its helper."""
        if self._thread is None and self._threaded:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="watch background")
            self._thread.start()
        return self._thread is not None and self._thread.is_alive()

    def _collect(self, batch: ObservedBatch) -> None:
        if batch.samples.fresh:
            self._flush()
        self._collected.append(batch)
        self._count += len(batch.samples)
        if self._count >= _MIN_SAMPLES:
            self._flush()

    def _flush(self) -> None:
        if self._collected:
            batch, self._collected, self._count = join_batches(self._collected), [], 0
            self._process(batch)

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, ObservedBatch):
                self._collect(item)
            else:
                self._flush()
                try:
                    item()
                except Exception as why:  # a report that fails must not stop the other tasks
                    self._on_failure(f"A report failed ({type(why).__name__}: {why}).")


class BackgroundTasks:
    """Receives the output of the sample loop and does the rest.

    Args:
        monitors: All monitors of the watch, by name; those that are not urgent run here.
        outputs: Destinations of reports and events.
        snapshots: Storage of the state; None for no storage.
        threaded: Whether monitors run in their own thread, as for a running robot.
    """

    def __init__(
        self, monitors: dict[str, Monitor], outputs: Outputs, snapshots: Snapshots | None, threaded: bool
    ) -> None:
        self._monitors, self._outputs, self._snapshots = monitors, outputs, snapshots
        self.diagnostics = Diagnostics()
        self._t = float("nan")
        self._queue = BackgroundQueue(self._update_monitors, threaded, self.on_missed, self._on_failure)

    def on_batch(self, batch: ObservedBatch) -> None:
        """Pass a `batch` to the slow monitors and the outputs."""
        self._t = float(batch.samples.t[-1])
        self._queue.put(batch)
        self._outputs.write_samples(batch)

    def on_event(self, event: WatchEvent) -> None:
        """Write an `event`."""
        self._outputs.write_event(event)

    def on_report(self, report: WatchReport) -> None:
        """Complete the urgent `report` when the slow monitors have processed the same samples, and write it."""
        self._queue.then(lambda: self._outputs.write_report(self.complete_report(report)))

    def save_state(self, state: StateArrays) -> None:
        """Add the states of the slow monitors to `state`, and write a snapshot; samples do not wait for the disk."""

        def save() -> None:
            assert self._snapshots is not None
            try:
                self._snapshots.write(self.complete_state(state))
            except OSError as why:
                reason = why.strerror or why
                self.diagnostics.count("not kept", f"The state cannot be saved ({reason}); free some disk space.")

        self._queue.then(save)

    def flush(self) -> None:
        """Write messages about problems as events."""
        for diagnostics in (self._outputs.diagnostics, self.diagnostics):
            for message in diagnostics.fetch():
                self._outputs.write_event(WatchEvent(self._t, "source", message))

    def complete_report(self, report: WatchReport) -> WatchReport:
        """Add the slow monitors and the counts to an urgent `report`."""
        slow = collect_reports(self._monitors, False, self._on_failure)
        return replace(report, counts=self.counts(report.counts), monitors={**report.monitors, **slow})

    def complete_state(self, state: StateArrays) -> StateArrays:
        """Add the slow monitors and the counts to an urgent `state`."""
        counts = json.dumps(self.counts(json.loads(str(state["counts"]))))
        return {**state, **collect_states(self._monitors, False), "counts": np.array(counts)}

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add the counts of the background to `counts`."""
        return add_counts(counts, self._outputs.diagnostics, self.diagnostics)

    def wait(self) -> None:
        """Wait until all tasks are done."""
        self._queue.wait()

    def finish(self) -> None:
        """Wait until all tasks are done, and let slow monitors write pending results."""
        self.wait()
        for monitor in list(self._monitors.values()):
            if not monitor.urgent:
                try:
                    monitor.finish()
                except Exception as why:
                    self._on_failure(f"A monitor failed at the end ({type(why).__name__}: {why}).")

    def close(self) -> None:
        """Wait until all tasks are done, and release all resources."""
        self._queue.close()
        self._outputs.close()
        if self._snapshots is not None:
            self._snapshots.close()

    def _update_monitors(self, batch: ObservedBatch) -> None:
        for name, monitor in list(self._monitors.items()):
            if not monitor.urgent:
                update_monitor(self._monitors, name, batch, self._on_failure)
                for event in monitor.fetch_events():
                    self._outputs.write_event(event)

    def _on_failure(self, message: str) -> None:
        self.diagnostics.count("parts failed")
        self._outputs.write_event(WatchEvent(self._t, "failed", message, alarm=True))

    def on_missed(self, count: int = 1) -> None:
        """Count samples (`count`) that did not reach the slow monitors."""
        message = "Samples come faster than the slow monitors can process them; some monitors miss samples."
        self.diagnostics.count("missed by parts", message, count)


def update_monitor(
    monitors: dict[str, Monitor], name: str, batch: ObservedBatch, on_failure: Callable[[str], None]
) -> None:
    """Pass a batch to one monitor; remove the monitor if it fails.

    Args:
        monitors: All monitors, by name.
        name: Name of the monitor.
        batch: The samples.
        on_failure: Called with a message.
    """
    try:
        monitors[name].update(batch)
    except Exception as why:
        _remove(monitors, name, why, on_failure)


def collect_reports(
    monitors: dict[str, Monitor], urgent: bool, on_failure: Callable[[str], None]
) -> dict[str, Mapping[str, Any]]:
    """Return the reports of some monitors by name; remove monitors that fail.

    Args:
        monitors: All monitors, by name.
        urgent: Whether to ask the urgent monitors, or the others.
        on_failure: Called with a message.
    """
    reports: dict[str, Mapping[str, Any]] = {}
    for name, monitor in list(monitors.items()):
        if monitor.urgent == urgent:
            try:
                reports[name] = monitor.report()
            except Exception as why:
                _remove(monitors, name, why, on_failure)
    return reports


def _remove(monitors: dict[str, Monitor], name: str, why: Exception, on_failure: Callable[[str], None]) -> None:
    monitors.pop(name, None)
    on_failure(f"Monitor '{name}' failed ({type(why).__name__}: {why}); the watch continues without it.")


def collect_states(monitors: Mapping[str, Monitor], urgent: bool, **others: Any) -> StateArrays:
    """Return the states of some monitors and of other objects, with the name of the owner before each key.

    Args:
        monitors: All monitors, by name.
        urgent: Whether to take the urgent monitors, or the others.
        others: Other objects with a state, by name.
    """
    owners = {f"part {name}": monitor for name, monitor in monitors.items() if monitor.urgent == urgent} | others
    return {f"{name}/{key}": np.array(x) for name, owner in owners.items() for key, x in owner.state().items()}


def add_counts(counts: Mapping[str, int], *diagnostics: Diagnostics) -> dict[str, int]:
    """Add counts by kind.

    Args:
        counts: First summand.
        diagnostics: Further summands.
    """
    total = dict(counts)
    for each in diagnostics:
        for kind, count in list(each.counts.items()):
            total[kind] = total.get(kind, 0) + count
    return total
