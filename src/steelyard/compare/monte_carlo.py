"""`monte_carlo`: all estimators on many simulated experiments of one robot, resumable and repeatable."""

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
from steelyard.compare._work import Worker, serve
from steelyard.compare.comparison import Comparison
from steelyard.compare.methods import MethodRun
from steelyard.compare.protocol import Cell, Protocol
from steelyard.errors import SteelyardError
from steelyard.ground.atomic_files import lock_file
from steelyard.ground.files import name_in_errors
from steelyard.ground.folders import RunFolderError, growing_folder
from steelyard.ground.interrupt import children_undisturbed
from steelyard.ground.processes import one_thread
from steelyard.ground.progress import ProgressCallback, reports_progress, tell_progress
from steelyard.ground.untrusted import parse_json, read_bytes
from steelyard.robot.robot import Robot

# In the folder of a comparison: its runs, a line each.
RUNS = "runs.jsonl"


def records_folder(folder: Path, overwrite: bool, resume: bool) -> AbstractContextManager[Path]:
    """A comparison's `folder`, made ready: a new one, one to `overwrite`, or one that was broken off, to `resume`."""
    begun = (folder / RUNS).exists()
    if resume and overwrite:
        raise SteelyardError("--resume keeps the runs of a folder, --overwrite throws them away; give one.")
    if resume and not begun:
        raise RunFolderError(f"{folder} holds no runs to go on with (no {RUNS} in it); start without --resume.")
    if begun and not (resume or overwrite):
        raise RunFolderError(f"{folder} holds runs already; --resume goes on with them, --overwrite starts anew.")
    return growing_folder(folder, RUNS, overwrite=overwrite, resume=resume)


_FORMAT = "steelyard-runs-1"
_LARGEST = 1 << 30  # bytes: a run is some hundred


class _Records:
    """A file of lines that only grows: a header that says what was compared, then runs in the order they ended."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        key = hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
        self._header = {"format": _FORMAT, "key": key, **header}

    def load(self) -> list[MethodRun]:
        """The runs there are; a last line that was being written when the power went is left out."""
        if not self.path.exists():
            return []
        lines = read_bytes(self.path, _LARGEST, SteelyardError).split(b"\n")
        head, *runs = (_parsed(line, f"{self.path}, line {k + 1}") for k, line in enumerate(lines))
        if head is not None and (head.get("format"), head.get("key")) != (_FORMAT, self._header["key"]):
            raise SteelyardError(
                f"{self.path} holds runs of another comparison (another robot, seed, version or setting); resume with "
                "the same options, or give another folder."
            )
        return [MethodRun.from_json(run) for run in runs if run is not None]

    @contextmanager
    def writing(self) -> Iterator[Callable[[MethodRun], None]]:
        """To add runs by; a torn last line is cut off first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if not lock_file(file):
                raise SteelyardError(f"{self.path}: another process adds runs to this file; wait for it.")
            whole = self.path.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]
            if len(kept) < len(whole):
                file.truncate(len(kept))

            def add(document: dict[str, Any]) -> None:
                # One write of a whole line, then down to the disk.
                with name_in_errors(self.path):
                    file.write(json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())

            if not kept:
                add(self._header)
            yield lambda run: add(run.to_json())


def _parsed(line: bytes, place: str) -> dict[str, Any] | None:
    """What a line holds; one that was torn, or is none of ours, holds nothing."""
    try:
        document = parse_json(line.decode("utf-8", "replace"), place, SteelyardError)
    except SteelyardError:
        return None
    return document if isinstance(document, dict) else None


Job = tuple[Cell, tuple[str, ...]]


def _all_runs(truth: Truth, protocol: Protocol, jobs: Sequence[Job], workers: int) -> Iterator[MethodRun]:
    """The runs of all jobs in the order in which they end; one worker works in this process.

    A process that dies leaves a result, not a gap.
    """
    if workers <= 1:
        worker = Worker(truth, protocol)
        for cell, names in jobs:
            yield from worker.runs(cell, names)
        return
    yield from _Pool(truth, protocol, jobs).runs(workers)


@dataclass(eq=False)
class _Helper:
    """A process, the job it is at, and what of it is left."""

    process: Any
    pipe: Any
    cell: Cell | None = None
    left: deque[str] | None = None

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(5.0)


class _Pool:
    def __init__(self, truth: Truth, protocol: Protocol, jobs: Sequence[Job]) -> None:
        self.truth, self.protocol, self.jobs = truth, protocol, deque(jobs)
        # Fresh processes: a fork would inherit the locks of whatever threads there are.
        self.context = multiprocessing.get_context("spawn")
        self.helpers: list[_Helper] = []

    def runs(self, workers: int) -> Iterator[MethodRun]:
        with one_thread():
            try:
                for _ in range(min(workers, len(self.jobs))):
                    self._hire()
                while self.helpers:
                    for pipe in wait([helper.pipe for helper in self.helpers]):
                        helper = next(h for h in self.helpers if h.pipe is pipe)
                        yield from self._heard(helper)
            finally:
                for helper in self.helpers:
                    helper.stop()

    def _hire(self) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(target=serve, args=(there, self.truth, self.protocol), daemon=True)
        with children_undisturbed():
            process.start()
        there.close()  # so that a death over there is heard here
        helper = _Helper(process, here)
        self.helpers.append(helper)
        self._next(helper)

    def _next(self, helper: _Helper) -> None:
        if not self.jobs:
            self.helpers.remove(helper)
            helper.pipe.send(None)
            helper.pipe.close()
            helper.process.join(5.0)
            return
        helper.cell, names = self.jobs.popleft()
        helper.left = deque(names)
        helper.pipe.send((helper.cell, names))

    def _heard(self, helper: _Helper) -> Iterator[MethodRun]:
        try:
            word, value = helper.pipe.recv()
        except (EOFError, OSError):
            yield from self._buried(helper)
            return
        if word == "ended":
            assert helper.left is not None
            helper.left.popleft()
            yield value
        elif word == "free":
            self._next(helper)

    def _buried(self, helper: _Helper) -> Iterator[MethodRun]:
        """A process that died was at the first estimator that is left; the others go to a new one."""
        self.helpers.remove(helper)
        helper.process.join(5.0)
        if helper.cell is not None and helper.left:
            how = f"The process died (exit code {helper.process.exitcode})."
            yield MethodRun(helper.cell.key, helper.left.popleft(), "broken", how)
            if helper.left:
                self.jobs.appendleft((helper.cell, tuple(helper.left)))
        if self.jobs:
            self._hire()


def cores() -> int:
    """Cores that this process may use."""
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
    """Simulate the experiments of a protocol on a robot, let every estimator find it, and judge all by the truth.

    Args:
        robot: its description is the truth: inertias, friction, rotors.
        protocol: what is varied; see `Protocol`.
        records: a file of lines to which every run is added as it ends. If it exists, what it holds is not done again;
            the result is the same as without the interruption, but for times.
        workers: processes, each on one core (default: as many as there are cores); 1 works in this process.
        progress: told how far it is, after every run (`steelyard.ground.progress`); None: nobody.
    """
    plan = protocol or Protocol()
    truth = Truth.of(robot, plan.smoothing)
    header = {"robot": robot.name, "fingerprint": robot.fingerprint, "protocol": plan.to_json(),
              "version": version("steelyard")}  # fmt: skip
    store = None if records is None else _Records(Path(records), header)
    cells = list(plan.cells())
    wanted = {(cell.key, name) for cell in cells for name in plan.estimators}
    done = {run.key: run for run in (store.load() if store is not None else []) if run.key in wanted}
    jobs = [
        (cell, names)
        for cell in cells
        if (names := tuple(name for name in plan.estimators if (cell.key, name) not in done))
    ]
    tell_progress("Runs", len(done) / max(len(wanted), 1), f"{len(done)} of {len(wanted)}")

    with nullcontext(lambda run: None) if store is None else store.writing() as write:
        for run in _all_runs(truth, plan, jobs, workers or cores()):
            write(run)
            done[run.key] = run
            share, last = len(done) / len(wanted), f"{len(done)} of {len(wanted)}, {run.estimator}"
            tell_progress("Runs", share, last)
    ordered = tuple(done[cell.key, name] for cell in cells for name in plan.estimators)
    return Comparison(robot.name, plan, ordered)
