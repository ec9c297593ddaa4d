"""Compares all estimators on many simulated experiments of one robot; resumable and repeatable."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from steelyard.compare._bench import Truth
from steelyard.compare._worker import Worker, serve
from steelyard.compare.comparison import Comparison
from steelyard.compare.methods import MethodRun
from steelyard.compare.protocol import Cell, Protocol
from steelyard.errors import SteelyardError
from steelyard.ground.atomic_files import lock_file
from steelyard.ground.files import name_in_errors
from steelyard.ground.folders import RunFolderError, growing_folder
from steelyard.ground.interrupt import children_undisturbed
from steelyard.ground.processes import one_thread
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress
from steelyard.ground.untrusted_files import parse_json, read_bytes
from steelyard.robot.robot import Robot

# File of the runs in the folder of a comparison, one line per run.
RUNS = "runs.jsonl"


def records_folder(folder: Path, overwrite: bool, resume: bool) -> AbstractContextManager[Path]:
    """Prepare the folder of a comparison.

    Args:
        folder: The folder.
        overwrite: Replace its content.
        resume: Continue an interrupted comparison.
    """
    has_runs = (folder / RUNS).exists()
    if resume and overwrite:
        raise SteelyardError("--resume keeps the runs of a folder, --overwrite deletes them; give only one of the two.")
    if resume and not has_runs:
        raise RunFolderError(f"{folder}: no {RUNS} to resume from; start without --resume.")
    if has_runs and not (resume or overwrite):
        raise RunFolderError(
            f"{folder} already contains runs; continue with --resume, or start again with --overwrite."
        )
    return growing_folder(folder, RUNS, overwrite=overwrite, resume=resume)


_FORMAT = "steelyard-runs-1"
_MAX_BYTES = 1 << 30  # a run has some hundred bytes


class _Records:
    """An append-only file: a header that describes the comparison, then a line per run in the order of completion."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        key = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
        self._header = {"format": _FORMAT, "key": key, **header}

    def load(self) -> list[MethodRun]:
        """Read the runs; an incomplete last line after a power failure is skipped."""
        if not self.path.exists():
            return []
        lines = read_bytes(self.path, _MAX_BYTES, SteelyardError).split(b"\n")
        head, *runs = (_parse_line(line, f"{self.path}, line {k + 1}") for k, line in enumerate(lines))
        if head is not None and (head.get("format"), head.get("key")) != (_FORMAT, self._header["key"]):
            raise SteelyardError(
                f"{self.path} contains runs of another comparison (another robot, seed, version or setting); resume "
                "with the same options, or give another folder."
            )
        return [MethodRun.from_json(run) for run in runs if run is not None]

    @contextmanager
    def writing(self) -> Iterator[Callable[[MethodRun], None]]:
        """Yield a function that adds a run; an incomplete last line is removed first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if not lock_file(file):
                raise SteelyardError(f"{self.path}: another process is adding runs to this file; wait for it.")
            whole = self.path.read_bytes()
            complete = whole[: whole.rfind(b"\n") + 1]
            if len(complete) < len(whole):
                file.truncate(len(complete))

            def add(document: dict[str, Any]) -> None:
                # A whole line in one write, then flushed to disk.
                with name_in_errors(self.path):
                    file.write(json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())

            if not complete:
                add(self._header)
            yield lambda run: add(run.to_json())


def _parse_line(line: bytes, where: str) -> dict[str, Any] | None:
    """Parse a line; an incomplete or unknown one gives None."""
    try:
        document = parse_json(line.decode("utf-8", "replace"), where, SteelyardError)
    except SteelyardError:
        return None
    return document if isinstance(document, dict) else None


Job = tuple[Cell, tuple[str, ...]]


def _all_runs(truth: Truth, protocol: Protocol, jobs: Sequence[Job], workers: int) -> Iterator[MethodRun]:
    """Run all jobs and yield results in the order of completion; with one worker in this process.

    A process that dies gives a result, so that no run is missing.
    """
    if workers <= 1:
        worker = Worker(truth, protocol)
        for cell, names in jobs:
            yield from worker.runs(cell, names)
        return
    yield from _Pool(truth, protocol, jobs).runs(workers)


@dataclass(eq=False)
class _WorkerProcess:
    """A worker process, its current job, and the estimators of it that have not finished."""

    process: Any
    pipe: Any
    cell: Cell | None = None
    pending: deque[str] | None = None

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(5.0)


class _Pool:
    def __init__(self, truth: Truth, protocol: Protocol, jobs: Sequence[Job]) -> None:
        self.truth, self.protocol, self.jobs = truth, protocol, deque(jobs)
        # Spawned, since a fork would inherit locks of other threads.
        self.context = multiprocessing.get_context("spawn")
        self.helpers: list[_WorkerProcess] = []

    def runs(self, workers: int) -> Iterator[MethodRun]:
        with one_thread():
            try:
                for _ in range(min(workers, len(self.jobs))):
                    self._start_process()
                while self.helpers:
                    for pipe in wait([helper.pipe for helper in self.helpers]):
                        helper = next(h for h in self.helpers if h.pipe is pipe)
                        yield from self._receive(helper)
            finally:
                for helper in self.helpers:
                    helper.stop()

    def _start_process(self) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(target=serve, args=(there, self.truth, self.protocol), daemon=True)
        with children_undisturbed():
            process.start()
        there.close()  # otherwise `recv` would not raise EOFError when the process ends
        helper = _WorkerProcess(process, here)
        self.helpers.append(helper)
        self._next(helper)

    def _next(self, helper: _WorkerProcess) -> None:
        if not self.jobs:
            self.helpers.remove(helper)
            helper.pipe.send(None)
            helper.pipe.close()
            helper.process.join(5.0)
            return
        helper.cell, names = self.jobs.popleft()
        helper.pending = deque(names)
        helper.pipe.send((helper.cell, names))

    def _receive(self, helper: _WorkerProcess) -> Iterator[MethodRun]:
        try:
            word, value = helper.pipe.recv()
        except (EOFError, OSError):
            yield from self._handle_death(helper)
            return
        if word == "ended":
            assert helper.pending is not None
            helper.pending.popleft()
            yield value
        elif word == "free":
            self._next(helper)

    def _handle_death(self, helper: _WorkerProcess) -> Iterator[MethodRun]:
        """Report the first pending estimator of a dead process as broken; a new process runs the others."""
        self.helpers.remove(helper)
        helper.process.join(5.0)
        if helper.cell is not None and helper.pending:
            reason = f"The process died (exit code {helper.process.exitcode})."
            yield MethodRun(helper.cell.key, helper.pending.popleft(), "broken", reason)
            if helper.pending:
                self.jobs.appendleft((helper.cell, tuple(helper.pending)))
        if self.jobs:
            self._start_process()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@reports_progress
def monte_carlo(
    robot: Robot,
    protocol: Protocol | None = None,
    *,
    records: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Simulate the experiments of a protocol, run every estimator on them, and compare the estimates with the truth.

    Args:
        robot: The true robot: inertias, friction, rotors.
        protocol: Factors of the comparison; see `Protocol`.
        records: File to which each run is appended. Runs in an existing file are not repeated; the result is the same
            as without the interruption, except for times.
        workers: Number of processes with one core each (default: all cores); 1 works in this process.
        progress: Callback for progress after every run (`steelyard.ground.progress`).
    """
    plan = protocol or Protocol()
    truth = Truth.of(robot, plan.smoothing)
    header = {"robot": robot.name, "fingerprint": robot.fingerprint, "protocol": plan.to_json(),
              "version": version("steelyard")}  # fmt: skip
    store = None if records is None else _Records(Path(records), header)
    cells = list(plan.cells())
    planned = {(cell.key, name) for cell in cells for name in plan.estimators}
    done = {run.key: run for run in (store.load() if store is not None else []) if run.key in planned}
    jobs = [
        (cell, names)
        for cell in cells
        if (names := tuple(name for name in plan.estimators if (cell.key, name) not in done))
    ]
    report_progress("Runs", len(done) / max(len(planned), 1), f"{len(done)} of {len(planned)}")

    with nullcontext(lambda run: None) if store is None else store.writing() as write:
        for run in _all_runs(truth, plan, jobs, workers or cores()):
            write(run)
            done[run.key] = run
            share, last = len(done) / len(planned), f"{len(done)} of {len(planned)}, {run.estimator}"
            report_progress("Runs", share, last)
    ordered = tuple(done[cell.key, name] for cell in cells for name in plan.estimators)
    return Comparison(robot.name, plan, ordered)
