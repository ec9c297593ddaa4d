"""`read_log`: reads a log of a robot from a file of any format, whole or in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError, ShapeError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.ground.remote import RemoteFile, any_path
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot
from steelyard.signals._clock import Clock, repair_clock
from steelyard.signals._convert import joint_signals, seconds, side_by_side
from steelyard.signals._layout import Layout, find_layout
from steelyard.signals.in_memory import memory_reader
from steelyard.signals.load_log import load_log, with_path
from steelyard.signals.log import Finding, Log, Severity
from steelyard.signals.mapping import LogMapping, as_mapping
from steelyard.signals.presets import with_preset
from steelyard.signals.repeats import without_repeats
from steelyard.signals.table import (
    ColumnValues,
    LogReader,
    Table,
    TableBlock,
    block_length,
    count_rows,
    cut_blocks,
    first_rows,
    open_reader,
)

# Longest and shortest plausible sampling period [s]; a clock beyond these is in another unit.
SLOWEST, FASTEST = 10.0, 1e-7

__all__ = ["load_log", "log_chunks", "read_log"]

AnyFile = str | os.PathLike[str] | RemoteFile | LogReader | Any
RowRange = tuple[int, int | None]  # first and last row; None: to the end
AnyMapping = LogMapping | Mapping[str, Any] | str | os.PathLike[str] | None


def read_log(
    path: AnyFile,
    robot: RobotLike,
    mapping: AnyMapping = None,
    rows: RowRange | None = None,
    start_time: float | int | None = None,
) -> Log:
    """Read a log of a robot's motion: SI units, joint side, joints in the robot's order, one clock.

    `meta` of the log has its source (`source`, `rows`, `mapping`, `start_time`), statements about the robot for the
    caller to apply (`gravity`, `torque_used`), and the meaning of tau (`torque_kind`: "torque", "current" if it is in A
    because constants are missing, or "none"). `findings` report repairs and oddities.

    Args:
        path: A file of any format in `steelyard.signals.table.READERS` (.csv, .parquet, .npz, .mcap, rosbag2, …), the
            URL of one (s3://bucket/run.parquet), an open reader, a frame (pandas, polars, xarray, Arrow), or a dict
            of arrays.
        robot: Robot, as `load_robot` takes it. The log must have all of its joints; others are ignored.
        mapping: Meaning of the columns: a TOML, JSON or YAML file, a dict, or a `LogMapping`. Other columns are
            recognised by name.
        rows: First and last row to read, from 1 (None: to the end); default: the mapping's window, else all.
        start_time: The file's clock at t = 0, in the file's unit; default: that of the first row if it counts from a
            distant date, else zero.
    """
    return next(_logs(path, as_robot(robot), as_mapping(mapping), rows, start_time))


def log_chunks(
    path: AnyFile,
    robot: Robot,
    mapping: AnyMapping = None,
    size: int = 500_000,
    overlap: int = 1000,
    rows: RowRange | None = None,
    start_time: float | int | None = None,
) -> Iterator[Log]:
    """Read a log in pieces, with little more than one in memory.

    The meta data of a piece has its `rows` of the file (from 1, with overlap), its samples without overlap (`core`,
    half-open), which together are the whole log, and whether it is the `last`. The clock of each piece is repaired
    separately: rows are not sorted across pieces, and times after a reset continue only within the piece.

    Args:
        path: As in `read_log`.
        robot: As in `read_log`.
        mapping: As in `read_log`.
        size: Rows of a piece; the last one has up to half as many more.
        overlap: Rows on either side of a piece that it shares with its neighbours.
        rows: As in `read_log`.
        start_time: As in `read_log`.
    """
    if size < 100 or not 0 <= overlap <= size:
        raise LogError(
            f"The size of pieces must be at least 100 and the overlap from 0 to the size, not {size} and {overlap}."
        )
    yield from _logs(path, robot, as_mapping(mapping), rows, start_time, size, overlap)


def _logs(
    path: AnyFile,
    robot: Robot,
    mapping: LogMapping,
    rows: RowRange | None,
    origin: float | int | None,
    size: int | None = None,
    overlap: int = 0,
) -> Iterator[Log]:
    """Read a file as one log, or in pieces of `size` rows."""
    if not isinstance(path, str | os.PathLike | RemoteFile | LogReader):
        path = memory_reader(path)
    source = path.path if isinstance(path, LogReader) else any_path(path)
    mapping = mapping.of_file(source)
    try:
        reader = path if isinstance(path, LogReader) else open_reader(path, mapping.part)
        mapping = with_preset(mapping, reader.names, robot.joint_names)
        layout = find_layout(reader.names, reader.joints, robot, mapping)
        start, stop = _row_range(rows or mapping.window_of(source), reader.row_count)
        blocks = _windowed(reader, layout.names, start, stop)
        for first, some, own, last in _pieces(blocks, None if stop is None else stop - start, size, overlap):
            table, own = _usable_rows(reader.table(layout.names, some, start + first), layout, mapping, own)
            del some  # frees its memory before the signals are computed
            t, origin = _clock_times(table, layout, mapping, origin)
            log = _assemble(table, layout, robot, mapping, t, origin, None if size is None else (own, last))
            del table, t
            yield log
            del log
    except (LogError, ShapeError) as error:
        raise with_path(error, source, mapping.source) from None


def _windowed(reader: LogReader, names: tuple[str, ...], start: int, stop: int | None) -> Iterator[TableBlock]:
    """Yield the rows from start to stop; a shorter file is an error."""
    count = start
    for block in first_rows(reader.blocks(names, start), None if stop is None else stop - start):
        yield block
        count += block_length(block)
    if stop is not None and count < stop:
        _row_range((start + 1, stop), count_rows(reader.path, topic=reader.topic))


def _pieces(
    blocks: Iterable[TableBlock], total: int | None, size: int | None, overlap: int
) -> Iterator[tuple[int, tuple[TableBlock, ...], tuple[int, int], bool]]:
    """Divide rows into pieces; yield first row (from 0), blocks, range without overlap, and whether it is the last.

    The last piece includes a remainder of up to half a piece. If the `total` number of rows is unknown, half a piece
    is read ahead.
    """
    if size is None:
        whole = tuple(blocks)
        yield 0, whole, (0, sum(block_length(block) for block in whole)), True
        return
    stream, buffer = iter(blocks), list[TableBlock]()
    core, low, high = 0, 0, 0  # beginning of this piece, and range of rows in the buffer
    while total is None or core < total:
        ahead = size + max(overlap, size // 2 + 1 if total is None else 0)
        wanted = total if total is not None and is_last(total - core, size) else core + ahead
        while high < wanted:
            block = next(stream, None)
            if block is None:
                total = high
                break
            buffer.append(block)
            high += block_length(block)
        end = total if total is not None and is_last(total - core, size) else core + size
        first, last = max(0, core - overlap), min(high, end + overlap)
        piece = first, tuple(cut_blocks(buffer, first - low, last - low)), (core - first, end - first), end == total
        core = end
        while buffer and low + block_length(buffer[0]) <= core - overlap:
            low += block_length(buffer.pop(0))
        yield piece
        del piece


def is_last(rows: int, size: int) -> bool:
    """Whether the remaining rows form the last piece, which may have up to half more.

    Args:
        rows: Number of remaining rows.
        size: Rows of a piece.
    """
    return rows <= 1.5 * size


def _row_range(window: RowRange | None, count: int | None) -> tuple[int, int | None]:
    """Convert a window of rows from 1 to a half-open range from 0; None for an unknown end."""
    if window is None:
        return 0, count
    first, last = window
    if last is None:
        return first - 1, count
    if not 1 <= first <= last:
        raise LogError(f"the window [{first}, {last}] is not a range of rows; the first row is 1.")
    if count is not None and last > count:
        raise LogError(f"the window [{first}, {last}] ends after the last row, {count}.")
    return first - 1, last


def _usable_rows(
    table: Table, layout: Layout, mapping: LogMapping, own: tuple[int, int]
) -> tuple[Table, tuple[int, int]]:
    """Omit rows without signals of this robot and, if the mapping states it, with NaN; adjust the range `own`."""
    omitted = np.zeros(len(table), dtype=bool)
    motion = [name for names in layout.columns.values() for name in names]
    if table.sparse:
        absent = np.all([_missing(table.column(name)) for name in motion], axis=0)
        if absent.any():
            others = int(absent.sum())
            finding = Finding("remark", "note", f"{others} rows have no signal of the robot; left out.", count=others)
            omitted[:] = absent
            table = table.without(absent, finding)
    if mapping.nan_rows == "drop":
        used = [*motion, *([layout.time] if layout.time else [])]
        used += [name for channel, names in layout.channels.items() if mapping.states(channel) for name in names]
        holes = np.any([_missing(table.column(name)) for name in used], axis=0)
        if holes.any():
            count, row = int(holes.sum()), int(table.row_numbers[int(np.argmax(holes))])
            message = f"{count} rows have NaN or an empty cell, the first is row {row}; left out because of nan_rows."
            severity: Severity = "warning" if count > 0.01 * len(holes) else "note"
            omitted[~omitted] |= holes
            table = table.without(holes, Finding("nan_rows", severity, message, count=count, row=row))
    first, last = (row - int(np.count_nonzero(omitted[:row])) for row in own)
    return table, (first, last)


def _missing(column: ColumnValues) -> NDArray[np.bool_]:
    """Return where a column lacks a finite number; text is not examined."""
    if column.dtype.kind == "f":
        return ~np.isfinite(column)
    if column.dtype.kind == "M":
        return np.isnat(column)
    if column.dtype.kind == "O":
        return np.array([value is None or value != value for value in column], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def _clock_times(
    table: Table, layout: Layout, mapping: LogMapping, origin: float | int | None = None
) -> tuple[Array, float | int]:
    """Compute the time of every row [s], and the file's clock at zero."""
    if layout.time is not None:
        return seconds(table, layout.time, mapping, origin)
    if mapping.rate is None:
        raise LogError("the mapping states neither a time column nor a rate.")
    return (np.asarray(table.row_numbers) - 1) / mapping.rate, 0


def _assemble(
    table: Table,
    layout: Layout,
    robot: Robot,
    mapping: LogMapping,
    t: Array,
    origin: float | int,
    piece: tuple[tuple[int, int], bool] | None = None,
) -> Log:
    """Build the log of a table: repaired clock, signals, findings.

    For a `piece`: range of its rows without overlap (`meta["core"]` has the samples), and whether it is the last.
    """
    clock = repair_clock(t, numbers=table.row_numbers, gap=mapping.gap, part=table.part)
    if not FASTEST <= clock.period <= SLOWEST:
        raise LogError(
            f'the clock steps by {clock.period:g} s; state the unit of the time in the mapping, e.g. units.time = "ns".'
        )
    findings = [*layout.findings, *table.findings, *clock.findings]
    signals = joint_signals(table, layout, mapping, robot, findings)
    channels = _channels(table, layout, mapping)
    if not np.array_equal(clock.order, np.arange(len(table))):
        signals = {name: x[clock.order] for name, x in signals.items()}
        channels = {name: x[clock.order] for name, x in channels.items()}
    meta = _meta(table, layout, robot, mapping, clock, origin)
    if piece is not None:
        own, meta["last"] = piece
        # Counting, even where rows were sorted, makes the cores of neighbouring pieces consecutive.
        meta["core"] = [int(np.count_nonzero(clock.order < row)) for row in own]
    findings += _odd_torques(signals.get("tau"), robot)
    log = Log(
        robot.joint_names,
        clock.t,
        **signals,
        meta=meta,
        segments=clock.segments,
        findings=tuple(findings),
        channels=channels,
    )
    del signals, channels
    return without_repeats(log)


def _channels(table: Table, layout: Layout, mapping: LogMapping) -> dict[str, Array]:
    """Read further signals; one that was only recognised by its name and has gaps is omitted."""
    out: dict[str, Array] = {}
    for name, columns in layout.channels.items():
        try:
            out[name] = side_by_side(table, columns)
        except LogError:
            if mapping.states(name):
                raise
    return out


def _meta(
    table: Table, layout: Layout, robot: Robot, mapping: LogMapping, clock: Clock, origin: float | int
) -> dict[str, Any]:
    for name in mapping.torque_used or ():
        if name not in robot.joint_names:
            raise LogError(f"{mapping.source}: torque_used: {UnknownNameError('joint', name, robot.joint_names)}")
    in_amperes = layout.torque_kind == "current" and not mapping.torque_constants
    return {
        "source": table.path,
        "rows": [int(table.row_numbers[0]), int(table.row_numbers[-1])],
        "mapping": mapping.plain(),
        "start_time": origin,
        "period": clock.period,
        "torque_kind": "current" if in_amperes else "none" if layout.torque_kind == "none" else "torque",
        "torque_from": layout.torque_kind,
        "columns": {signal: list(names) for signal, names in layout.columns.items()},
        "gravity": None if mapping.gravity is None else list(mapping.gravity),
        "torque_used": None if mapping.torque_used is None else list(mapping.torque_used),
        "coupling": {
            "joints": list(layout.joints),
            "motors": list(mapping.motors),
            "matrix": mapping.plain().get("coupling"),
        },
    }


def _odd_torques(tau: Array | None, robot: Robot) -> list[Finding]:
    if tau is None:
        return []
    zero = [name for name, column in zip(robot.joint_names, tau.T, strict=True) if not column.any()]
    if not zero:
        return []
    whose = "every joint" if len(zero) == robot.dof else f"joint {', '.join(zero)}"
    return [Finding("zero_torque", "warning", f"The torque of {whose} is zero in every sample.", count=len(zero))]
