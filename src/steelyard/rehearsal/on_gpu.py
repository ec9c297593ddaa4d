"""`run_trials_on_gpu`: simulates all robots of a rehearsal at once on a GPU and computes the rows of their logs.

Processes on the CPU fit the robots while the GPU computes the rows of the next ones. Each robot has its own noise,
cut-off and standstills.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.cuda.device import Device
from steelyard.dynamics.native.compiled_function import default_threads
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.rounding_bias import NEGLIGIBLE
from steelyard.ground.arrays import Array
from steelyard.identification.identify import fit_rows
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.observe import MotionTable, filtered_rows, motion_blocks
from steelyard.regression.rows import Rows
from steelyard.rehearsal._judge import Extremes, Trial
from steelyard.rehearsal.plants import BANDWIDTH
from steelyard.rehearsal.trials import Trials, with_shared
from steelyard.signals.filters import LowPass, motion_bands
from steelyard.signals.prepare import Motion, Preparation, cutoffs_of, long_pieces, prepare_together
from steelyard.signals.rounding import acceleration_noise
from steelyard.signals.standing import longer_than
from steelyard.simulation.on_gpu import FollowOnGpu
from steelyard.simulation.play import ENCODER
from steelyard.study import Study

# Shares of the device's free memory for simulated signals, and for computing rows.
_SIGNALS_SHARE, _ROWS_SHARE = 0.3, 0.4
# Largest number of robots whose rows are computed at once, and the number of arrays of a signal's size that this needs.
_AT_ONCE, _ARRAYS = 512, 24
# Number of robots that a process fits at once.
_CHUNK = 16
# If the rounding of positions exceeds this fraction of the negligible level, the CPU handles the robot.
_SAFE = 0.8
# Positions beyond this mean that a simulation has diverged [rad or m], as in `simulate`.
_BOUND = 1e4


@dataclass(frozen=True, eq=False)
class LogRows:
    """Rows of one log of each robot of a batch.

    Attributes:
        filter: Low-pass filter of the rows.
        keep: Samples that are used.
        samples: Number of samples of a log.
        parts: Used samples of each part, and the file of its rows, shape (robots, rows, columns).
        slow: Whether each joint hardly moves, shape (robots, samples, joints), as bits.
    """

    filter: LowPass
    keep: slice
    samples: int
    parts: tuple[tuple[slice, Path], ...]
    slow: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class RowFitter:
    """Fits robots from their rows.

    Attributes:
        trials: Trials of the rehearsal.
    """

    trials: Trials

    @cached_property
    def study(self) -> Study:
        """A study without logs: robot, terms and preparation."""
        nominal, settings = (
            self.trials.nominal,
            Preparation(velocity="differentiated").for_rows(torques=True, one_by_one=True),
        )
        return Study(nominal.robot, (), (), nominal.terms, settings, 0.0, known_base=self.trials.base)

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.study.dynamics, self.study.base.independent)

    def run(
        self, numbers: Sequence[int], part: slice, extremes: Sequence[Extremes | None], logs: Sequence[LogRows]
    ) -> list[Trial]:
        """Fit and check robots.

        Args:
            numbers: Numbers of the robots.
            part: Positions of these robots in the files of rows.
            extremes: Largest values of each robot; None: the CPU simulates this robot.
            logs: Rows of their logs.
        """
        parts = [[(every, np.load(file, mmap_mode="r")[part]) for every, file in log.parts] for log in logs]
        results: list[Trial] = []
        for k, number in enumerate(numbers):
            largest = extremes[k]
            if largest is None:
                results += self.trials.run([number])
                continue
            data = [
                self._data(log, log.slow[k], [(every, rows[k]) for every, rows in own])
                for log, own in zip(logs, parts, strict=True)
            ]
            fit = fit_rows(self.study, RegressionData.concatenate(data))
            truth = self.trials.model(number)
            results.append(self.trials.judge.trial(self.trials.seed + number, *fit, truth, largest))
        return results

    def _data(
        self, log: LogRows, slow: NDArray[np.uint8], parts: Sequence[tuple[slice, Array]]
    ) -> RegressionData:  # fmt: skip
        joints, nothing = self.study.robot.dof, np.empty(0)
        still = np.unpackbits(slow, count=log.samples * joints).reshape(log.samples, joints).astype(bool)
        motion = Motion(
            np.zeros(log.samples), nothing, nothing, nothing, nothing, log.filter, log.keep,
            "differentiated", standing=longer_than(min(log.filter.memory, log.samples - 1), still), fit_standing=False,
        )  # fmt: skip
        blocks: list[Block] = list(motion_blocks(self.rows, motion, parts))
        return RegressionData(self.rows.equations, self.rows.parameters, lambda: blocks, motion.row_period)


class _TableOnDevice(MotionTable):
    """Rows of many robots, shape (samples, columns · robots), computed by `lanes` on the device."""

    lanes: Any

    def begin(self) -> None:
        self.robots = self.motion.q.shape[2]

    def filtered(self, part: slice) -> Any:
        return self.motion.filter.of(self.make, self.samples, part)

    def make(self, start: int, stop: int) -> Any:
        own = slice(start + self.low, stop + self.low)
        inputs = {name: getattr(self.motion, name)[own] for name in self.rows.function.inputs}
        # The kernel loops over motions and, contiguous in memory, over samples. Here its motions are our samples, and
        # its samples are our robots.
        return self.lanes(stop - start, self.robots, **inputs).reshape(stop - start, -1)


class RobotsOnGpu:
    """Simulates the robots of a rehearsal on a GPU and computes their rows.

    Args:
        trials: Trials of the rehearsal.
        study: Study of the logs of the first robot, for everything that all robots share.
        device: GPU.
    """

    def __init__(self, trials: Trials, study: Study, device: Device) -> None:
        self.trials, self.device, robot = trials, device, trials.nominal.robot
        self.fitter = RowFitter(trials)
        self.settings = self.fitter.study.preparation
        study = replace(study, preparation=self.settings)
        motions = [study.first_motions(k) for k in range(0, len(study.logs), trials.passes)]
        plain = not study.terms.history and all(len(m) == 1 and m[0].velocity == "differentiated" for m in motions)
        logs = study.beginnings[:: trials.passes]
        if not plain or any(len(m[0].t) != len(log) for m, log in zip(motions, logs, strict=True)):
            raise SteelyardError("The GPU only supports plain terms and whole motions; rehearse without the GPU.")
        self.templates = [m[0] for m in motions]
        self._lanes = device.lanes(self.fitter.rows.function)
        self._follow = [
            FollowOnGpu(trials.model(0), m, trials.rate, trials.nominal, BANDWIDTH, device) for m in trials.motions
        ]
        signal = 8 * robot.dof * sum(len(m.t) for m in self.templates)
        self.simulated_at_once = max(32, int(_SIGNALS_SHARE * device.free() / (3 * signal)))
        self.rows_at_once = int(np.clip(_ROWS_SHARE * device.free() / (_ARRAYS * signal), 32, _AT_ONCE))
        self._acceleration_noise = lru_cache(64)(acceleration_noise)

    def batches(self, numbers: Sequence[int], folder: Path, threads: int) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `RowFitter.run` in batches: numbers, largest values, and rows of the logs.

        Args:
            numbers: Numbers of the robots.
            folder: Folder for the files of rows.
            threads: Number of threads that draw noise.
        """
        for first in range(0, len(numbers), self.simulated_at_once):
            batch = numbers[first : first + self.simulated_at_once]
            theta = np.array([self.trials.model(k).theta for k in batch])
            signals = [follow(theta) for follow in self._follow]
            extremes = self._extremes(batch, signals)
            for at in range(0, len(batch), self.rows_at_once):
                part = slice(at, at + self.rows_at_once)
                own = [(np.rint(q[..., part] / ENCODER) * ENCODER, tau[..., part]) for q, _, tau in signals]
                yield from self._by_cutoff(batch[part], extremes[part], own, folder, threads)

    def _extremes(self, numbers: Sequence[int], signals: Sequence[tuple[Any, Any, Any]]) -> list[Extremes]:
        """Compute the largest values of each robot; a diverged one is simulated on the CPU, which raises the error."""
        judge, fetch, place = self.trials.judge, self.device.fetch, self.device.place
        middle = place(judge.middle)[:, None]
        most: list[list[Array]] = []
        for k, (q, dq, tau) in enumerate(signals):
            reference = place(judge.reference(k, self.templates[k].t))[:, :, None]
            largest = [np.abs(q - middle).max(axis=0), np.abs(dq).max(axis=0), np.abs(tau).max(axis=0)]
            errors = np.abs(q - reference).max(axis=(0, 1)), np.abs(q).max(axis=(0, 1))
            most.append([fetch(x) for x in (*largest, *errors)])
        q, dq, tau, error, size = (np.max(x, axis=0) for x in zip(*most, strict=True))
        for k in np.flatnonzero(~(size <= _BOUND)).tolist():
            next(self.trials.simulate([numbers[k]]))
        return [Extremes(q[:, k], dq[:, k], tau[:, k], float(error[k])) for k in range(len(numbers))]

    def _by_cutoff(
        self, numbers: Sequence[int], extremes: Sequence[Extremes], signals: Sequence[tuple[Any, Any]], folder: Path,
        threads: int,
    ) -> Iterator[tuple[Any, ...]]:  # fmt: skip
        """Yield batches of robots with equal cut-off; `signals` are measured positions and true torques."""
        period = self.templates[0].filter.period
        judges = long_pieces([len(m.t) for m in self.templates])
        bands = [self.device.fetch(motion_bands(signals[k][0], period)) for k in judges]
        cutoffs = cutoffs_of(np.array(bands), period)
        for cutoff_hz in np.unique(cutoffs):
            members: list[int] = np.flatnonzero(cutoffs == cutoff_hz).tolist()
            indices, all_robots = self.device.place(np.array(members)), len(members) == len(numbers)
            own = signals if all_robots else [(q[..., indices], tau[..., indices]) for q, tau in signals]
            logs: list[LogRows] = []
            largest: list[Extremes | None] = [extremes[k] for k in members]
            for k, (q, tau) in enumerate(own):
                motion, slow = prepare_together(self.templates[k], q, tau, self.settings, float(cutoff_hz))
                for robot in self._affected_by_rounding(motion).tolist():
                    largest[robot] = None
                bits = np.packbits(self.device.fetch(slow.transpose(2, 0, 1).copy()).reshape(len(members), -1), axis=1)
                for turn in range(self.trials.passes):
                    noise = self._noise([numbers[j] for j in members], k * self.trials.passes + turn, len(q), threads)
                    parts = self._rows(replace(motion, tau=tau + noise), folder)
                    logs.append(LogRows(motion.filter, motion.keep, len(q), parts, bits))
            yield [numbers[j] for j in members], largest, logs

    def _noise(self, numbers: Sequence[int], log: int, samples: int, threads: int) -> Any:
        """Draw the torque noise of one log of each robot, as its sensors do."""
        joints = self.trials.nominal.robot.dof
        noise = np.empty((len(numbers), samples, joints))

        def draw(k: int) -> None:
            noise[k] = self.trials.sensors(numbers[k])[log].noise_of_torque(samples, joints)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(draw, range(len(numbers))))
        return self.device.place(noise).transpose(1, 2, 0)

    def _affected_by_rounding(self, motion: Motion) -> NDArray[np.int64]:
        """Find the robots for which the rounding of positions might affect the result."""
        inner = slice(motion.keep.start, motion.keep.stop)
        std = self.device.fetch(motion.ddq[inner].std(axis=0))
        noise = ENCODER / np.sqrt(12.0) * self._acceleration_noise(motion.filter) / np.maximum(std, 1e-12)
        return np.flatnonzero(~np.all(noise <= _SAFE * NEGLIGIBLE, axis=0))

    def _rows(self, motion: Motion, folder: Path) -> tuple[tuple[slice, Path], ...]:
        """Write the filtered rows of all robots to files."""
        motion = replace(motion, tau=motion.tau.copy())  # the kernel needs contiguous memory
        table = _TableOnDevice(self.fitter.rows, motion)
        table.lanes = self._lanes
        out = []
        for every, filtered in filtered_rows(table):
            rows = self.device.fetch(filtered.reshape(len(filtered), -1, table.robots).transpose(2, 0, 1).copy())
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".npy", delete=False) as file:
                np.save(file, rows)
            out.append((every, Path(file.name)))
        return tuple(out)


def run_trials_on_gpu(
    trials: Trials, numbers: Sequence[int], study: Study, pool: Executor, device: Device
) -> Iterator[Trial]:  # fmt: skip
    """Run trials on a GPU and yield their results in order.

    Args:
        trials: Trials.
        numbers: Numbers of the robots.
        study: Study of the logs of the first robot.
        pool: Processes that fit and share a `RowFitter`.
        device: GPU that simulates the robots and computes rows.
    """
    threads = default_threads()
    robots = RobotsOnGpu(trials, study, device)
    with tempfile.TemporaryDirectory() as folder:
        batches = robots.batches(numbers, Path(folder), threads)
        waiting: deque[tuple[Sequence[int], list[Future[list[Trial]]], list[LogRows]]] = deque()
        ready: dict[int, Trial] = {}
        for number in numbers:
            while number not in ready:
                # One batch is fitted while the GPU computes the next one.
                while len(waiting) < 2 and (batch := next(batches, None)) is not None:
                    own, extremes, logs = batch
                    waiting.append((own, _submit(pool, own, extremes, logs), logs))
                own, jobs, logs = waiting.popleft()
                ready |= zip(own, (trial for job in jobs for trial in job.result()), strict=True)
                for file in (file for log in logs for _, file in log.parts):
                    file.unlink()
            yield ready.pop(number)


def _submit(
    pool: Executor, numbers: Sequence[int], extremes: Sequence[Extremes | None], logs: Sequence[LogRows]
) -> list[Future[list[Trial]]]:
    """Submit robots to the processes in chunks."""
    chunks = [slice(k, k + _CHUNK) for k in range(0, len(numbers), _CHUNK)]
    return [
        pool.submit(_run, numbers[c], c, extremes[c], [replace(log, slow=log.slow[c]) for log in logs]) for c in chunks
    ]


def _run(*arguments: Any) -> list[Trial]:
    return with_shared(lambda fitter: fitter.run(*arguments))  # type: ignore[no-any-return]
