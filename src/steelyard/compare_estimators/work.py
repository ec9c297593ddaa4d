"""What a worker does: the runs of one cell after the other, the same in every process and in every order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from steelyard.compare_estimators.bench import Bench, Truth
from steelyard.compare_estimators.fit import Run, try_fit
from steelyard.compare_estimators.judge import Judge
from steelyard.compare_estimators.methods import METHODS, Method
from steelyard.compare_estimators.protocol import Cell, Protocol
from steelyard.dynamics import evaluate
from steelyard.errors import SteelyardError
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.plain import plain
from steelyard.regression.blas import one_blas_thread

# BLAS and our own loops keep to one thread each: the processes are what runs in parallel.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "STEELYARD_THREADS")}


class Worker:
    """Experiments, estimates and judgements of one protocol."""

    def __init__(self, truth: Truth, protocol: Protocol) -> None:
        self._truth, self.protocol = truth, protocol

    @cached_property
    def bench(self) -> Bench:
        return Bench(self._truth, self.protocol)

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.bench)

    def runs(self, cell: Cell, names: Sequence[str], begin: Callable[[str], None] = lambda name: None) -> Iterator[Run]:
        """One after the other; `begin` is told the estimator that comes next."""
        with _repeatable(), one_blas_thread():
            try:
                experiment: Experiment | SteelyardError = self.bench.experiment(cell)
            except SteelyardError as error:
                experiment = error
            for name in names:
                begin(name)
                yield self._run(cell, METHODS[name], experiment)

    def _run(self, cell: Cell, method: Method, experiment: Experiment | SteelyardError) -> Run:
        if isinstance(experiment, SteelyardError):
            return Run(cell.key, method.name, "no-data", str(experiment))
        base, prior = self.bench.base, self.bench.initial(cell)
        run, found = try_fit(cell.key, method, lambda: method.fit(experiment, base, prior), self.protocol.limit)
        if found is None:
            return run
        try:
            return replace(run, **plain(self.judge.figures(found)))
        except Exception as error:  # numbers so wild that even judging them fails
            return replace(run, result="broken", reason=f"It cannot be judged: {type(error).__name__}: {error}")


@contextmanager
def _repeatable() -> Iterator[None]:
    """Make machine code at once. A process else interprets its first samples, which rounds differently, and what
    comes out would depend, in the last digits, on what the process did before."""
    kept = {name: os.environ.get(name) for name in ONE_THREAD}
    blocks = evaluate._BLOCKS_BEFORE_COMPILING
    os.environ.update(ONE_THREAD)
    evaluate._BLOCKS_BEFORE_COMPILING = -1
    try:
        yield
    finally:
        evaluate._BLOCKS_BEFORE_COMPILING = blocks
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def serve(pipe: Any, truth: Truth, protocol: Protocol) -> None:
    """The life of a worker process: cells come in, runs go out, until the other end hangs up."""
    worker = Worker(truth, protocol)
    try:
        while (job := pipe.recv()) is not None:
            cell, names = job
            for run in worker.runs(cell, names, lambda name: pipe.send(("begins", name))):
                pipe.send(("ended", run))
            pipe.send(("free", None))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
