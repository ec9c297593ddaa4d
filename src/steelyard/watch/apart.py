"""`watched_apart`: the urgent half of a watch in a process of its own, which nothing else can hold up.

Threads of one Python process take turns: a report that is written, or a load that is weighed, delays the sample that
comes meanwhile, by a tenth of a millisecond or, where the system takes the processor from the thread whose turn it is,
by many. So this process is doubled (fork) before it has begun anything: the twin reads samples, observes them and shows
them to urgent parts, alone and in one thread; all that can wait it sends to the process that it comes from, which has
outputs, snapshots and the other parts. Messages stay whole (a socket of packets), and no sample waits for them: those
that do not fit are missed by the parts that can wait, and counted.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import socket
import struct
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.watch.batch import SampleBatch, Seen
from steelyard.watch.output import WatchReport
from steelyard.watch.parts import PartState, WatchEvent

if TYPE_CHECKING:
    from steelyard.watch.loop import RobotWatch

# Bytes of a packet, and of all that may wait to be taken: some seconds of six axes at 1 kHz.
_PACKET, _KEPT = 1 << 15, 1 << 22
_MOST_WAITING = 1000
# Samples are sent together, so many or what has come within this time (s).
_TOGETHER, _SOON_S = 32, 0.02
# Rubbish is collected so often (s), right after a sample, when the next is not due yet.
_TIDY_S = 5.0
_PRIORITY = 10
_WAIT_S = 0.05
_SAMPLES, _MORE, _LAST = 0, 1, 2
_HEAD = struct.Struct("=B?6x")  # of a packet: its kind, whether samples are fresh


class _Passed:
    """The end of the twin: what the loop hands over goes to the other process."""

    def __init__(self, link: socket.socket, columns: int) -> None:
        self._link, self._waiting = link, deque[bytes]()
        self._most = max(1, min(_TOGETHER, _PACKET // (8 * columns)))
        self._rows, self._count, self._since, self._fresh = np.zeros((self._most, columns)), 0, 0.0, False
        self.missed = 0

    def seen(self, seen: Seen) -> None:
        b = seen.batch
        if b.fresh:
            self._flush()
            self._fresh = True
        width, k = b.rows.shape[1], 0
        while k < len(b):
            if self._count == 0:
                self._since = time.monotonic()
            some = slice(k, k + self._most - self._count)
            rows = self._rows[self._count : self._count + len(b) - k]
            rows[:, :width], rows[:, width:] = b.rows[some], seen.found[some]
            self._count, k = self._count + len(rows), k + len(rows)
            if self._count == self._most:
                self._flush()

    def _flush(self) -> None:
        if not self._count:
            return
        self._send_waiting()
        packet = _HEAD.pack(_SAMPLES, self._fresh) + self._rows[: self._count].tobytes()
        self.missed += self._count
        with contextlib.suppress(BlockingIOError):
            if not self._waiting:
                self._link.send(packet)
                self.missed -= self._count
        # What follows a gap is fresh for who has missed it.
        self._fresh, self._count = self.missed > 0, 0

    def happened(self, event: WatchEvent) -> None:
        self.send("happened", event)

    def reported(self, made: WatchReport) -> None:
        self.send("reported", made)

    def kept(self, known: PartState) -> None:
        self.send("kept", known)

    def tell(self) -> None:
        if self._count and time.monotonic() - self._since > _SOON_S:
            self._flush()
        if self.missed and not self._waiting:
            missed, self.missed = self.missed, 0
            self.send("missed", missed)
        self._send_waiting()

    def send(self, what: str, value: Any) -> None:
        """A message, in as many packets as it takes, behind the samples that came before it."""
        self._flush()
        if len(self._waiting) > _MOST_WAITING and what != "ended":  # nobody listens: a later one says more
            self.missed += 1
            return
        held = pickle.dumps((what, value), pickle.HIGHEST_PROTOCOL)
        pieces = [held[k : k + _PACKET] for k in range(0, len(held), _PACKET)]
        for k, piece in enumerate(pieces):
            self._waiting.append(_HEAD.pack(_LAST if k == len(pieces) - 1 else _MORE, False) + piece)
        self._send_waiting()

    def _send_waiting(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._waiting:
                self._link.send(self._waiting[0])
                self._waiting.popleft()

    def end(self) -> None:
        """Send all that waits, however long it takes."""
        self._link.setblocking(True)
        self._flush()
        self._send_waiting()


def watched_apart(watch: RobotWatch, stopped: Callable[[], bool], real_time: bool) -> WatchReport | None:
    """Let a twin of this process see the samples of `watch` until it ends or `stopped` says so, and do the rest here.

    The twin's last report; None where there can be no twin, or where it has died: this process goes on from what it
    kept last. With `real_time` the twin asks to go before all ordinary processes.
    """
    if sys.platform != "linux":
        return None
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (here, there):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KEPT)
    with warnings.catch_warnings():  # threads of outputs that are open already: the twin leaves them alone
        warnings.simplefilter("ignore", DeprecationWarning)
        twin = os.fork()
    if twin == 0:
        here.close()
        _be_twin(watch, there, real_time)
    there.close()
    return _serve(watch, here, twin, stopped)


def _be_twin(watch: RobotWatch, link: socket.socket, real_time: bool) -> None:
    """What the twin does from its first moment to its last; it returns to nobody."""
    told: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started all this decides
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    parent = os.getppid()
    link.setblocking(False)
    watch.rest = passed = _Passed(link, 1 + 7 * watch.clock.joints)
    code = 1
    try:
        if real_time:
            _hurry(watch)
        gc.disable()
        tidy = time.monotonic() + _TIDY_S
        while not told and os.getppid() == parent and watch.turn():
            if time.monotonic() > tidy:
                tidy = time.monotonic() + _TIDY_S
                gc.collect()
        watch.finish()
        passed.send("ended", (watch.urgent_state(), watch.made()))
        passed.end()
        code = 0
    except Exception as why:
        with contextlib.suppress(OSError):  # where nobody is there any more
            passed.send("failed", str(why) if isinstance(why, SteelyardError) else f"{type(why).__name__}: {why}")
            passed.end()
    finally:
        os._exit(code)


def _hurry(watch: RobotWatch) -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError as why:
        sentence = f"Real-time priority is refused ({why.strerror}); it goes on without: ask for the right to it."
        watch.tally.count("not in real time", sentence)


def _serve(watch: RobotWatch, link: socket.socket, twin: int, stopped: Callable[[], bool]) -> WatchReport | None:
    """Do what the twin sends, until it ends; its last report, or None where it died without a word."""
    aside, pieces, asked = watch.aside, list[bytes](), False
    last: PartState | None = None
    link.settimeout(_WAIT_S)
    try:
        while True:
            if stopped() and not asked:
                asked = True
                os.kill(twin, signal.SIGTERM)
            aside.tell()
            try:
                packet = link.recv(2 * _PACKET)
            except TimeoutError:
                continue
            if not packet:
                break
            kind, fresh = _HEAD.unpack_from(packet)
            if kind == _SAMPLES:
                aside.seen(_seen(packet, watch.clock.joints, fresh))
                continue
            pieces.append(packet[_HEAD.size :])
            if kind == _MORE:
                continue
            what, value = pickle.loads(b"".join(pieces))  # of nobody but the twin
            pieces.clear()
            if what == "ended":
                watch.go_on(value[0])
                report: WatchReport = value[1]
                return report
            if what == "failed":
                raise SteelyardError(value)
            last = value if what == "kept" else last
            getattr(aside, what)(value)
    finally:
        link.close()  # so that the twin, if it still has something to say, does not wait for an ear
        with contextlib.suppress(OSError):
            os.kill(twin, signal.SIGTERM)
        os.waitpid(twin, 0)
    if last is not None:
        watch.go_on(last)
    if not asked:
        watch.tally.count("died", "The process that saw the samples has died; this one sees them from now on.")
    return None


def _seen(packet: bytes, n: int, fresh: bool) -> Seen:
    rows = np.frombuffer(packet, offset=_HEAD.size).reshape(-1, 1 + 7 * n)
    return Seen.of_found(SampleBatch.of_rows(rows[:, : 1 + 3 * n], fresh), rows[:, 1 + 3 * n :])
