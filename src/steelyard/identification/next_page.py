"""Suggests the next commands after an identification, with the file names of the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.ground.repeat import repeat_command
from steelyard.identification.identification import Identification
from steelyard.report.elements import commands, join, paragraph
from steelyard.report.html import Section

# A new motion is suggested if the share of insignificant base parameters exceeds this.
_INSIGNIFICANT_SHARE = 0.1


def next_section(result: Identification, inputs: Sequence[Path] = ()) -> Section:
    """List commands that are useful after this identification.

    Args:
        result: Identification of the report.
        inputs: Robot file, logs and other files of the run, in this order.
    """
    robot, logs, mapped = _names(result, inputs)
    first = shlex.quote(shlex.split(logs)[0])
    pairs: list[tuple[str, str]] = []
    errors = result.estimate.standard_errors
    small = int(np.sum(np.abs(result.estimate.beta) <= 2.0 * errors))
    if any(check.grade in ("mend", "unusable") for _, check in result.checks):
        pairs.append(("Fix the logs first:", f"steelyard check {robot} {logs}{mapped} --fix mended.toml"))
    if small > _INSIGNIFICANT_SHARE * result.base.rank:
        logs_option = " ".join(f"--given {shlex.quote(log)}" for log in shlex.split(logs))
        pairs.append(
            (
                f"{small} of {result.base.rank} base parameters are too small to measure with these logs. Design a "
                "motion that excites them (add the limits of your cell: --q, --dq, --box, --floor):",
                f"steelyard excite {robot} {logs_option}{mapped} -o motion",
            )
        )
        pairs.append(
            ("Simulate the motion before you run it on the robot:", f"steelyard rehearse {robot} motion -o rehearsal")
        )
    if not result.validation:
        pairs.append(
            (
                "This model has no validation data. Hold out a part of the log, or give another log with --validate:",
                f"steelyard identify {robot} {logs}{mapped} --holdout 0.3 -o judged",
            )
        )
    pairs += [
        ("Compare estimators on a log:", f"steelyard compare estimators {robot} {first}{mapped} -o compared"),
        ("Predict the torques of a new log:", f"steelyard predict RUN TOMORROW.csv{mapped} -o torques"),
        ("Identify the payload:", f"steelyard payload {robot} --arm RUN --with LOADED.csv{mapped} -o load"),
        ("Export C code for a controller:", "steelyard export RUN --to c -o controller"),
    ]
    note = "Copy a command and replace the words in capital letters."
    return Section("What next", join(paragraph(note), commands(*pairs)))


def _names(result: Identification, inputs: Sequence[Path]) -> tuple[str, str, str]:
    """Return the robot, the fitted logs and the mapping option as words of a command."""
    by_name = {path.stem: path for path in inputs[1:]}
    robot = str(inputs[0]) if inputs else "ROBOT"
    logs = [by_name.get(score.log) for score in result.identification]
    words = shlex.split(repeat_command())
    mapping = words[words.index("--map") + 1] if "--map" in words[:-1] else ""
    fitted = " ".join("LOG" if path is None else shlex.quote(str(path)) for path in logs)
    return shlex.quote(robot), fitted, f" --map {shlex.quote(mapping)}" if mapping else ""
