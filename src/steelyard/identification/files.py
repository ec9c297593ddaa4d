"""`identify` from files: read the logs, hold parts of them back, identify."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.assessment.holdout import keep_blocks, keep_last
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import one_blas_thread
from steelyard.ground.renamed import renamed
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify
from steelyard.robot.robot import Robot
from steelyard.signals.between import as_torque_between
from steelyard.signals.excerpt import average_periods
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, as_velocity
from steelyard.signals.source import LogFile, Source, open_log


@renamed(cutoff="cutoff_hz", score_cutoff="score_cutoff_hz")
def identify_files(
    robot: Robot,
    logs: Sequence[Path],
    validate: Sequence[Path] = (),
    *,
    mapping: str | None = None,
    holdout: float | None = None,
    holdout_blocks: str = "",
    cutoff_hz: float | None = None,
    velocity: str = "auto",
    mask: float = 0.0,
    delay: float | None = None,
    torque_between: str = "auto",
    period: float | None = None,
    **options: Any,
) -> Identification:
    """Identify `robot` from log files; `options` are those of `identify`.

    Args:
        robot: the robot.
        logs: files to identify from.
        validate: files to judge by.
        mapping: what their columns mean: a mapping file; None: they are recognised.
        holdout: keeps the last share of each log to judge by.
        holdout_blocks: "seconds:every" keeps every so many-th block.
        cutoff_hz: of the low-pass, Hz; None: by the rule.
        velocity: "measured", "differentiated" (from the positions), or "auto": the better one.
        mask: rows of joints slower than this, rad/s (m/s), do not count.
        delay: how far the torques lag behind the positions, s; None: as the logs show it.
        torque_between: how the torque runs between samples: "held", "sampled", "averaged", or "auto": the logs tell.
        period: of a periodic motion, s: averages the identification logs over their periods.
    """
    if holdout is not None and holdout_blocks:
        raise SteelyardError("--holdout and --holdout-blocks exclude each other; choose one.")
    _refuse_copies(logs, validate)
    judged: list[Source] = [open_log(path, robot, mapping) for path in validate]
    names, judged_names = [p.stem for p in logs], [p.stem for p in validate]
    used: list[Source] = []
    if holdout is None and not holdout_blocks:
        used = [open_log(path, robot, mapping) for path in logs]
    else:
        files = [LogFile(path, robot, mapping) for path in logs]
        # Periods are averaged in memory.
        pairs = [_held_back(file, holdout, holdout_blocks, file.is_long and period is None) for file in files]
        used = [a for a, _ in pairs]
        judged = [*judged, *(b for _, b in pairs)]
        judged_names += [f"{p.stem}, held back" for p in logs]
    if period is not None:
        used = [_averaged(log, period) for log in used]
    with one_blas_thread():  # all products are small, and a second thread would only spin
        return identify(
            robot,
            used,
            judged,
            preparation=Preparation(
                cutoff_hz=cutoff_hz,
                velocity=as_velocity(velocity),
                mask=mask,
                delay=delay,
                torque_between=as_torque_between(torque_between),
            ),
            names=names,
            validate_names=judged_names,
            **options,
        )


def _refuse_copies(logs: Sequence[Path], validate: Sequence[Path]) -> None:
    """A file that is fitted to judges nothing, by whatever name it comes again."""
    for judge in validate:
        for log in logs:
            # Compared byte by byte only where the sizes agree.
            if judge.is_file() and log.is_file() and filecmp.cmp(judge, log, shallow=False):
                raise SteelyardError(
                    f"{judge}: this is the log '{log.name}' that is fitted to, and judges nothing; give --validate "
                    "another one, or keep a part of it back with --holdout 0.3."
                )


def _averaged(log: Source, period: float) -> Log:
    if not isinstance(log, Log):
        raise SteelyardError(f"{log.path}: too long to be averaged over periods; cut it by a window.")
    return average_periods(log, period)


def _held_back(file: LogFile, share: float | None, blocks: str, streamed: bool) -> tuple[Source, Source]:
    if share is not None:
        # Split before it is read, in memory or not: what is wrong with the last part is not mended in the first.
        first, last = keep_last(file, share)
        return (first, last) if streamed else (first.in_memory(), last.in_memory())
    log = file if streamed else file.in_memory()
    seconds, _, every = blocks.partition(":")
    try:
        return keep_blocks(log, float(seconds), int(every))
    except ValueError:
        raise SteelyardError(f"--holdout-blocks is '{blocks}'; give seconds:every, such as 0.5:3.") from None
