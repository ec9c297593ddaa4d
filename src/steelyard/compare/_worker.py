"""Worker processes of a comparison: they run cells, with results that do not depend on process or order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.assessment.replay import possibility
from steelyard.compare._bench import Bench, Truth
from steelyard.compare.methods import METHODS, Method, MethodRun, try_fit
from steelyard.compare.protocol import Cell, Protocol
from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError, SteelyardError, warnings_as_notes
from steelyard.estimation.estimate import Estimate
from steelyard.estimation.simulation_error.experiment import Experiment
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.files import plain
from steelyard.ground.processes import one_thread
from steelyard.simulation import Ending, simulate
from steelyard.simulation.play import refine_steps

_RATE = 100.0  # sampling rate of the torques that are compared [Hz]
_STEP = 1e-3  # step of the replays [s]
_REPLAYS = 12
# Number of postures for the check of the mass matrix: a quarter of what a single model gets.
_POSTURES = 1024


@dataclass(frozen=True, eq=False)
class _Replays:
    """Pieces of the evaluation motions.

    Attributes:
        q0, dq0: Initial states.
        torques: Torques of the true robot.
        times: Times of the samples [s].
        positions: Positions of the true robot under these torques.
    """

    q0: Array
    dq0: Array
    torques: Array
    times: Array
    positions: Array


class _Evaluator:
    """Computes the errors of estimates of one robot."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        t = np.arange(0.0, bench.protocol.duration, 1.0 / _RATE)
        self._states = [np.concatenate(x) for x in zip(*(m.sample(t) for m in bench.evaluation_motions), strict=True)]
        q, dq, ddq = self._states
        self._torque = bench.truth.torque(q, dq, ddq)
        self._torque_std = np.maximum(np.std(self._torque, axis=0), 1e-12)
        self._replays = self._pieces()
        reach = np.array([np.pi if j.kind == "revolute" else 1.0 for j in bench.truth.robot.joints])
        self._postures = np.random.default_rng(0).uniform(-reach, reach, (_POSTURES, len(reach)))

    def errors(self, estimate: Estimate) -> dict[str, Any]:
        """Compute errors in percent of the truth and of positions [rad, m]; None with a reason if the model cannot
        move."""
        model = Model(self.bench.truth.robot, self.bench.truth.terms, estimate.theta)
        error = estimate.beta - self.bench.beta
        size = np.abs(self.bench.beta)
        check = possibility(model, self._postures)
        q, dq, ddq = self._states
        torque = model.torque(q, dq, ddq) - self._torque
        position, reason = self._position_error(model)
        return {
            "distance_percent": 100.0 * float(np.linalg.norm(error) / np.linalg.norm(self.bench.beta)),
            "median_error_percent": 100.0 * float(np.median(np.abs(error[size > 0.0]) / size[size > 0.0])),
            "torque_error_percent": 100.0 * float(np.mean(np.sqrt(np.mean(torque**2, axis=0)) / self._torque_std)),
            "position_error": position,
            "position_reason": reason,
            "simulable": check.simulable,
            "possible": check.possible,
        }

    def _position_error(self, model: Model) -> tuple[float | None, str]:
        """Root mean square of the deviation from the true robot, over joints, times and pieces."""
        try:
            q, ok = self._replayed(model)
        except SimulationError as error:
            return None, str(error)
        if not ok.all():
            return None, f"{int(np.sum(~ok))} of {len(ok)} replays diverged."
        return float(np.sqrt(np.mean((q - self._replays.positions) ** 2))), ""

    def _replayed(self, model: Model) -> tuple[Array, NDArray[np.bool_]]:
        r = self._replays
        result = refine_steps(
            lambda parts: simulate(
                model, r.torques, times=r.times, step=_STEP / parts, q0=r.q0, dq0=r.dq0, bound=100.0, throw=False,
                threads=1,
            )
        )  # fmt: skip
        return result.q, result.outcome == Ending.COMPLETED

    def _pieces(self) -> _Replays:
        bench, horizon = self.bench, min(self.bench.protocol.horizon, self.bench.protocol.duration)
        times = np.asarray(np.arange(max(2, round(horizon / _STEP))) * _STEP, dtype=np.float64)
        starts = np.linspace(0.0, bench.protocol.duration - horizon, -(-_REPLAYS // len(bench.evaluation_motions)))
        states = [motion.sample(start + times) for motion in bench.evaluation_motions for start in starts]
        replays = _Replays(
            np.array([q[0] for q, _, _ in states]),
            np.array([dq[0] for _, dq, _ in states]),
            np.array([bench.truth.torque(*state) for state in states]),
            times,
            np.zeros(0),
        )
        self._replays = replays
        positions, ok = self._replayed(bench.truth)
        return replace(
            replays, q0=replays.q0[ok], dq0=replays.dq0[ok], torques=replays.torques[ok], positions=positions[ok]
        )


class Worker:
    """Runs the experiments, estimates and evaluations of one protocol."""

    def __init__(self, truth: Truth, protocol: Protocol) -> None:
        self._truth, self.protocol = truth, protocol

    @cached_property
    def bench(self) -> Bench:
        return Bench(self._truth, self.protocol)

    @cached_property
    def evaluator(self) -> _Evaluator:
        return _Evaluator(self.bench)

    def runs(
        self, cell: Cell, names: Sequence[str], begin: Callable[[str], None] = lambda name: None
    ) -> Iterator[MethodRun]:
        """Run estimators one after the other; `begin` receives the name of each before it starts."""
        # One thread and machine code from the start make the results independent of what the process did before.
        with one_thread(), compiled_at_once(), one_blas_thread():
            try:
                experiment: Experiment | SteelyardError = self.bench.experiment(cell)
            except SteelyardError as error:
                experiment = error
            for name in names:
                begin(name)
                yield self._run(cell, METHODS[name], experiment)

    def _run(self, cell: Cell, method: Method, experiment: Experiment | SteelyardError) -> MethodRun:
        if isinstance(experiment, SteelyardError):
            return MethodRun(cell.key, method.name, "no-data", str(experiment))
        base, prior = self.bench.base, self.bench.initial(cell)
        run, estimate = try_fit(cell.key, method, lambda: method.fit(experiment, base, prior), self.protocol.limit)
        if estimate is None:
            return run
        try:
            return replace(run, **plain(self.evaluator.errors(estimate)))
        except Exception as error:  # extreme numbers can make even the evaluation fail
            return replace(run, result="broken", reason=f"Evaluation failed: {type(error).__name__}: {error}")


def serve(pipe: Any, truth: Truth, protocol: Protocol) -> None:
    """Run jobs from a pipe and send results until the other end closes it."""
    warnings_as_notes()
    worker = Worker(truth, protocol)
    try:
        while (job := pipe.recv()) is not None:
            cell, names = job
            for run in worker.runs(cell, names, lambda name: pipe.send(("begins", name))):
                pipe.send(("ended", run))
            pipe.send(("free", None))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
