"""`LogSource` and `MemorySource`: replay logs from files or from memory, in real time, faster, or step by step."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from steelyard.errors import LogError, shortened
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.read import log_chunks
from steelyard.watch.live_source import LIVE_SOURCES, LiveSource, SourceOptions
from steelyard.watch.monitor_base import StateArrays
from steelyard.watch.snapshots import REMEDY, ForeignSnapshotError

# Pause between two logs [s]; longer than any step that is not a gap.
_PAUSE_S = 5.0


@LIVE_SOURCES.register("replay")
class LogSource(LiveSource):
    """Replays logs of any readable format; after a kill it continues at the next sample.

    Args:
        address: Paths of the logs, one per line.
        options: Robot, mapping, speed and batch size.
    """

    description = "any log, at its own speed, as fast as possible, or step by step"
    example = "LOG"
    live = False
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {"last": ArrayRule(optional=True)}

    def __init__(self, address: str, options: SourceOptions) -> None:
        super().__init__(address, options)
        self._start = 0  # number of samples that an earlier process has read
        self._count = 0
        self._last = np.full(1 + 3 * options.robot.dof, np.nan)  # last returned sample
        self._positioned = False

    @property
    def identity(self) -> str:
        """Name of all log sources; `restore` compares the samples to recognise the log."""
        return "a log"

    def open(self) -> None:
        if not self._positioned:
            self._seek_start()
        self._positioned = False

    def _seek_start(self) -> None:
        """Skip the samples that an earlier process has read."""
        self._pieces = self._rows()
        self._buffer = self.no_samples()
        self._clock_start: tuple[float, float] | None = None
        remaining = self._start
        while remaining:
            if (piece := next(self._pieces, None)) is None:
                break
            if remaining <= len(piece):
                self._last = piece[remaining - 1].copy()
            self._buffer, remaining = piece[remaining:], max(0, remaining - len(piece))
        self._missing = remaining
        self._count = self._start

    def _rows(self) -> Iterator[Array]:
        begin = 0.0
        for pieces in self._logs():
            first = last = None
            for log in pieces:
                rows = log_rows(log)[slice(*log.meta.get("core", (None,)))]
                if len(rows):
                    first = rows[0, 0] if first is None else first
                    if begin:
                        rows[:, 0] += begin - first
                    last = rows[-1, 0]
                    yield rows
            begin = _PAUSE_S + (0.0 if last is None else last)

    def _logs(self) -> Iterator[Iterable[Log]]:
        """Yield each log as its consecutive pieces."""
        for path in self.address.split("\n"):
            yield log_chunks(path, self.options.robot, self.options.mapping or None)

    def read(self, wait_s: float) -> Array | None:
        if not len(self._buffer):
            piece = next(self._pieces, None)
            if piece is None:
                return None
            self._buffer = piece
        count = min(len(self._buffer), self._due_count(wait_s))
        rows, self._buffer = self._buffer[:count], self._buffer[count:]
        if count:
            self._last = rows[-1].copy()
        self._count += count
        return rows

    def _due_count(self, wait_s: float) -> int:
        """Return the number of buffered samples that are due now."""
        speed, size = self.options.speed, self.options.size
        if math.isinf(speed):
            return size
        if speed == 0.0:
            line = sys.stdin.readline()
            return int(line) if line.strip().isdecimal() else (1 if line else sys.maxsize)
        now, t = time.monotonic(), self._buffer[:, 0]
        if self._clock_start is None:
            self._clock_start = (now, float(t[0]))
        due = self._clock_start[1] + speed * (now - self._clock_start[0])
        if t[0] > due:
            time.sleep(min(wait_s, (float(t[0]) - due) / speed))
            return 0
        return min(size, int(np.searchsorted(t, due, side="right")))

    def close(self) -> None:
        self._start = self._count

    def state(self) -> StateArrays:
        return {"samples": np.array(self._count), "last": self._last.copy()}

    def restore(self, state: StateArrays) -> bool:
        samples = float(state["samples"])
        if not (samples >= 0.0 and samples.is_integer()):
            raise ForeignSnapshotError(f"the state has no valid number of samples; {REMEDY}.")
        self._start = self._count = int(samples)
        self._seek_start()
        self._positioned = True
        # Compare without velocities: they may be slopes of positions, and the last slope changes as a log grows.
        joints = self.options.robot.dof
        same = np.r_[0 : 1 + joints, 1 + 2 * joints : 1 + 3 * joints]
        last = np.asarray(state.get("last", self._last), dtype=float)
        if self._missing or not np.array_equal(self._last[same], last[same], equal_nan=True):
            logs = ", ".join(self.address.split("\n"))
            raise ForeignSnapshotError(f"the state belongs to another log, not to {shortened(logs, 80)}; {REMEDY}.")
        return True


class MemorySource(LogSource):
    """Replays logs that are in memory.

    Args:
        logs: Logs of the robot, in order of time.
        options: Robot, speed and batch size.
    """

    def __init__(self, logs: Sequence[Log], options: SourceOptions) -> None:
        super().__init__("\n".join(str(log.meta.get("source", "a log in memory")) for log in logs), options)
        self._in_memory = tuple(logs)

    def _logs(self) -> Iterator[Iterable[Log]]:
        yield from ((log,) for log in self._in_memory)


def log_rows(log: Log) -> Array:
    """Return the samples t, q, dq, tau of a `log`, shape (samples, 1 + 3 joints); compute missing velocities."""
    if log.tau is None:
        raise LogError("The log has no torques; the watch needs them.")
    dq = log.dq
    if dq is None:
        dq = np.vstack([np.gradient(log.q[a:b], log.t[a:b], axis=0) for a, b in log.segments])
    return np.column_stack([log.t, log.q, dq, log.tau])
