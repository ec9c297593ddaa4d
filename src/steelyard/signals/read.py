"""`read_log`: a log of a robot from any file that holds one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError, ShapeError, UnknownNameError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.clock import Clock, mend_clock
from steelyard.signals.convert import joint_signals, seconds
from steelyard.signals.layout import Layout, find_layout
from steelyard.signals.log import Finding, Log
from steelyard.signals.mapping import LogMapping, Window, as_mapping
from steelyard.signals.table import Table, column_names, count_rows, read_table

# A robot is sampled neither once in ten seconds nor every hundred nanoseconds; such a clock is in another unit.
SLOWEST, FASTEST = 10.0, 1e-7

AnyMapping = LogMapping | Mapping[str, Any] | str | os.PathLike[str] | None


def read_log(path: str | os.PathLike[str], robot: Robot, mapping: AnyMapping = None, rows: Window | None = None) -> Log:
    """The log of a robot's motion: SI units, joint side, joints in the robot's order, one clock.

    Args:
        path: .csv .tsv .txt, .parquet, .npz, .mcap, or rosbag2 (folder or .db3).
        robot: whose log it is; the log may hold more joints, which are ignored, but not fewer.
        mapping: what the columns mean: a TOML, JSON or YAML file, the same as a dict, or a `LogMapping`. What it
            leaves open is recognised by name.
        rows: first and last row to read, from 1; default: the mapping's window, else all.

    `meta` says where the log comes from (`source`, `rows`, `mapping`, `start_time` of the file's clock at t = 0 in the
    file's unit), what the owner said about the robot (`gravity`, `torque_used`, for the caller to apply) and what tau
    is (`torque_kind`: "torque", "current" if it is in A for want of constants, or "none"). `findings` tell what was
    mended or looks odd.
    """
    known = as_mapping(mapping)
    try:
        table, layout = mapped_table(Path(path), robot, known, rows)
        t, origin = clock_times(table, layout, known)
        return assemble(table, layout, robot, known, t, origin)
    except (LogError, ShapeError) as error:
        raise placed(error, path, known) from None


def mapped_table(path: Path, robot: Robot, mapping: LogMapping, rows: Window | None) -> tuple[Table, Layout]:
    """The rows and columns that matter, and what they are."""
    names = column_names(path)
    window = rows or mapping.window_of(path)
    if names is not None:
        layout = find_layout(names, (), robot, mapping)
        start, stop = row_range(window, count_rows(path))
        return read_table(path, layout.names, start, stop), layout
    table = read_table(path, topic=mapping.topic)
    layout = find_layout(table.names, table.joints, robot, mapping)
    return present_rows(table.rows(*row_range(window, len(table))), layout), layout


def row_range(window: Window | None, count: int) -> tuple[int, int]:
    """The half-open range, from 0, of a window of rows from 1."""
    if window is None:
        return 0, count
    first, last = window
    if not 1 <= first <= last:
        raise LogError(f"the window [{first}, {last}] is not a range of rows; the first row is 1.")
    if last > count:
        raise LogError(f"the window [{first}, {last}] ends after the last row, {count}.")
    return first - 1, last


def present_rows(table: Table, layout: Layout) -> Table:
    """Of a sparse table, the rows that concern this robot at all; the other messages are about other joints."""
    if not table.sparse:
        return table
    joints = [table.column(name) for names in layout.columns.values() for name in names]
    present = ~np.all([np.isnan(column) for column in joints], axis=0)
    if present.all():
        return table
    columns = {name: column[present] for name, column in table.columns.items()}
    remark = f"{int((~present).sum())} messages are about other joints; left out."
    return Table(table.path, columns, table.first_row, table.joints, remarks=(*table.remarks, remark))


def clock_times(
    table: Table, layout: Layout, mapping: LogMapping, origin: float | int | None = None
) -> tuple[Array, float | int]:
    """Time of every row, s, and the file's clock at zero."""
    if layout.time is not None:
        return seconds(table, layout.time, mapping, origin)
    if mapping.rate is None:
        raise LogError("there is neither a time column nor a rate.")
    return (np.arange(len(table)) + (table.first_row - 1)) / mapping.rate, 0


def assemble(
    table: Table,
    layout: Layout,
    robot: Robot,
    mapping: LogMapping,
    t: Array,
    origin: float | int,
    own: tuple[int, int] | None = None,
) -> Log:
    """The log of a table whose columns are known: mended clock, signals, findings.

    `own` tells which rows of the table are its own, the others being overlap; `meta["core"]` then tells which samples.
    """
    clock = mend_clock(t, first_row=table.first_row, gap=mapping.gap)
    if not FASTEST <= clock.period <= SLOWEST:
        raise LogError(
            f'the clock steps by {clock.period:g} s; state the unit of the time in the mapping, e.g. units.time = "ns".'
        )
    signals = joint_signals(table, layout, mapping, robot)
    channels = _channels(table, layout, mapping)
    if not np.array_equal(clock.order, np.arange(len(table))):
        signals = {name: x[clock.order] for name, x in signals.items()}
        channels = {name: x[clock.order] for name, x in channels.items()}
    meta = _meta(table, layout, robot, mapping, clock, origin)
    if own is not None:
        # Counted, not looked up: neighbouring chunks then share the samples exactly, even where rows were sorted.
        meta["core"] = [int(np.count_nonzero(clock.order < row)) for row in own]
    findings = [*layout.findings, *(Finding("remark", text) for text in table.remarks), *clock.findings]
    findings += _odd_torques(signals.get("tau"), robot)
    return Log(
        robot.joint_names,
        clock.t,
        **signals,
        meta=meta,
        segments=clock.segments,
        findings=tuple(findings),
        channels=channels,
    )


def _channels(table: Table, layout: Layout, mapping: LogMapping) -> dict[str, Array]:
    """Signals beside the motion. One that nobody asked for, recognised by its name, may have holes: it is left out."""
    out: dict[str, Array] = {}
    for name, columns in layout.channels.items():
        try:
            out[name] = np.stack([table.numbers(column) for column in columns], axis=1)
        except LogError:
            if getattr(mapping, name):
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
        "rows": [table.first_row, table.first_row + len(table) - 1],
        "mapping": mapping.plain(),
        "start_time": origin,
        "period": clock.period,
        "torque_kind": "current" if in_amperes else "none" if layout.torque_kind == "none" else "torque",
        "torque_from": layout.torque_kind,
        "gravity": None if mapping.gravity is None else list(mapping.gravity),
        "torque_used": None if mapping.torque_used is None else list(mapping.torque_used),
        "coupling": {"joints": list(layout.joints), "matrix": mapping.plain().get("coupling")},
    }


def _odd_torques(tau: Array | None, robot: Robot) -> list[Finding]:
    if tau is None:
        return []
    zero = [name for name, column in zip(robot.joint_names, tau.T, strict=True) if not column.any()]
    if not zero:
        return []
    whose = "every joint" if len(zero) == robot.dof else f"joint {', '.join(zero)}"
    return [Finding("zero_torque", f"The torque of {whose} is zero in every sample.", "warning", len(zero))]


def placed(error: Exception, path: str | os.PathLike[str], mapping: LogMapping) -> LogError:
    """The error with the file's name in front, unless it already knows its place."""
    text = str(error)
    known = text.startswith((f"{path}: ", f"{Path(path)}: ", f"{mapping.source}: "))
    return LogError(text if known else f"{path}: {text}")
