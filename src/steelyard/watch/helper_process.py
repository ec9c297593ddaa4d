"""`run_in_helper`: reads and observes samples in a forked process, so that no other work delays them.

Threads of one Python process share the interpreter: a report or a payload estimate would delay the next sample by 0.1
ms, or by many ms if the system suspends the thread that runs. Therefore this process forks before it starts any thread.
The helper reads samples, runs the observer and the urgent monitors, all in one thread. It sends everything else to the
parent, which has the outputs, the snapshots and the other monitors. The link is a packet socket, so messages stay
whole. Samples never wait for the link: if it is full, the slow monitors miss them, and they are counted.
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
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import StateArrays, WatchEvent
from steelyard.watch.output import WatchReport

if TYPE_CHECKING:
    from steelyard.watch.loop import RobotWatch

# Bytes of a packet, and of the socket's buffer: some seconds of six axes at 1 kHz.
_PACKET_BYTES, _BUFFER_BYTES = 1 << 15, 1 << 22
_MAX_WAITING = 1000
# Samples are sent together: up to this number, or what has come within this time [s].
_SAMPLES_TOGETHER, _SEND_WITHIN_S = 32, 0.02
# Garbage is collected at this interval [s], right after a sample, when the next one is not due yet.
_COLLECT_PERIOD_S = 5.0
_PRIORITY = 10
_WAIT_S = 0.05
_SAMPLES, _MORE, _LAST = 0, 1, 2
_HEAD = struct.Struct("=B?6x")  # head of a packet: kind of the packet, and whether its samples are fresh


class _ParentLink:
    """Sends the output of the loop from the helper to the parent process."""

    def __init__(self, link: socket.socket, columns: int) -> None:
        self._link, self._waiting = link, deque[bytes]()
        self._capacity = max(1, min(_SAMPLES_TOGETHER, _PACKET_BYTES // (8 * columns)))
        self._rows, self._count, self._since, self._fresh = np.zeros((self._capacity, columns)), 0, 0.0, False
        self.missed = 0

    def on_batch(self, batch: ObservedBatch) -> None:
        samples = batch.samples
        if samples.fresh:
            self._send_samples()
            self._fresh = True
        width, k = samples.rows.shape[1], 0
        while k < len(samples):
            if self._count == 0:
                self._since = time.monotonic()
            section = slice(k, k + self._capacity - self._count)
            rows = self._rows[self._count : self._count + len(samples) - k]
            rows[:, :width], rows[:, width:] = samples.rows[section], batch.table[section]
            self._count, k = self._count + len(rows), k + len(rows)
            if self._count == self._capacity:
                self._send_samples()

    def _send_samples(self) -> None:
        if not self._count:
            return
        self._send_waiting()
        packet = _HEAD.pack(_SAMPLES, self._fresh) + self._rows[: self._count].tobytes()
        self.missed += self._count
        with contextlib.suppress(BlockingIOError):
            if not self._waiting:
                self._link.send(packet)
                self.missed -= self._count
        # After missed samples the parent sees a gap.
        self._fresh, self._count = self.missed > 0, 0

    def on_event(self, event: WatchEvent) -> None:
        self.send("on_event", event)

    def on_report(self, report: WatchReport) -> None:
        self.send("on_report", report)

    def save_state(self, state: StateArrays) -> None:
        self.send("save_state", state)

    def flush(self) -> None:
        if self._count and time.monotonic() - self._since > _SEND_WITHIN_S:
            self._send_samples()
        if self.missed and not self._waiting:
            missed, self.missed = self.missed, 0
            self.send("on_missed", missed)
        self._send_waiting()

    def send(self, method: str, value: Any) -> None:
        """Send a message, in one or more packets, after all samples so far."""
        self._send_samples()
        if len(self._waiting) > _MAX_WAITING and method != "ended":  # the parent does not read; a later report suffices
            self.missed += 1
            return
        message = pickle.dumps((method, value), pickle.HIGHEST_PROTOCOL)
        pieces = [message[k : k + _PACKET_BYTES] for k in range(0, len(message), _PACKET_BYTES)]
        for k, piece in enumerate(pieces):
            self._waiting.append(_HEAD.pack(_LAST if k == len(pieces) - 1 else _MORE, False) + piece)
        self._send_waiting()

    def _send_waiting(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._waiting:
                self._link.send(self._waiting[0])
                self._waiting.popleft()

    def finish(self) -> None:
        """Send everything that waits; block until it is sent."""
        self._link.setblocking(True)
        self._send_samples()
        self._send_waiting()


def run_in_helper(watch: RobotWatch, stopped: Callable[[], bool], real_time: bool) -> WatchReport | None:
    """Run the sample loop in a helper process and the background tasks in this one.

    Args:
        watch: The watch, not started yet.
        stopped: Returns whether to stop.
        real_time: Whether the helper asks for real-time priority.

    Returns:
        The last report of the helper. None if this system has no helper, or if the helper died: then the caller
        continues from the last saved state.
    """
    if sys.platform != "linux":
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    with warnings.catch_warnings():  # `fork` warns about threads of outputs; the helper does not use these
        warnings.simplefilter("ignore", DeprecationWarning)
        helper = os.fork()
    if helper == 0:
        ours.close()
        _run_helper(watch, theirs, real_time)
    theirs.close()
    return _serve(watch, ours, helper, stopped)


def _run_helper(watch: RobotWatch, link: socket.socket, real_time: bool) -> None:
    """Run the sample loop in the helper; never returns."""
    signals: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, lambda number, frame: signals.append(number))
    parent = os.getppid()
    link.setblocking(False)
    watch.sink = sink = _ParentLink(link, 1 + 7 * watch.clock.joints)
    code = 1
    try:
        if real_time:
            _raise_priority(watch)
        gc.disable()
        collect_at = time.monotonic() + _COLLECT_PERIOD_S
        while not signals and os.getppid() == parent and watch.step():
            if time.monotonic() > collect_at:
                collect_at = time.monotonic() + _COLLECT_PERIOD_S
                gc.collect()
        watch.finish()
        sink.send("ended", (watch.urgent_state(), watch.urgent_report()))
        sink.finish()
        code = 0
    except Exception as why:
        with contextlib.suppress(OSError):  # the parent may be gone
            sink.send("failed", str(why) if isinstance(why, SteelyardError) else f"{type(why).__name__}: {why}")
            sink.finish()
    finally:
        os._exit(code)


def _raise_priority(watch: RobotWatch) -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError as why:
        message = f"Real-time priority is refused ({why.strerror}); the watch runs without. Grant this user rtprio."
        watch.diagnostics.count("not in real time", message)


def _serve(watch: RobotWatch, link: socket.socket, helper: int, stopped: Callable[[], bool]) -> WatchReport | None:
    """Handle the helper's messages until it ends; return its last report, or None if it died."""
    background, pieces, stopping = watch.background, list[bytes](), False
    last: StateArrays | None = None
    link.settimeout(_WAIT_S)
    try:
        while True:
            if stopped() and not stopping:
                stopping = True
                os.kill(helper, signal.SIGTERM)
            background.flush()
            try:
                packet = link.recv(2 * _PACKET_BYTES)
            except TimeoutError:
                continue
            if not packet:
                break
            kind, fresh = _HEAD.unpack_from(packet)
            if kind == _SAMPLES:
                background.on_batch(_batch_of(packet, watch.clock.joints, fresh))
                continue
            pieces.append(packet[_HEAD.size :])
            if kind == _MORE:
                continue
            method, value = pickle.loads(b"".join(pieces))  # only the forked helper can write to this socket
            pieces.clear()
            if method == "ended":
                watch.restore(value[0])
                report: WatchReport = value[1]
                return report
            if method == "failed":
                raise SteelyardError(value)
            last = value if method == "save_state" else last
            getattr(background, method)(value)
    finally:
        link.close()  # so that the helper does not block on send
        with contextlib.suppress(OSError):
            os.kill(helper, signal.SIGTERM)
        os.waitpid(helper, 0)
    if last is not None:
        watch.restore(last)
    if not stopping:
        watch.diagnostics.count(
            "died", "The helper process that reads samples died; this process reads them from now on."
        )
    return None


def _batch_of(packet: bytes, n: int, fresh: bool) -> ObservedBatch:
    rows = np.frombuffer(packet, offset=_HEAD.size).reshape(-1, 1 + 7 * n)
    return ObservedBatch.of_table(SampleBatch.of_rows(rows[:, : 1 + 3 * n], fresh), rows[:, 1 + 3 * n :])
