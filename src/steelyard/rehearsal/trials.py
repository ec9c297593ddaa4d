"""`Trials`: simulates, logs and fits robots, in this process or in several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from steelyard.dynamics.model import Model
from steelyard.dynamics.native.compiled_function import default_threads
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.processes import one_thread
from steelyard.identification.identify import fit_study
from steelyard.regression.base_parameters import BaseParameters
from steelyard.rehearsal._judge import Judge, Trial
from steelyard.rehearsal.plants import simulate_robots, true_model_around
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation.play import good_sensors
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulation import Simulation
from steelyard.study import Study

# Least number of robots per process, since a process takes seconds to start.
_ROBOTS_EACH = 16
# Number of robots that a process simulates at once.
_CHUNK = 16


@dataclass(frozen=True, eq=False)
class Trials:
    """The robots of a rehearsal, numbered from 0.

    Attributes:
        nominal: Nominal model, which the controllers use.
        base: Base parameters.
        judge: Checks.
        truth: Kind of true model (see `true_model`), or the true model of all robots.
        relative_std: Relative standard deviation of the parameters of a perturbed robot.
        rate: Sampling rate of the logs [Hz].
        passes: Number of times that each motion is played.
        seed: Seed of the first robot and of its noise.
    """

    nominal: Model
    base: BaseParameters
    judge: Judge
    truth: str | Model
    relative_std: float
    rate: float
    passes: int
    seed: int

    @property
    def motions(self) -> Sequence[Trajectory]:
        return self.judge.motions

    def model(self, number: int) -> Model:
        """Return the true model of robot `number`."""
        if isinstance(self.truth, Model):
            return self.truth
        return true_model_around(self.nominal, self.truth, self.relative_std, self.seed + number)

    def sensors(self, number: int) -> list[Sensors]:
        """Return the sensors of robot `number`, for each pass of each motion."""
        count = len(self.motions) * self.passes
        return [good_sensors(self.judge.noise, self.seed + number * count + k) for k in range(count)]

    def runs(self, simulations: Sequence[Simulation]) -> tuple[Simulation, ...]:
        """Repeat `simulations` for all passes, which only differ by their sensors."""
        return tuple(run for run in simulations for _ in range(self.passes))

    def logs(self, number: int, simulations: Sequence[Simulation]) -> tuple[Log, ...]:
        """Log all passes with the sensors of a robot.

        Args:
            number: Number of the robot.
            simulations: Simulation of each motion by this robot.
        """
        pairs = zip(self.runs(simulations), self.sensors(number), strict=True)
        return tuple(run.log(sensors=sensors) for run, sensors in pairs)

    def study(self, logs: Sequence[Log]) -> Study:
        """Create the study of `logs` with default settings and the known base parameters."""
        study = Study.of(self.nominal.robot, logs, self.nominal.terms, Preparation(velocity="differentiated"))
        return replace(study, known_base=self.base)

    def simulate(self, numbers: Sequence[int]) -> Iterator[tuple[int, Model, tuple[Simulation, ...]]]:
        """Simulate the robots `numbers`; yields number, true model and simulations of each."""
        models = [self.model(k) for k in numbers]
        yield from zip(numbers, models, simulate_robots(models, self.motions, self.rate, self.nominal), strict=True)

    def run(self, numbers: Sequence[int]) -> Iterator[Trial]:
        """Simulate, identify and check the robots `numbers`."""
        for number, truth, simulations in self.simulate(numbers):
            fit = fit_study(self.study(self.logs(number, simulations)))
            yield self.judge.trial(self.seed + number, *fit, truth, self.judge.extremes(simulations))


def worker_count(robots: int, workers: int | None) -> int:
    """Return the number of processes to use.

    Args:
        robots: Number of robots.
        workers: Requested number of processes; None chooses it.
    """
    if workers is not None:
        return max(1, min(workers, robots))
    return max(1, min(default_threads(), robots // _ROBOTS_EACH))


def run_trials(trials: Trials, numbers: Sequence[int], pool: Executor, workers: int) -> Iterator[Trial]:
    """Run trials and yield their results in order.

    Args:
        trials: Trials.
        numbers: Numbers of the robots.
        pool: Processes that share the trials.
        workers: Number of processes; with one, this process runs them one by one.
    """
    if workers == 1:
        yield from trials.run(numbers)
        return
    each = min(_CHUNK, -(-len(numbers) // workers))
    for results in pool.map(_run, [numbers[k : k + each] for k in range(0, len(numbers), each)]):
        yield from results


_shared: list[Any] = []


class _InProcess(Executor):
    """Runs submitted work at once in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def worker_pool(shared: Any, workers: int) -> Iterator[Executor]:
    """Start processes that share an object, which `with_shared` passes to their work.

    Args:
        shared: Object to copy to each process.
        workers: Number of processes; with one, work runs in this process.
    """
    if workers == 1:
        _begin(shared)
        yield _InProcess()
        return
    with one_thread():
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (shared,))
        try:
            for _ in range(workers):
                pool.submit(int)  # starts all processes now
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(shared: Any) -> None:
    _shared[:] = [shared]


def with_shared(work: Callable[[Any], Any]) -> Any:
    """Call `work` with the shared object of this process."""
    return work(_shared[0])


def _run(numbers: Sequence[int]) -> list[Trial]:
    return list(with_shared(lambda trials: trials.run(numbers)))
