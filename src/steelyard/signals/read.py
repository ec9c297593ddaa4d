"""`read_log`: a log of a robot from any file that holds one, whole or in pieces."""

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
from steelyard.signals._clock import Clock, mend_clock
from steelyard.signals._convert import joint_signals, seconds, side_by_side
from steelyard.signals._layout import Layout, find_layout
from steelyard.signals.held import reader_of
from steelyard.signals.log import Finding, Log, Severity
from steelyard.signals.mapping import LogMapping, as_mapping
from steelyard.signals.presets import with_preset
from steelyard.signals.repeats import without_repeats
from steelyard.signals.saved import load_log, placed
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

# A robot is sampled neither once in ten seconds nor every hundred nanoseconds; such a clock is in another unit.
SLOWEST, FASTEST = 10.0, 1e-7

__all__ = ["load_log", "log_chunks", "read_log"]

AnyFile = str | os.PathLike[str] | RemoteFile | LogReader | Any
RowRange = tuple[int, int | None]  # a window that may be open to the end
AnyMapping = LogMapping | Mapping[str, Any] | str | os.PathLike[str] | None


def read_log(
    path: AnyFile,
    robot: RobotLike,
    mapping: AnyMapping = None,
    rows: RowRange | None = None,
    start_time: float | int | None = None,
) -> Log:
    """The log of a robot's motion: SI units, joint side, joints in the robot's order, one clock.

    Args:
        path: a file of any format in `steelyard.signals.table.READERS`: .csv, .parquet, .npz, .mcap, rosbag2, …;
            or the URL of one, such as s3://bucket/run.parquet;
            or its reader, if it is open already; or a frame (pandas, polars, xarray, Arrow) or a dict of arrays.
        robot: whose log it is, as `load_robot` takes it; the log may hold more joints, which are ignored, not fewer.
        mapping: what the columns mean: a TOML, JSON or YAML file, the same as a dict, or a `LogMapping`. What it
            leaves open is recognised by name.
        rows: first and last row to read, from 1 (None for the last: to the end); default: the mapping's window, else
            all.
        start_time: what the file's clock shows at t = 0, in the file's unit; default: what it shows in the first of
            these rows, where it counts from some distant day, else zero.

    `meta` says where the log comes from (`source`, `rows`, `mapping`, `start_time` of the file's clock at t = 0 in the
    file's unit), what the owner said about the robot (`gravity`, `torque_used`, for the caller to apply) and what tau
    is (`torque_kind`: "torque", "current" if it is in A for want of constants, or "none"). `findings` tell what was
    mended or looks odd.
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
    """The log in pieces, of which little more than one is held, whatever the file's size.

    Each log's meta says which rows of the file it holds (`rows`, from 1, overlap included), which of its samples are
    its own (`core`, half-open) and whether it is the `last`; what is their own is, one after the other, the whole log.
    Every piece's clock is mended by itself: rows are not sorted from one piece to another, and times after a reset go
    on only within the piece.

    Args:
        path: the file, as in `read_log`.
        robot: whose log it is, as in `read_log`.
        mapping: what the columns mean, as in `read_log`.
        size: rows of a piece; the last has up to half as many more.
        overlap: further rows on either side of a piece, which it shares with its neighbours.
        rows: first and last row, from 1, as in `read_log`.
        start_time: as in `read_log`.
    """
    if size < 100 or not 0 <= overlap <= size:
        raise LogError(f"Chunks need a size of at least 100 and an overlap of 0 to the size, not {size} and {overlap}.")
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
    """The one road from a file to logs: the whole as one, or pieces of `size` rows."""
    if not isinstance(path, str | os.PathLike | RemoteFile | LogReader):
        path = reader_of(path)
    source = path.path if isinstance(path, LogReader) else any_path(path)
    try:
        reader = path if isinstance(path, LogReader) else open_reader(path, mapping.part)
        mapping = with_preset(mapping, reader.names, robot.joint_names)
        layout = find_layout(reader.names, reader.joints, robot, mapping)
        start, stop = _row_range(rows or mapping.window_of(source), reader.row_count)
        blocks = _windowed(reader, layout.names, start, stop)
        for first, some, own, last in _pieces(blocks, None if stop is None else stop - start, size, overlap):
            table, own = _usable_rows(reader.table(layout.names, some, start + first), layout, mapping, own)
            del some  # or it would live on beside the signals made of it
            t, origin = _clock_times(table, layout, mapping, origin)
            log = _assemble(table, layout, robot, mapping, t, origin, None if size is None else (own, last))
            del table, t
            yield log
            del log
    except (LogError, ShapeError) as error:
        raise placed(error, source, mapping.source) from None


def _windowed(reader: LogReader, names: tuple[str, ...], start: int, stop: int | None) -> Iterator[TableBlock]:
    """The rows start to stop; a file that ends before is an error."""
    seen = start
    for block in first_rows(reader.blocks(names, start), None if stop is None else stop - start):
        yield block
        seen += block_length(block)
    if stop is not None and seen < stop:
        _row_range((start + 1, stop), count_rows(reader.path, topic=reader.topic))


def _pieces(
    blocks: Iterable[TableBlock], total: int | None, size: int | None, overlap: int
) -> Iterator[tuple[int, tuple[TableBlock, ...], tuple[int, int], bool]]:
    """Rows shared out: each piece's first row (from 0), its blocks, which rows in it are its own, whether it is last.

    A remainder of less than half a piece belongs to the last. Where the `total` number of rows is not known, that is
    seen by reading half a piece ahead.
    """
    if size is None:
        whole = tuple(blocks)
        yield 0, whole, (0, sum(block_length(block) for block in whole)), True
        return
    stream, held = iter(blocks), list[TableBlock]()
    core, low, high = 0, 0, 0  # where this piece begins; from where to where rows are held
    while total is None or core < total:
        ahead = size + max(overlap, size // 2 + 1 if total is None else 0)
        wanted = total if total is not None and is_last(total - core, size) else core + ahead
        while high < wanted:
            block = next(stream, None)
            if block is None:
                total = high
                break
            held.append(block)
            high += block_length(block)
        end = total if total is not None and is_last(total - core, size) else core + size
        first, last = max(0, core - overlap), min(high, end + overlap)
        piece = first, tuple(cut_blocks(held, first - low, last - low)), (core - first, end - first), end == total
        core = end
        while held and low + block_length(held[0]) <= core - overlap:
            low += block_length(held.pop(0))
        yield piece
        del piece


def is_last(rows: int, size: int) -> bool:
    """Whether so many remaining `rows` make one piece, where pieces have `size` rows: the last has up to half more."""
    return rows <= 1.5 * size


def _row_range(window: RowRange | None, count: int | None) -> tuple[int, int | None]:
    """The half-open range, from 0, of a window of rows from 1; None where the end is not known."""
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
    """The rows that concern this robot and, if the mapping says so, lack nothing; which of them are a piece's own."""
    left_out = np.zeros(len(table), dtype=bool)
    motion = [name for names in layout.columns.values() for name in names]
    if table.sparse:
        absent = np.all([_missing(table.column(name)) for name in motion], axis=0)
        if absent.any():
            others = int(absent.sum())
            finding = Finding("remark", "note", f"{others} rows concern other things; left out.", count=others)
            left_out[:] = absent
            table = table.without(absent, finding)
    if mapping.nan_rows == "drop":
        used = [*motion, *([layout.time] if layout.time else [])]
        used += [name for channel, names in layout.channels.items() if getattr(mapping, channel, ()) for name in names]
        holes = np.any([_missing(table.column(name)) for name in used], axis=0)
        if holes.any():
            count, row = int(holes.sum()), int(table.row_numbers[int(np.argmax(holes))])
            message = f"{count} rows hold NaN or an empty cell, the first is row {row}; left out, as nan_rows says."
            severity: Severity = "warning" if count > 0.01 * len(holes) else "note"
            left_out[~left_out] |= holes
            table = table.without(holes, Finding("nan_rows", severity, message, count=count, row=row))
    first, last = (row - int(np.count_nonzero(left_out[:row])) for row in own)
    return table, (first, last)


def _missing(column: ColumnValues) -> NDArray[np.bool_]:
    """Where a column has no finite number; text that may be one is not looked at here."""
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
    """Time of every row, s, and the file's clock at zero."""
    if layout.time is not None:
        return seconds(table, layout.time, mapping, origin)
    if mapping.rate is None:
        raise LogError("there is neither a time column nor a rate.")
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
    """The log of a table whose columns are known: mended clock, signals, findings.

    Of a `piece`: which rows of the table are its own, the others being overlap (`meta["core"]` then tells which
    samples), and whether it is the last.
    """
    clock = mend_clock(t, numbers=table.row_numbers, gap=mapping.gap)
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
        # Counted, not looked up: neighbouring chunks then share the samples exactly, even where rows were sorted.
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
    """Signals beside the motion. One that nobody asked for, recognised by its name, may have holes: it is left out."""
    out: dict[str, Array] = {}
    for name, columns in layout.channels.items():
        try:
            out[name] = side_by_side(table, columns)
        except LogError:
            if getattr(mapping, name, None):
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
