"""What next: the commands that follow from what an identification found, filled in as far as the run knows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steelyard.ground.repeat import repeat_command
from steelyard.identification.identification import Identification
from steelyard.report.elements import commands, join, paragraph
from steelyard.report.html import Section

# Part of the base parameters that may stay unknown before another motion is worth its while.
_UNKNOWN = 0.1


def next_section(found: Identification, inputs: Sequence[Path] = ()) -> Section:
    """Commands for whoever has read the page of what was `found` from `inputs`: the robot's file, logs and more."""
    robot, logs, mapped = _names(found, inputs)
    first = shlex.quote(shlex.split(logs)[0])
    pairs: list[tuple[str, str]] = []
    errors = found.estimate.standard_errors
    unknown = int(np.sum(np.abs(found.estimate.beta) <= 2.0 * errors))
    if any(check.grade in ("mend", "unusable") for _, check in found.checks):
        pairs.append(("The logs need mending first:", f"steelyard check {robot} {logs}{mapped} --fix mended.toml"))
    if unknown > _UNKNOWN * found.base.rank:
        given = " ".join(f"--given {shlex.quote(log)}" for log in shlex.split(logs))
        pairs.append(
            (
                f"{unknown} of {found.base.rank} parameters cannot be told from zero. A motion for what these logs "
                "leave unknown (add the limits of your cell: --q, --dq, --box, --floor):",
                f"steelyard excite {robot} {given}{mapped} -o motion",
            )
        )
        pairs.append(("Before anyone moves hardware:", f"steelyard rehearse {robot} motion -o rehearsal"))
    if not found.validation:
        pairs.append(
            (
                "No other data judged this model. With another log, or without one:",
                f"steelyard identify {robot} {logs}{mapped} --holdout 0.3 -o judged",
            )
        )
    pairs += [
        ("Which estimator does best on a log:", f"steelyard compare estimators {robot} {first}{mapped} -o compared"),
        ("Torques of tomorrow's log, with this model:", f"steelyard predict RUN TOMORROW.csv{mapped} -o torques"),
        ("What the robot carries:", f"steelyard payload {robot} --arm RUN --with LOADED.csv{mapped} -o load"),
        ("C code for a controller:", "steelyard export RUN --to c -o controller"),
    ]
    said = "Commands to copy; names of files are as they were typed, words in capitals are yours to fill in."
    return Section("What next", join(paragraph(said), commands(*pairs)))


def _names(found: Identification, inputs: Sequence[Path]) -> tuple[str, str, str]:
    """The robot, the logs that were fitted to, and the option for their mapping, as words of a command."""
    by_name = {path.stem: path for path in inputs[1:]}
    robot = str(inputs[0]) if inputs else "ROBOT"
    logs = [by_name.get(score.log) for score in found.identification]
    words = shlex.split(repeat_command())
    mapping = words[words.index("--map") + 1] if "--map" in words[:-1] else ""
    fitted = " ".join("LOG" if path is None else shlex.quote(str(path)) for path in logs)
    return shlex.quote(robot), fitted, f" --map {shlex.quote(mapping)}" if mapping else ""
