"""`parallel_runs`: cells over processes, runs as they end; a process that dies leaves a result, not a gap."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from steelyard.compare_estimators.bench import Truth
from steelyard.compare_estimators.fit import Run
from steelyard.compare_estimators.protocol import Cell, Protocol
from steelyard.compare_estimators.work import ONE_THREAD, Worker, serve

Job = tuple[Cell, tuple[str, ...]]


def all_runs(truth: Truth, protocol: Protocol, jobs: Sequence[Job], workers: int) -> Iterator[Run]:
    """The runs of all jobs in the order in which they end; one worker works in this process."""
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

    def runs(self, workers: int) -> Iterator[Run]:
        kept = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)  # processes inherit it, and BLAS reads it when it is loaded
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
            for name, value in kept.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)

    def _hire(self) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(target=serve, args=(there, self.truth, self.protocol), daemon=True)
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

    def _heard(self, helper: _Helper) -> Iterator[Run]:
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

    def _buried(self, helper: _Helper) -> Iterator[Run]:
        """A process that died was at the first estimator that is left; the others go to a new one."""
        self.helpers.remove(helper)
        helper.process.join(5.0)
        if helper.cell is not None and helper.left:
            how = f"The process died (exit code {helper.process.exitcode})."
            yield Run(helper.cell.key, helper.left.popleft(), "broken", how)
            if helper.left:
                self.jobs.appendleft((helper.cell, tuple(helper.left)))
        if self.jobs:
            self._hire()
