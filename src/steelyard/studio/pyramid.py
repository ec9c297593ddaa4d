"""`Pyramid`: a multi-resolution file of a log, so that any part of a log of any length is drawn quickly.

The file holds the records of one level after the other. Level 0 has every sample: its time (float64) and a float32 per
column. A record of level k covers 8^k samples: first and last time, and per column the smallest and largest value.
After the levels come a header (JSON), its length, and a magic word. All numbers are little-endian.
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
from steelyard.ground.files import csv_text, whole_file
from steelyard.ground.progress import report_progress
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, Source, pieces_of

FACTOR = 8
PLOTTED = ("q", "dq", "tau")
_MAGIC = b"SYPYRAM1"
# Time step between two pieces of a log that counts as a gap [sample periods].
_GAP = 10.0
# Largest width of a drawn part [px]; wider than any screen.
MOST_PIXELS = 8192
# Largest header [bytes]; it needs some hundred bytes per column.
_LONGEST_HEAD = 4 << 20

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class PlotColumn:
    """One line of a plot.

    Attributes:
        signal: "q", "dq" or "tau".
        joint: Name of the joint.
        unit: Unit of the values.
        low: Smallest value in the log.
        high: Largest value in the log.
    """

    signal: str
    joint: str
    unit: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a log for drawing, as buckets of samples.

    Attributes:
        times: First and last time of each bucket [s], shape (buckets, 2).
        low: Smallest values, shape (buckets, columns).
        high: Largest values, shape (buckets, columns).
        samples: Samples per bucket (the last may have fewer); 1: `low` and `high` are the samples.
    """

    times: Array
    low: Floats
    high: Floats
    samples: int

    def to_bytes(self) -> bytes:
        """Encode the part for a browser.

        The format is: length of the header (uint32), header (JSON), then float32 arrays: first times and last times
        [s after `origin`], then per column the low values and, unless these are samples, the high values.
        """
        origin = float(self.times[0, 0]) if len(self.times) else 0.0
        raw = self.samples == 1
        head = {"count": len(self.times), "columns": self.low.shape[1], "samples": self.samples, "origin": origin}
        text = json.dumps(head).encode("ascii")
        text += b" " * (-len(text) % 4)  # typed arrays of a browser need aligned data
        values = self.low.T if raw else np.stack([self.low.T, self.high.T], axis=1)
        relative = np.ascontiguousarray((self.times - origin).T, dtype="<f4")
        return b"".join([len(text).to_bytes(4, "little"), text, relative.tobytes(), values.astype("<f4").tobytes()])


@dataclass(frozen=True)
class Pyramid:
    """The multi-resolution file of a log.

    Attributes:
        path: Path of the file.
        columns: Lines of the plot, by signal, then by joint.
        start: Time of the first sample [s].
        end: Time of the last sample [s].
        gap: Samples at least this far apart are not connected [s]; 0 if there are no gaps.
        levels: File offset and number of records of each level.
    """

    path: Path
    columns: tuple[PlotColumn, ...]
    start: float
    end: float
    gap: float
    levels: tuple[tuple[int, int], ...]

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Pyramid:
        """Open the pyramid that `build_pyramid` has written to `path`."""
        source = Path(path)
        with source.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            tail = _read(file, max(0, size - 16), min(size, 16))
            length = int.from_bytes(tail[:8], "little")
            if tail[8:] != _MAGIC or not 0 < length <= min(size - 16, _LONGEST_HEAD):
                raise SteelyardError(f"{source}: is not a plot file; delete it to build the plot again.")
            head = json.loads(_read(file, size - 16 - length, length))
        columns = tuple(PlotColumn(**column) for column in head.pop("columns"))
        return Pyramid(source, columns, levels=tuple(map(tuple, head.pop("levels"))), **head)

    @property
    def samples(self) -> int:
        """Number of samples of the log."""
        return self.levels[0][1]

    def about(self) -> dict[str, Any]:
        """Return columns, times and number of samples for the page."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "start": self.start, "end": self.end, "gap": self.gap, "samples": self.samples,
        }  # fmt: skip

    def window(self, t0: float, t1: float, pixels: int, columns: Sequence[int] | None = None) -> Stretch:
        """Return a part of the log with one more sample on either side.

        Args:
            t0: Start [s].
            t1: End [s].
            pixels: Width of the drawing; it gives one to two buckets per pixel, or every sample.
            columns: Indices of the columns; None for all.
        """
        if not (math.isfinite(t0) and math.isfinite(t1) and t0 <= t1 and 0 < pixels <= MOST_PIXELS):
            raise SteelyardError(f"A part of a log needs a start, a later end, and 1 to {MOST_PIXELS} pixels.")
        indices = slice(None) if columns is None else list(columns)
        with self.path.open("rb") as file:
            times = _Times(file, self, 0)
            first = max(0, bisect_right(times, t0) - 1)
            last = min(self.samples, bisect_left(times, t1) + 1)
            size = 1 << max(0, int((last - first) / pixels).bit_length() - 1)  # samples of a bucket, a power of two
            level = min(int(math.log2(size)) // 3, len(self.levels) - 1)
            group = size // FACTOR**level
            begin, end = first // size * group, min(-(-last // size) * group, self.levels[level][1])
            t, low, high = self._records(file, level, begin, end)
        low, high = low[:, indices], high[:, indices]
        if group > 1:
            starts = np.arange(0, end - begin, group)
            t = np.column_stack([t[starts, 0], t[np.append(starts[1:], end - begin) - 1, 1]])
            low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        return Stretch(t, low, high, size)

    def csv_text(self, t0: float, t1: float, most: int) -> str:
        """Return the samples of a part of the log as CSV, with seven digits, as they are stored.

        Args:
            t0: Start [s].
            t1: End [s].
            most: Largest number of samples.
        """
        if not (math.isfinite(t0) and math.isfinite(t1) and t0 <= t1):
            raise SteelyardError("A part of a log needs a start and a later end.")
        with self.path.open("rb") as file:
            times = _Times(file, self, 0)
            first, last = bisect_left(times, t0), bisect_right(times, t1)
            if last - first > most:
                raise SteelyardError(
                    f"The visible part has {last - first:,} samples; zoom in to at most {most:,}, or copy the log."
                )
            t, values, _ = self._records(file, 0, first, last)
        head = ["t [s]", *(f"{c.signal} {c.joint} [{c.unit}]" for c in self.columns)]
        rows = ([f"{a[0]:.9g}", *(f"{x:.7g}" for x in row)] for a, row in zip(t, values, strict=True))
        return csv_text([head, *rows])

    def at(self, t: float) -> tuple[float, Floats]:
        """Return the time and the values (one per column) of the sample nearest to time `t` [s]."""
        with self.path.open("rb") as file:
            times = _Times(file, self, 0)
            after = min(bisect_left(times, t), self.samples - 1)
            before = max(after - 1, 0)
            nearest = before if t - times[before] < times[after] - t else after
            times_found, low, _ = self._records(file, 0, nearest, nearest + 1)
        return float(times_found[0, 0]), low[0]

    def _records(self, file: IO[bytes], level: int, begin: int, end: int) -> tuple[Array, Floats, Floats]:
        """Read records `begin` to `end` of a level: times, smallest and largest values."""
        kind = _record(level, len(self.columns))
        data = _read(file, self.levels[level][0] + begin * kind.itemsize, (end - begin) * kind.itemsize)
        records = np.frombuffer(data, dtype=kind)
        if level == 0:
            return np.column_stack([records["t"], records["t"]]), records["x"], records["x"]
        return records["t"], records["x"][:, :, 0], records["x"][:, :, 1]


class _Times(Sequence[float]):
    """First times of the records of a level, read one by one, since a bisection needs only a few."""

    def __init__(self, file: IO[bytes], pyramid: Pyramid, level: int) -> None:
        self._file, (self._offset, self._count) = file, pyramid.levels[level]
        self._step = _record(level, len(pyramid.columns)).itemsize

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        return float(np.frombuffer(_read(self._file, self._offset + k * self._step, 8), "<f8")[0])


def _record(level: int, columns: int) -> np.dtype[Any]:
    if level == 0:
        return np.dtype([("t", "<f8"), ("x", "<f4", (columns,))])
    return np.dtype([("t", "<f8", (2,)), ("x", "<f4", (columns, 2))])


def _read(file: IO[bytes], offset: int, length: int) -> bytes:
    # Not a memory map: its pages would count as memory of the server as long as it runs.
    file.seek(offset)
    data = file.read(length)
    if len(data) != length:
        raise SteelyardError(f"{file.name}: is incomplete; delete it to build the plot again.")
    return data


def build_pyramid(source: Source, robot: Robot, target: str | os.PathLike[str]) -> Pyramid:
    """Write the pyramid of a log atomically, reading the log piece by piece.

    Args:
        source: The log, in memory or as a file.
        robot: Robot of the log, for the units.
        target: Path of the pyramid; an existing file is replaced.
    """
    path = Path(target)
    total = max(1, source.row_count(source.reader.estimated_rows()) if isinstance(source, LogFile) else len(source))
    with whole_file(path) as file, ExitStack() as unnamed:
        levels = _Levels(file, path.parent, unnamed)
        for piece in pieces_of(source):
            levels.append(piece)
            report_progress("preparing the plot", min(0.99, levels.counts[0] / total), f"{levels.counts[0]:,} samples")
        if not levels.counts[0]:
            raise LogError("The log is empty. Record it again, or choose another log.")
        levels.finish()
        text = json.dumps(levels.head(robot)).encode("utf-8")
        file.write(text + len(text).to_bytes(8, "little") + _MAGIC)
    report_progress("preparing the plot", 1.0, f"{levels.counts[0]:,} samples")
    return Pyramid.open(path)


class _Levels:
    """Writer of the levels: appends records and passes every eight of them to the next level."""

    def __init__(self, file: IO[bytes], folder: Path, unnamed: ExitStack) -> None:
        # Level 0 goes to the file itself; the others, far smaller, go to unnamed files until `finish`.
        self.files, self.counts = [file], [0]
        self.folder, self.unnamed = folder, unnamed
        self.waiting: list[tuple[Array, Floats, Floats]] = []
        self.signals: tuple[str, ...] = ()
        self.torque_kind = ""
        self.start, self.end, self.shift, self.gap = math.nan, -math.inf, 0.0, math.inf

    def append(self, piece: Log) -> None:
        """Append the samples of the next piece."""
        present = {name: piece.signals[name] for name in PLOTTED}
        self.signals = self.signals or tuple(name for name, x in present.items() if x is not None)
        self.torque_kind = str(piece.meta.get("torque_kind", "torque"))
        arrays = [x for name in self.signals if (x := present[name]) is not None]
        values = np.concatenate(arrays, axis=1).astype("<f4")
        period = float(np.median(np.diff(piece.t))) if len(piece) > 1 else 0.0
        t = piece.t + self.shift
        if t[0] <= self.end:  # the clock was set back; shift the piece to follow the previous one
            step = self.end + max(period, 1e-9) - t[0]
            self.shift += step
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
        """Append records to a level."""
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
        """Write the incomplete records of less than eight, and append all levels to the file."""
        level = 0
        while self.counts[level] > 1:
            if rest := len(self.waiting[level][0]):
                self.add(level + 1, *_coarser(*self.waiting[level], rest))
            level += 1
        for file in self.files[1:]:
            file.seek(0)
            shutil.copyfileobj(file, self.files[0], 1 << 20)

    def head(self, robot: Robot) -> dict[str, Any]:
        """Return the header."""
        top = self.waiting[-1]
        low, high = (x.min(axis=0) if k == 0 else x.max(axis=0) for k, x in enumerate(top[1:]))
        names = [(signal, joint) for signal in self.signals for joint in robot.joints]
        columns = [
            PlotColumn(signal, joint.name, _unit(signal, joint, self.torque_kind), float(low[k]), float(high[k]))
            for k, (signal, joint) in enumerate(names)
        ]
        levels, offset = [], 0
        for level, count in enumerate(self.counts):
            levels.append((offset, count))
            offset += count * _record(level, len(columns)).itemsize
        gap = self.gap if math.isfinite(self.gap) else 0.0
        return {
            "columns": [asdict(c) for c in columns], "levels": levels, "start": self.start, "end": self.end, "gap": gap,
        }  # fmt: skip


def _coarser(t: Array, low: Floats, high: Floats, size: int) -> tuple[Array, Floats, Floats]:
    """Combine every `size` records into one."""
    times = np.column_stack([t[::size, 0], t[size - 1 :: size, 1]])
    return times, low.reshape(-1, size, low.shape[1]).min(axis=1), high.reshape(-1, size, high.shape[1]).max(axis=1)


def _unit(signal: str, joint: Joint, torque_kind: str) -> str:
    if signal == "tau":
        return "A" if torque_kind == "current" else joint.effort_unit
    return joint.unit if signal == "q" else f"{joint.unit}/s"
