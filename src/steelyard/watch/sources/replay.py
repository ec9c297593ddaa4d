"""A log, played as it was recorded, faster, or step by step; several logs one after the other."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from steelyard.errors import LogError, shortened
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.read import log_chunks
from steelyard.watch.parts import PartState
from steelyard.watch.snapshots import REMEDY, OtherWatchError
from steelyard.watch.source import LIVE_SOURCES, LiveSource, SourceOptions

# Between the end of one log and the beginning of the next: more than any gap that is bridged.
_BETWEEN_S = 5.0


@LIVE_SOURCES.register("replay")
class ReplayedLogs(LiveSource):
    """Any log that can be read. Its clock goes on where it was killed: nothing is seen twice or missed.

    Args:
        address: paths of logs, one a line.
        options: robot, mapping, speed and size of what is handed over at once.
    """

    description = "any log, at its own speed, as fast as can be, or stepwise"
    example = "LOG"
    live = False
    state_rules: ClassVar[Mapping[str, ArrayRule]] = {"last": ArrayRule(optional=True)}

    def __init__(self, address: str, options: SourceOptions) -> None:
        super().__init__(address, options)
        self._skip = 0  # samples that were seen before this process began
        self._done = 0
        self._last = np.full(1 + 3 * options.robot.dof, np.nan)  # the newest sample that was handed over
        self._opened = False

    @property
    def identity(self) -> str:
        """That it is a log: which one, its samples tell (`restore`)."""
        return "a log"

    def open(self) -> None:
        if not self._opened:
            self._begin()
        self._opened = False

    def _begin(self) -> None:
        """Read up to the first sample that was not seen before."""
        self._pieces = self._rows()
        self._held = self.nothing()
        self._began: tuple[float, float] | None = None
        left = self._skip
        while left:
            if (piece := next(self._pieces, None)) is None:
                break
            if left <= len(piece):
                self._last = piece[left - 1].copy()
            self._held, left = piece[left:], max(0, left - len(piece))
        self._missing = left
        self._done = self._skip

    def _rows(self) -> Iterator[Array]:
        begin = 0.0
        for path in self.address.split("\n"):
            first = last = None
            for log in log_chunks(path, self.options.robot, self.options.mapping or None):
                rows = rows_of(log)[slice(*log.meta["core"])]
                if len(rows):
                    first = rows[0, 0] if first is None else first
                    if begin:
                        rows[:, 0] += begin - first
                    last = rows[-1, 0]
                    yield rows
            begin = _BETWEEN_S + (0.0 if last is None else last)

    def read(self, wait_s: float) -> Array | None:
        if not len(self._held):
            piece = next(self._pieces, None)
            if piece is None:
                return None
            self._held = piece
        count = min(len(self._held), self._allowed(wait_s))
        rows, self._held = self._held[:count], self._held[count:]
        if count:
            self._last = rows[-1].copy()
        self._done += count
        return rows

    def _allowed(self, wait_s: float) -> int:
        """How many samples may go now."""
        speed, size = self.options.speed, self.options.size
        if math.isinf(speed):
            return size
        if speed == 0.0:
            line = sys.stdin.readline()
            return int(line) if line.strip().isdecimal() else (1 if line else sys.maxsize)
        now, t = time.monotonic(), self._held[:, 0]
        if self._began is None:
            self._began = (now, float(t[0]))
        due = self._began[1] + speed * (now - self._began[0])
        if t[0] > due:
            time.sleep(min(wait_s, (float(t[0]) - due) / speed))
            return 0
        return min(size, int(np.searchsorted(t, due, side="right")))

    def close(self) -> None:
        self._skip = self._done

    def state(self) -> PartState:
        return {"samples": np.array(self._done), "last": self._last.copy()}

    def restore(self, state: PartState) -> bool:
        samples = float(state["samples"])
        if not (samples >= 0.0 and samples.is_integer()):
            raise OtherWatchError(f"the state does not say how many samples were seen; {REMEDY}.")
        self._skip = self._done = int(samples)
        self._begin()
        self._opened = True
        # Velocities may be slopes of positions, and the last one of a log changes as the log grows.
        joints = self.options.robot.dof
        same = np.r_[0 : 1 + joints, 1 + 2 * joints : 1 + 3 * joints]
        last = np.asarray(state.get("last", self._last), dtype=float)
        if self._missing or not np.array_equal(self._last[same], last[same], equal_nan=True):
            logs = ", ".join(self.address.split("\n"))
            raise OtherWatchError(
                f"the state is that of a watch of another log, not of {shortened(logs, 80)}; {REMEDY}."
            )
        return True


def rows_of(log: Log) -> Array:
    """Samples t, q, dq, tau, (samples, 1 + 3 joints), of a `log`; velocities it lacks are slopes of the positions."""
    if log.tau is None:
        raise LogError("The log has no torque; a robot is watched by it.")
    dq = log.dq
    if dq is None:
        dq = np.vstack([np.gradient(log.q[a:b], log.t[a:b], axis=0) for a, b in log.segments])
    return np.column_stack([log.t, log.q, dq, log.tau])
