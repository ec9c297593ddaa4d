"""`Trials`: robots that are planted, played, logged and fitted alike wherever it happens; processes side by side."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from steelyard.dynamics.model import Model
from steelyard.dynamics.native.run import default_threads
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.processes import one_thread
from steelyard.identification.identify import fit_study
from steelyard.regression.base_parameters import BaseParameters
from steelyard.rehearse._judge import Judge, Trial
from steelyard.rehearse.plants import planted_around, played_together
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation.play import good_sensors
from steelyard.simulation.sensors import Sensors
from steelyard.simulation.simulation import Simulation
from steelyard.study import Study

# A process takes seconds to start; fewer robots than this for each are not worth it.
_ROBOTS_EACH = 16
# Robots that a process is given at once: as many as are simulated side by side.
_CHUNK = 16


@dataclass(frozen=True, eq=False)
class Trials:
    """All robots of a rehearsal, by their number from 0 on.

    Attributes:
        nominal: what the controllers believe, and around which robots are planted.
        base: the base parameters.
        judge: what they are judged by.
        truth: the kind of robot (`planted`), or the one that all of them are.
        relative_std: how far a perturbed robot is off, a share.
        rate: of the logs, Hz.
        passes: how often each motion is played.
        seed: of the first robot and of its noise.
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
        """Robot `number` as it is."""
        if isinstance(self.truth, Model):
            return self.truth
        return planted_around(self.nominal, self.truth, self.relative_std, self.seed + number)

    def sensors(self, number: int) -> list[Sensors]:
        """Those of robot `number`, one for each pass of each motion."""
        count = len(self.motions) * self.passes
        return [good_sensors(self.judge.noise, self.seed + number * count + k) for k in range(count)]

    def runs(self, played: Sequence[Simulation]) -> tuple[Simulation, ...]:
        """All passes of the motions that were `played`: the same but for the sensors."""
        return tuple(run for run in played for _ in range(self.passes))

    def logs(self, number: int, played: Sequence[Simulation]) -> tuple[Log, ...]:
        """What the sensors of robot `number` saw of the motions that it `played`."""
        pairs = zip(self.runs(played), self.sensors(number), strict=True)
        return tuple(run.log(sensors=sensors) for run, sensors in pairs)

    def study(self, logs: Sequence[Log]) -> Study:
        """No prior on what the motion shows, and the cut-off far above it, as a user would have it by default; of
        `logs`."""
        study = Study.of(self.nominal.robot, logs, self.nominal.terms, Preparation(velocity="differentiated"))
        return replace(study, known_base=self.base)

    def played(self, numbers: Sequence[int]) -> Iterator[tuple[int, Model, tuple[Simulation, ...]]]:
        """The robots of these `numbers`, and how they play the motions."""
        models = [self.model(k) for k in numbers]
        yield from zip(numbers, models, played_together(models, self.motions, self.rate, self.nominal), strict=True)

    def judged(self, numbers: Sequence[int]) -> Iterator[Trial]:
        """The trials of the robots of these `numbers`."""
        for number, model, played in self.played(numbers):
            fit = fit_study(self.study(self.logs(number, played)))
            yield self.judge.trial(self.seed + number, *fit, model, self.judge.reached(played))


def workers_for(robots: int, workers: int | None) -> int:
    """How many processes share the work on so many `robots`: `workers`, None: as many as pay."""
    if workers is not None:
        return max(1, min(workers, robots))
    return max(1, min(default_threads(), robots // _ROBOTS_EACH))


def judged_by(trials: Trials, numbers: Sequence[int], pool: Executor, workers: int) -> Iterator[Trial]:
    """The trials of the robots of these `numbers`, in their order.

    Args:
        trials: of the rehearsal.
        numbers: of the robots.
        pool: processes that have the trials at hand.
        workers: how many they are; one: it is done here, robot by robot.
    """
    if workers == 1:
        yield from trials.judged(numbers)
        return
    each = min(_CHUNK, -(-len(numbers) // workers))
    for some in pool.map(_judged, [numbers[k : k + each] for k in range(0, len(numbers), each)]):
        yield from some


_own: list[Any] = []


class _Here(Executor):
    """No other process: what is submitted is done."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def helpers(own: Any, workers: int) -> Iterator[Executor]:
    """So many processes, `workers`, each of which keeps what it was begun with, `own`, for `at_hand`; one: this one."""
    if workers == 1:
        _begin(own)
        yield _Here()
        return
    with one_thread():
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (own,))
        try:
            for _ in range(workers):
                pool.submit(int)  # so that all begin at once
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(own: Any) -> None:
    _own[:] = [own]


def at_hand(work: Callable[[Any], Any]) -> Any:
    """What `work` makes of what this process was begun with."""
    return work(_own[0])


def _judged(numbers: Sequence[int]) -> list[Trial]:
    return list(at_hand(lambda trials: trials.judged(numbers)))
