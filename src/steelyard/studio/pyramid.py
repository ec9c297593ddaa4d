"""`Pyramid`: a log on disk, coarse and fine, so that any part of it is drawn at once, however long the log is.

A file holds records one level after the other. Level 0 is every sample: its time (float64) and a float32 per column.
A record of level k is of 8^k samples: the first and the last time, and per column the smallest and the largest value.
Behind the levels stand what is in them (JSON), the length of that, and a word to know the file by. All of it is
little-endian.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.files import whole_file
from steelyard.ground.progress import tell_progress
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, Source, pieces_of

FACTOR = 8
PLOTTED = ("q", "dq", "tau")
_MAGIC = b"SYPYRAM1"
# Between two pieces of a log, a step of more than so many periods is a gap.
_GAP = 10.0
# More pixels than a screen has are asked for by nobody who draws.
MOST_PIXELS = 8192
# What is said of a pyramid takes some hundred bytes per column.
_LONGEST_HEAD = 4 << 20

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class PlotColumn:
    """One line of a plot: which `signal` ("q", "dq", "tau") of which `joint`, its `unit`, and its range in the log."""

    signal: str
    joint: str
    unit: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Stretch:
    """What is drawn of a part of a log: buckets of `samples` samples each, the last perhaps of fewer.

    Attributes:
        times: first and last time of each, s, `(buckets, 2)`.
        low: the smallest values, `(buckets, columns)`.
        high: the largest.
        samples: in a bucket; 1: `low` and `high` are the samples themselves.
    """

    times: Array
    low: Floats
    high: Floats
    samples: int

    def to_bytes(self) -> bytes:
        """For a browser: length of the head (uint32), the head (JSON), then float32, one array after the other: first
        times and last times (s after `origin`), then for each column its low and, unless it is raw, high values."""
        origin = float(self.times[0, 0]) if len(self.times) else 0.0
        raw = self.samples == 1
        head = {"count": len(self.times), "columns": self.low.shape[1], "samples": self.samples, "origin": origin}
        text = json.dumps(head).encode("ascii")
        text += b" " * (-len(text) % 4)  # so that numbers begin where a browser can view them in place
        values = self.low.T if raw else np.stack([self.low.T, self.high.T], axis=1)
        relative = np.ascontiguousarray((self.times - origin).T, dtype="<f4")
        return b"".join([len(text).to_bytes(4, "little"), text, relative.tobytes(), values.astype("<f4").tobytes()])


@dataclass(frozen=True)
class Pyramid:
    """A log as it is drawn, on disk.

    Attributes:
        path: the file.
        columns: its lines, signal after signal, joint after joint.
        start: time of the first sample, s.
        end: time of the last, s.
        gap: two samples this far apart, s, are not joined; 0 where nothing is missing.
        levels: place in the file and number of records of each.
    """

    path: Path
    columns: tuple[PlotColumn, ...]
    start: float
    end: float
    gap: float
    levels: tuple[tuple[int, int], ...]

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Pyramid:
        """The pyramid that `build_pyramid` has written to `path`."""
        source = Path(path)
        with source.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            tail = _read(file, max(0, size - 16), min(size, 16))
            length = int.from_bytes(tail[:8], "little")
            if tail[8:] != _MAGIC or not 0 < length <= min(size - 16, _LONGEST_HEAD):
                raise SteelyardError(f"{source}: is no pyramid of a log; remove it, and it is made again.")
            head = json.loads(_read(file, size - 16 - length, length))
        columns = tuple(PlotColumn(**column) for column in head.pop("columns"))
        return Pyramid(source, columns, levels=tuple(map(tuple, head.pop("levels"))), **head)

    @property
    def samples(self) -> int:
        """Of the log."""
        return self.levels[0][1]

    def about(self) -> dict[str, Any]:
        """What a page needs to know before it draws."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "start": self.start, "end": self.end, "gap": self.gap, "samples": self.samples,
        }  # fmt: skip

    def window(self, t0: float, t1: float, pixels: int, columns: Sequence[int] | None = None) -> Stretch:
        """The part from `t0` to `t1` (s) with one sample more on either side, to be drawn.

        Args:
            t0: where it begins.
            t1: where it ends.
            pixels: how wide it is drawn; there are so many buckets, up to twice as many, or every sample.
            columns: which, by their place in `columns`; None: all.
        """
        if not (math.isfinite(t0) and math.isfinite(t1) and t0 <= t1 and 0 < pixels <= MOST_PIXELS):
            raise SteelyardError(f"A part of a log is from a time to a later one, on 1 to {MOST_PIXELS} pixels.")
        chosen = slice(None) if columns is None else list(columns)
        with self.path.open("rb") as file:
            times = _Times(file, self, 0)
            first = max(0, bisect_right(times, t0) - 1)
            last = min(self.samples, bisect_left(times, t1) + 1)
            size = 1 << max(0, int((last - first) / pixels).bit_length() - 1)  # samples of a bucket, a power of two
            level = min(int(math.log2(size)) // 3, len(self.levels) - 1)
            group = size // FACTOR**level
            begin, end = first // size * group, min(-(-last // size) * group, self.levels[level][1])
            t, low, high = self._records(file, level, begin, end)
        low, high = low[:, chosen], high[:, chosen]
        if group > 1:
            starts = np.arange(0, end - begin, group)
            t = np.column_stack([t[starts, 0], t[np.append(starts[1:], end - begin) - 1, 1]])
            low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        return Stretch(t, low, high, size)

    def at(self, t: float) -> tuple[float, Floats]:
        """The time of the sample that is nearest to `t` (s), and its values, one per column."""
        with self.path.open("rb") as file:
            times = _Times(file, self, 0)
            after = min(bisect_left(times, t), self.samples - 1)
            before = max(after - 1, 0)
            nearest = before if t - times[before] < times[after] - t else after
            found, low, _ = self._records(file, 0, nearest, nearest + 1)
        return float(found[0, 0]), low[0]

    def _records(self, file: IO[bytes], level: int, begin: int, end: int) -> tuple[Array, Floats, Floats]:
        """Records `begin` to `end` of a `level`: times, smallest and largest values."""
        kind = _record(level, len(self.columns))
        data = _read(file, self.levels[level][0] + begin * kind.itemsize, (end - begin) * kind.itemsize)
        found = np.frombuffer(data, dtype=kind)
        if level == 0:
            return np.column_stack([found["t"], found["t"]]), found["x"], found["x"]
        return found["t"], found["x"][:, :, 0], found["x"][:, :, 1]


class _Times(Sequence[float]):
    """First times of the records of a level, read one by one: what a search looks at is a handful."""

    def __init__(self, file: IO[bytes], pyramid: Pyramid, level: int) -> None:
        self._file, (self._place, self._count) = file, pyramid.levels[level]
        self._step = _record(level, len(pyramid.columns)).itemsize

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        return float(np.frombuffer(_read(self._file, self._place + k * self._step, 8), "<f8")[0])


def _record(level: int, columns: int) -> np.dtype[Any]:
    if level == 0:
        return np.dtype([("t", "<f8"), ("x", "<f4", (columns,))])
    return np.dtype([("t", "<f8", (2,)), ("x", "<f4", (columns, 2))])


def _read(file: IO[bytes], place: int, length: int) -> bytes:
    # Read, not mapped: pages of a mapped file would count as memory of the server for as long as it runs.
    file.seek(place)
    data = file.read(length)
    if len(data) != length:
        raise SteelyardError(f"{file.name}: ends in the middle; remove it, and it is made again.")
    return data


def build_pyramid(source: Source, robot: Robot, target: str | os.PathLike[str]) -> Pyramid:
    """Write the pyramid of a log, piece by piece, whole or not at all.

    Args:
        source: the log, in memory or as a file to go through.
        robot: whose it is; it knows the units.
        target: the file to write; one that is there is replaced.
    """
    place = Path(target)
    total = max(1, source.row_count(source.reader.estimated_rows()) if isinstance(source, LogFile) else len(source))
    with whole_file(place) as file, ExitStack() as unnamed:
        made = _Levels(file, place.parent, unnamed)
        for piece in pieces_of(source):
            made.take(piece)
            tell_progress("making it quick to draw", min(0.99, made.counts[0] / total), f"{made.counts[0]:,} samples")
        if not made.counts[0]:
            raise LogError("The log has no samples that could be drawn.")
        made.finish()
        text = json.dumps(made.head(robot)).encode("utf-8")
        file.write(text + len(text).to_bytes(8, "little") + _MAGIC)
    tell_progress("making it quick to draw", 1.0, f"{made.counts[0]:,} samples")
    return Pyramid.open(place)


class _Levels:
    """The levels while they are made: what comes in is written, and handed on to the next level in eights."""

    def __init__(self, file: IO[bytes], folder: Path, unnamed: ExitStack) -> None:
        # Level 0 goes to the file itself; the others, far smaller, to files without a name until they follow it.
        self.files, self.counts = [file], [0]
        self.folder, self.unnamed = folder, unnamed
        self.waiting: list[tuple[Array, Floats, Floats]] = []
        self.signals: tuple[str, ...] = ()
        self.torque_kind = ""
        self.start, self.end, self.moved, self.gap = math.nan, -math.inf, 0.0, math.inf

    def take(self, piece: Log) -> None:
        """The next samples."""
        present = {name: piece.signals[name] for name in PLOTTED}
        self.signals = self.signals or tuple(name for name, x in present.items() if x is not None)
        self.torque_kind = str(piece.meta.get("torque_kind", "torque"))
        arrays = [x for name in self.signals if (x := present[name]) is not None]
        values = np.concatenate(arrays, axis=1).astype("<f4")
        period = float(np.median(np.diff(piece.t))) if len(piece) > 1 else 0.0
        t = piece.t + self.moved
        if t[0] <= self.end:  # a clock that was set back in an earlier piece, where it was moved to go on
            step = self.end + max(period, 1e-9) - t[0]
            self.moved += step
            t = t + step
            self.gap = min(self.gap, t[0] - self.end)
        elif math.isfinite(self.end) and t[0] - self.end > _GAP * period:
            self.gap = min(self.gap, t[0] - self.end)
        for border, _ in piece.segments[1:]:
            self.gap = min(self.gap, t[border] - t[border - 1])
        if not self.counts[0]:
            self.start = float(t[0])
        self.end = float(t[-1])
        self.add(0, np.column_stack([t, t]), values, values)

    def add(self, level: int, t: Array, low: Floats, high: Floats) -> None:
        """Records of a `level`."""
        if level == len(self.files):
            unnamed = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (the stack closes it)
            self.files.append(self.unnamed.enter_context(unnamed))
            self.counts.append(0)
        if level == len(self.waiting):
            self.waiting.append((t[:0], low[:0], high[:0]))
        records = np.empty(len(t), dtype=_record(level, low.shape[1]))
        records["t"] = t if level else t[:, 0]
        records["x"] = np.stack([low, high], axis=2) if level else low
        self.files[level].write(records.tobytes())
        self.counts[level] += len(t)
        before = self.waiting[level]
        t = np.concatenate([before[0], t])
        low, high = np.concatenate([before[1], low]), np.concatenate([before[2], high])
        whole = len(t) // FACTOR * FACTOR
        self.waiting[level] = t[whole:].copy(), low[whole:].copy(), high[whole:].copy()
        if whole:
            self.add(level + 1, *_coarser(t[:whole], low[:whole], high[:whole], FACTOR))

    def finish(self) -> None:
        """What is less than eight makes a record, too; then the levels follow one another."""
        level = 0
        while self.counts[level] > 1:
            if rest := len(self.waiting[level][0]):
                self.add(level + 1, *_coarser(*self.waiting[level], rest))
            level += 1
        for file in self.files[1:]:
            file.seek(0)
            shutil.copyfileobj(file, self.files[0], 1 << 20)

    def head(self, robot: Robot) -> dict[str, Any]:
        """What stands behind the levels."""
        top = self.waiting[-1]
        low, high = (x.min(axis=0) if k == 0 else x.max(axis=0) for k, x in enumerate(top[1:]))
        names = [(signal, joint) for signal in self.signals for joint in robot.joints]
        columns = [
            PlotColumn(signal, joint.name, _unit(signal, joint, self.torque_kind), float(low[k]), float(high[k]))
            for k, (signal, joint) in enumerate(names)
        ]
        places, place = [], 0
        for level, count in enumerate(self.counts):
            places.append((place, count))
            place += count * _record(level, len(columns)).itemsize
        gap = self.gap if math.isfinite(self.gap) else 0.0
        return {
            "columns": [asdict(c) for c in columns], "levels": places, "start": self.start, "end": self.end, "gap": gap,
        }  # fmt: skip


def _coarser(t: Array, low: Floats, high: Floats, many: int) -> tuple[Array, Floats, Floats]:
    """Records of so `many` each."""
    times = np.column_stack([t[::many, 0], t[many - 1 :: many, 1]])
    return times, low.reshape(-1, many, low.shape[1]).min(axis=1), high.reshape(-1, many, high.shape[1]).max(axis=1)


def _unit(signal: str, joint: Joint, torque_kind: str) -> str:
    if signal == "tau":
        return "A" if torque_kind == "current" else joint.effort_unit
    return joint.unit if signal == "q" else f"{joint.unit}/s"
