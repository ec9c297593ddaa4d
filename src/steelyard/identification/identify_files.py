"""`identify_files`: reads logs, splits off hold-out data and identifies."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.assessment.holdout import split_blocks, split_last
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.verb_options import with_changes
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.identification.identify_options import IdentifyOptions
from steelyard.robot.robot import Robot
from steelyard.signals.excerpt import average_periods
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, Source, open_log


def identify_files(
    robot: Robot,
    logs: Sequence[Path],
    validate: Sequence[Path] = (),
    options: IdentifyOptions | None = None,
    *,
    mapping: str | None = None,
    **changes: Any,
) -> Identification:
    """Identify a robot from log files.

    Args:
        robot: Robot to identify.
        logs: Identification log files.
        validate: Validation log files.
        options: Options of the identification; None: the defaults.
        mapping: Mapping file with the meaning of the columns; None: automatic.
        **changes: Fields of `IdentifyOptions` that replace those of `options`, such as `holdout=0.3`.
    """
    o = with_changes(options or IdentifyOptions(), changes, "identify_files")
    holdout, holdout_blocks, period = o.holdout, o.holdout_blocks, o.period
    if holdout is not None and holdout_blocks:
        raise SteelyardError("--holdout and --holdout-blocks exclude each other; choose one.")
    _refuse_copies(logs, validate)
    validation: list[Source] = [open_log(path, robot, mapping) for path in validate]
    names, validation_names = [p.stem for p in logs], [p.stem for p in validate]
    used: list[Source] = []
    if holdout is None and not holdout_blocks:
        used = [open_log(path, robot, mapping) for path in logs]
    else:
        files = [LogFile(path, robot, mapping) for path in logs]
        # Periods are averaged in memory.
        pairs = [_split(file, holdout, holdout_blocks, file.is_long and period is None) for file in files]
        used = [a for a, _ in pairs]
        validation = [*validation, *(b for _, b in pairs)]
        validation_names += [f"{p.stem}, held out" for p in logs]
    if period is not None:
        used = [_averaged(log, period) for log in used]
    with one_blas_thread():  # The matrices are small; a second thread only adds load.
        return identify(
            robot,
            used,
            validation,
            replace(o, preparation=o.prepared(), period=None, holdout=None, holdout_blocks=""),
            names=names,
            validate_names=validation_names,
        )


def _refuse_copies(logs: Sequence[Path], validate: Sequence[Path]) -> None:
    """Reject validation files that have the same content as an identification file."""
    for path in validate:
        for log in logs:
            if path.is_file() and log.is_file() and filecmp.cmp(path, log, shallow=False):
                raise SteelyardError(
                    f"{path}: this validation log is identical to the identification log '{log.name}'. Give --validate "
                    "another log, or hold out a part of this one with --holdout 0.3."
                )


def _averaged(log: Source, period: float) -> Log:
    if not isinstance(log, Log):
        raise SteelyardError(f"{log.path}: the log is too long for averaging over periods. Cut it by a window.")
    return average_periods(log, period)


def _split(file: LogFile, share: float | None, blocks: str, streamed: bool) -> tuple[Source, Source]:
    if share is not None:
        # Split before reading, so that repairs of one part cannot affect the other.
        first, last = split_last(file, share)
        return (first, last) if streamed else (first.in_memory(), last.in_memory())
    log = file if streamed else file.in_memory()
    seconds, _, every = blocks.partition(":")
    try:
        return split_blocks(log, float(seconds), int(every))
    except ValueError:
        raise SteelyardError(f"--holdout-blocks is '{blocks}'. Give seconds:every, for example 0.5:3.") from None
