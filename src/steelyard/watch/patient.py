"""`PatientParts`: parts of a watch that need not know at once, such as load and health, aside of the loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from steelyard.watch.batch import Seen, joined

# They see so many samples together, for a call costs as much as a few samples; and no more than so many.
_TOGETHER, _AT_MOST = 64, 256
# Batches that may wait; a part that is too slow for its robot misses what comes after that.
_MOST_WAITING = 8192


class PatientParts:
    """Shows samples to parts that are not urgent, in order; what else is asked for is done between them.

    Args:
        show: lets these parts see some samples.
        threaded: in a thread of its own, so that urgent parts never wait for it; else at once, as a replay wants it.
        missed: called when samples are left out, since too many wait.
        failed: called with a sentence where what was asked for failed.
    """

    def __init__(
        self,
        show: Callable[[Seen], None],
        threaded: bool,
        missed: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._show, self._missed, self._failed = show, missed, failed
        self._held, self._count, self._gap = list[Seen](), 0, False
        self._queue: queue.SimpleQueue[Seen | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._threaded = threaded

    def see(self, seen: Seen) -> None:
        """Let them see these samples, now or soon; `seen` follows what they were given before."""
        if not self._runs():
            self._hold(seen)
            if self._count >= _TOGETHER:
                self._catch_up()
        elif self._queue.qsize() > _MOST_WAITING:
            self._gap = True
            self._missed()
        else:
            if self._gap:
                self._gap, seen = False, seen.anew()
            self._queue.put(seen)

    def then(self, do: Callable[[], None]) -> None:
        """`do` this when they have seen all that they were given so far."""
        if self._runs():
            self._queue.put(do)
        else:
            self._catch_up()
            do()

    def wait(self) -> None:
        """Return when they have seen all, and all that was asked for is done."""
        done = threading.Event()
        self.then(done.set)
        done.wait()

    def close(self) -> None:
        """The same, and no more will come."""
        self.wait()
        self._threaded = False
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _runs(self) -> bool:
        """Whether the thread runs. It begins with the first that is asked for: a process with threads has no twin."""
        if self._thread is None and self._threaded:
            self._thread = threading.Thread(target=self._serve, daemon=True, name="watch patient parts")
            self._thread.start()
        return self._thread is not None and self._thread.is_alive()

    def _hold(self, seen: Seen) -> None:
        if seen.batch.fresh or self._count >= _AT_MOST:
            self._catch_up()
        self._held.append(seen)
        self._count += len(seen.batch)

    def _catch_up(self) -> None:
        if self._held:
            seen, self._held, self._count = joined(self._held), [], 0
            self._show(seen)

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, Seen):
                self._hold(item)
                if self._count >= _TOGETHER:
                    self._catch_up()
            else:
                self._catch_up()
                try:
                    item()
                except Exception as why:  # a part that cannot tell must not silence the others
                    self._failed(f"A part's report has failed ({type(why).__name__}: {why}).")
