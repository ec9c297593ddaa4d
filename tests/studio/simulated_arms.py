"""Projects of a small simulated arm whose logs may have mistakes, and a client for one stage."""

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
from steelyard.studio.helper_process import HelperProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.stage import STUDIO_STAGES, FormData, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioFolder

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


def arm_folder(folder: Path, *mistakes: object, validated: bool = False) -> Path:
    """Create a project in `folder` with the log logs/a.csv, and with logs/b.csv for validation, with `mistakes`."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate("ab" if validated else "a"):
        log = clean(ROBOT, seed)
        for mistake in mistakes:
            log = mistake(log)  # type: ignore[operator]
        log.save(folder / "logs" / f"{name}.csv")
    (folder / "steelyard.toml").write_text(PROJECT + ('validate = ["logs/b.csv"]\n' if validated else ""), "utf-8")
    return folder


def run_apart(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a `coroutine` in a new thread, because a browser's event loop may run in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


class Visitor:
    """Opens a stage of a folder and presses its buttons, without a server."""

    def __init__(self, folder: Path, stage: str) -> None:
        studio = StudioFolder(folder)
        studio.mark_used()  # as if a form had been sent before
        self.context, self.stage = StageContext(studio, Jobs(studio), HelperProcess(studio)), STUDIO_STAGES[stage]

    def body(self, *query: tuple[str, str]) -> str:
        """Return the stage's HTML with entities decoded."""
        return unescape(run_apart(self.stage.body(self.context, FormData(list(query)))))

    def status(self) -> StageStatus:
        return run_apart(self.stage.status(self.context))

    def press(self, action: str, **fields: str) -> None:
        run_apart(self.stage.actions()[action](self.context, FormData(list(fields.items()))))  # type: ignore[arg-type]

    def wait(self) -> None:
        """Wait until no job is running."""
        end = time.monotonic() + 60.0
        while any(job.live for job in self.context.jobs.all()):
            self.context.jobs.step()
            assert time.monotonic() < end
            time.sleep(0.05)

    def leave(self) -> None:
        for job in self.context.jobs.all():
            self.context.jobs.cancel(job.id)
        self.wait()
        self.context.helper.close()
