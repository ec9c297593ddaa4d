"""SAGE's folders: `control.csv` with commands and `state_motor.csv` with states, each on its own clock."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.actuators.command_columns import CommandColumns, command_unit_size, held
from steelyard.errors import LogError, UnknownNameError, shortened, unfit_for_a_name
from steelyard.ground.untrusted_files import open_regular, read_text

if TYPE_CHECKING:
    from steelyard.ground.arrays import Array

_CONTROL, _STATE, _JOINTS, _EVENTS = "control.csv", "state_motor.csv", "joint_list.txt", "event.csv"
# An hour of a whole humanoid at 200 Hz; a cell contains one vector of all joints.
_MOST_ROWS, _LONGEST_CELL, _MOST_JOINTS = 1_000_000, 16_384, 256
# Median steps [unit of the file] that separate clocks in s, ms and µs, for samples between 5 kHz and 2 Hz.
_SECONDS_BELOW, _MICROSECONDS_FROM = 0.5, 200.0


def is_sage(path: Path) -> bool:
    """Whether the folder `path` is one run of SAGE."""
    return (path / _CONTROL).is_file() and (path / _STATE).is_file()


def read_sage(path: Path, joint: str | None = None, position_unit: str = "rad") -> CommandColumns:
    """Read one joint of a SAGE folder; a command is constant until the next one.

    Args:
        path: Folder.
        joint: Name of the joint; default: the only one.
        position_unit: Unit of the positions; velocities have this unit per second.
    """
    state_time, state = _vectors(path / _STATE, ("positions",), ("velocities", "torques", "currents"))
    command_time, command = _vectors(path / _CONTROL, ("positions",), ())
    names = _joint_names(path / _JOINTS, state["positions"].shape[1])
    k = _chosen(path, joint, names)
    size = command_unit_size("position", position_unit)
    scale = _clock_scale(state_time)
    first = min(state_time[0], command_time[0])
    time, sent = (state_time - first) * scale, (command_time - first) * scale
    overlap = min(time[-1], sent[-1]) - max(time[0], sent[0])
    if overlap < 0.5 * min(np.ptp(time), np.ptp(sent)):
        raise LogError(
            f"{path}: {_CONTROL} and {_STATE} hardly overlap in time, so they have two clocks; record both on one."
        )
    goal = held(sent, command["positions"][:, k], time) * size
    inside = time >= sent[0]
    begin, end = _window(path / _EVENTS, first, scale)
    inside &= (time >= begin) & (time <= end)
    if not inside.any():
        raise LogError(f"{path}: no state is between the events MOTION_START and DISABLE of {_EVENTS}; remove it.")

    def part(name: str, factor: float) -> Array | None:
        values = state.get(name)
        return None if values is None else np.asarray(values[inside, k] * factor)

    position = state["positions"][inside, k] * size
    return CommandColumns(
        str(path), names[k], time[inside], goal[inside], position, part("velocities", size),
        torque=part("torques", 1.0), current=part("currents", 1.0),
    )  # fmt: skip


def _chosen(path: Path, joint: str | None, names: Sequence[str]) -> int:
    if joint is None:
        if len(names) > 1:
            raise LogError(f"{path}: has {len(names)} joints; name one: {shortened(', '.join(names), 200)}.")
        return 0
    if joint not in names:
        raise UnknownNameError("joint", joint, names)
    return list(names).index(joint)


def _joint_names(path: Path, width: int) -> list[str]:
    if not path.exists():
        return [f"joint{k + 1}" for k in range(width)]
    names = [line.strip() for line in read_text(path, 1 << 20, LogError).splitlines() if line.strip()]
    if len(names) != width:
        raise LogError(f"{path}: names {len(names)} joints, but the vectors of {_STATE} have {width} entries.")
    for name in names:
        if problem := unfit_for_a_name(name):
            raise LogError(f"{path}: the name of a joint {problem}; rename it.")
    return names


def _clock_scale(time: Array) -> float:
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    return 1.0 if step < _SECONDS_BELOW else 1e-6 if step >= _MICROSECONDS_FROM else 1e-3


def _window(path: Path, first: float, scale: float) -> tuple[float, float]:
    """Begin and end [s] of the motion, from the recorder's events."""
    begin, end = -np.inf, np.inf
    if path.exists():
        for row, cells in _rows(path):
            event = cells.get("event", "").strip().upper()
            if event in ("MOTION_START", "DISABLE"):
                time = (_number(path, row, "timestamp", cells.get("timestamp", "")) - first) * scale
                begin, end = (time, end) if event == "MOTION_START" else (begin, time)
    return begin, end


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with their numbers from 1, without the header."""
    with open_regular(path, LogError) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as file:
        try:
            lines = csv.reader(_short_lines(path, file))
            heads = [cell.strip() for cell in next(lines, [])]
            for row, cells in enumerate(lines, start=1):
                if row > _MOST_ROWS:
                    raise LogError(f"{path}: has more than {_MOST_ROWS} rows; use one folder per run.")
                if cells:
                    yield row, dict(zip(heads, cells, strict=False))
        except (csv.Error, UnicodeDecodeError) as why:
            raise LogError(f"{path}: is not a readable CSV file ({why}); export it again.") from None


def _short_lines(path: Path, file: io.TextIOWrapper) -> Iterator[str]:
    longest = 8 * _LONGEST_CELL
    while line := file.readline(longest + 1):
        if len(line) > longest:
            raise LogError(f"{path}: has a line of more than {longest} characters; is it a log?")
        yield line


def _vectors(path: Path, needed: Sequence[str], optional: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    """Times and vectors of a CSV file; only rows with the type of the first row are read."""
    times: list[float] = []
    vectors: dict[str, list[list[float]]] = {}
    kind: str | None = None
    for row, cells in _rows(path):
        if kind is None:
            kind = cells.get("type", "")
            for name in ("timestamp", *needed):
                if name not in cells:
                    raise LogError(f"{path}: has no column '{name}', which every {path.name} of SAGE has.")
            vectors = {name: [] for name in (*needed, *optional) if cells.get(name, "").strip(" []()")}
        if cells.get("type", "") != kind:
            continue
        times.append(_number(path, row, "timestamp", cells.get("timestamp", "")))
        for name, values in vectors.items():
            values.append(_vector(path, row, name, cells.get(name, "")))
    if len(times) < 2:
        raise LogError(f"{path}: has {len(times)} samples; is the recording complete?")
    time = np.array(times)
    if np.any(np.diff(time) < 0.0):
        row = int(np.argmax(np.diff(time) < 0.0)) + 2
        raise LogError(f"{path}: row {row}: the clock steps back; use one folder per run.")
    last = np.append(np.diff(time) > 0.0, True)  # the last one of several rows with the same time stamp
    out: dict[str, Array] = {}
    width = len(vectors[needed[0]][0])
    for name, values in vectors.items():
        lengths = {len(v) for v in values}
        if lengths == {width}:
            out[name] = np.array(values)[last]
        elif name in needed:
            raise LogError(f"{path}: the vectors of '{name}' have {min(lengths)} to {max(lengths)} entries.")
    return time[last], out


def _vector(path: Path, row: int, name: str, cell: str) -> list[float]:
    inside = cell.strip().strip("[]()").replace(",", " ").split()
    if not inside or len(inside) > _MOST_JOINTS:
        raise LogError(f"{path}: row {row}, column '{name}': {len(inside)} numbers; write [x, y, …].")
    return [_number(path, row, name, text) for text in inside]


def _number(path: Path, row: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise LogError(f"{path}: row {row}, column '{name}': '{shortened(text, 30)}' is not a number.") from None
    if not abs(value) < 1e18:  # microseconds since 1970 have 16 digits
        raise LogError(f"{path}: row {row}, column '{name}': '{shortened(text, 30)}' is not a finite number.")
    return value
