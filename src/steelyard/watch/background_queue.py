"""`BackgroundQueue`: passes samples to monitors that are not urgent, outside of the sample loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from steelyard.watch.batch import ObservedBatch, join_batches

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
