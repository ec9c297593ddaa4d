"""Guess the mapping of a log from names, numbers and the model of the robot."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from steelyard.check.check import check_log
from steelyard.check.columns import ROWS_LOOKED_AT, guess_columns
from steelyard.check.guessed_mapping import Guess, GuessedMapping, Lacking
from steelyard.check.repair_mapping import repair_mapping
from steelyard.errors import SteelyardError
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import LogLike
from steelyard.signals.in_memory import memory_reader
from steelyard.signals.mapping import LogMapping
from steelyard.signals.read import read_log
from steelyard.signals.table import LogReader, open_reader


def guess_mapping(
    log: LogLike | LogReader, robot: RobotLike | None = None, preset: str | None = None
) -> GuessedMapping:
    """Guess the mapping of a log: meaning, unit and side of every column, with the evidence.

    Names and numbers give most of it. With a robot, the log is also checked (`check_log`), and the guess includes the
    fixes of signs, zeros, exchanged columns and the unit of the clock.

    Args:
        log: File of any format, its reader, a frame, or a dict of arrays.
        robot: Robot of the log, as `load_robot` takes it; None: joints are called joint1, joint2, …, and only names
            and numbers are used.
        preset: Key of `steelyard.signals.presets`, the recorder of the log (default: the first that fits, if any).
    """
    robot = None if robot is None else as_robot(robot)
    if isinstance(log, str | os.PathLike):
        reader = open_reader(log)
    else:
        reader = log if isinstance(log, LogReader) else memory_reader(log)
    guessed = guess_columns(reader, robot, preset)
    if robot is None or not robot.inertial_parameters.any():
        return guessed
    try:
        most = min(ROWS_LOOKED_AT, reader.row_count or ROWS_LOOKED_AT)
        rows = (1, most) if reader.row_count is not None else None
        read = read_log(reader, robot, guessed.mapping, rows)
        found = check_log(robot, read)
    except SteelyardError as error:
        return replace(
            guessed, missing=(*guessed.missing, Lacking(f"with this mapping the log cannot be read: {error}"))
        )
    keys, _ = repair_mapping(found, robot, read, guessed.keys)  # `steelyard check` reports the rest
    before = dict(guessed.keys)
    changed = {key: before.get(key) for key in keys if keys[key] != before.get(key)}
    if not changed or not _holds(keys):
        return guessed
    why = " ".join(dict.fromkeys(entry.message for entry in found.complaints if entry.fix))
    choices: dict[str, dict[str, Any]] = {
        "use the value of the robot's model": {},
        "keep the value of the log": changed,
    }
    asked = Guess(
        ", ".join(changed), (), "", why, f"The robot's model suggests another {', '.join(changed)}. Use it?", choices
    )
    return replace(guessed, keys=keys, guesses=(*guessed.guesses, asked))


def _holds(keys: dict[str, Any]) -> bool:
    try:
        LogMapping.from_table(keys)
    except SteelyardError:
        return False
    return True
