"""Folders with a small simulated arm: a project file, and two logs, sound or with planted mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from check.checked_logs import clean, column, spoiled

from steelyard.signals.log import Log

ROBOT, JOINTS = "rotradi", ("q1", "q2", "q3")
PROJECT = """# of a test
robot = "rotradi"
runs = "runs"

[logs]
identify = ["logs/a.csv"]
"""


def wrong_sign(log: Log) -> Log:
    """The torque of q2 has the wrong sign."""
    return spoiled(log, tau=column(log.tau, 1, np.negative))


def wrong_unit(log: Log) -> Log:
    """The velocity of q1 is in degrees per second."""
    return spoiled(log, dq=column(log.dq, 0, np.degrees))


def arm_folder(folder: Path, *mistakes: object, judged: bool = False) -> Path:
    """Make `folder` a project with the log logs/a.csv, and logs/b.csv to judge by, spoiled by `mistakes`."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate("ab" if judged else "a"):
        log = clean(ROBOT, seed)
        for mistake in mistakes:
            log = mistake(log)  # type: ignore[operator]
        log.save(folder / "logs" / f"{name}.csv")
    (folder / "steelyard.toml").write_text(PROJECT + ('validate = ["logs/b.csv"]\n' if judged else ""), "utf-8")
    return folder
