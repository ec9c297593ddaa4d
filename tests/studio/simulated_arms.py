"""Folders with a small simulated arm: a project file, and two logs, sound or with planted mistakes; and who visits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from check.checked_logs import clean, column, spoiled

from steelyard.signals.log import Log
from steelyard.studio.aside import AsideProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.place import StudioFolder
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Standing

ROBOT = "rotradi"
Result = TypeVar("Result")
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


def run_apart(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What a `coroutine` gives; in a thread of its own, since a browser's loop may run in this one."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, coroutine).result()


class Visitor:
    """Opens a stage of a folder and presses its buttons, without a server."""

    def __init__(self, folder: Path, stage: str) -> None:
        place = StudioFolder(folder)
        place.touch()  # somebody who has sent a form here before
        self.desk, self.stage = Desk(place, Jobs(place), AsideProcess(place)), STUDIO_STAGES[stage]

    def body(self, *query: tuple[str, str]) -> str:
        """What the stage shows, as text would be read from its HTML."""
        return unescape(run_apart(self.stage.body(self.desk, Sent(list(query)))))

    def standing(self) -> Standing:
        return run_apart(self.stage.standing(self.desk))

    def press(self, action: str, **fields: str) -> None:
        run_apart(self.stage.actions()[action](self.desk, Sent(list(fields.items()))))  # type: ignore[arg-type]

    def wait(self) -> None:
        """Until no job is at work."""
        end = time.monotonic() + 60.0
        while any(job.live for job in self.desk.jobs.all()):
            self.desk.jobs.step()
            assert time.monotonic() < end
            time.sleep(0.05)

    def leave(self) -> None:
        for job in self.desk.jobs.all():
            self.desk.jobs.cancel(job.id)
        self.wait()
        self.desk.aside.close()
