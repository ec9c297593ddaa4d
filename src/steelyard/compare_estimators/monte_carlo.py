"""`monte_carlo`: all estimators on many simulated experiments of one robot, resumable and repeatable."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from steelyard.compare_estimators.bench import Truth
from steelyard.compare_estimators.comparison import Comparison
from steelyard.compare_estimators.fit import Run
from steelyard.compare_estimators.pool import all_runs
from steelyard.compare_estimators.protocol import Protocol
from steelyard.compare_estimators.records import Records
from steelyard.robot.robot import Robot

Progress = Callable[[int, int, Run | None], None]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def monte_carlo(
    robot: Robot,
    protocol: Protocol | None = None,
    *,
    records: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress = lambda done, total, run: None,
) -> Comparison:
    """Simulate the experiments of a protocol on a robot, let every estimator find it, and judge all by the truth.

    Args:
        robot: its description is the truth: inertias, friction, rotors.
        protocol: what is varied; see `Protocol`.
        records: a file of lines to which every run is added as it ends. If it exists, what it holds is not done again;
            the result is the same as without the interruption, but for times.
        workers: processes, each on one core (default: as many as there are cores); 1 works in this process.
        progress: called with (runs done, runs in all, the last run).
    """
    plan = protocol or Protocol()
    truth = Truth.of(robot, plan.smoothing)
    header = {"robot": robot.name, "fingerprint": robot.fingerprint, "protocol": plan.to_json(),
              "version": version("steelyard")}  # fmt: skip
    store = None if records is None else Records(Path(records), header)
    cells = list(plan.cells())
    wanted = {(cell.key, name) for cell in cells for name in plan.estimators}
    done = {run.key: run for run in (store.load() if store is not None else []) if run.key in wanted}
    jobs = [
        (cell, names)
        for cell in cells
        if (names := tuple(name for name in plan.estimators if (cell.key, name) not in done))
    ]
    progress(len(done), len(wanted), None)

    def gather(write: Callable[[Run], None]) -> None:
        for run in all_runs(truth, plan, jobs, workers or cores()):
            write(run)
            done[run.key] = run
            progress(len(done), len(wanted), run)

    if store is None:
        gather(lambda run: None)
    else:
        with store.writing() as writer:
            gather(writer.add)
    ordered = tuple(done[cell.key, name] for cell in cells for name in plan.estimators)
    return Comparison(robot.name, plan, ordered)
