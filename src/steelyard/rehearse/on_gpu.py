"""`judged_on_gpu`: planted robots of a rehearsal move all at once on a GPU, which makes the rows of their logs, too.

From the rows on, all is what the processor does for one robot: fits in processes side by side, while the GPU makes the
rows of the next robots. What differs from robot to robot is chosen for each: its noise, its cut-off, its standstills.
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
from steelyard.dynamics.native.run import default_threads
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.rounding import NEGLIGIBLE
from steelyard.ground.arrays import Array
from steelyard.identification.identify import fit_rows
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.observe import MotionTable, filtered_rows, motion_blocks
from steelyard.regression.rows import Rows
from steelyard.rehearse._judge import Reached, Trial
from steelyard.rehearse.plants import BANDWIDTH
from steelyard.rehearse.trials import Trials, at_hand
from steelyard.signals.filters import LowPass, motion_bands
from steelyard.signals.prepare import Motion, Preparation, cutoffs_of, deciding, prepare_together
from steelyard.signals.rounding import acceleration_noise
from steelyard.signals.standing import longer_than
from steelyard.simulation.on_gpu import FollowOnGpu
from steelyard.simulation.play import ENCODER
from steelyard.study import Study

# Parts of a device's free memory for what robots do, and for what is made of it.
_MOVES, _MAKES = 0.3, 0.4
# Robots whose rows are made at once, at most, and arrays as large as a signal that this takes.
_AT_ONCE, _ARRAYS = 512, 24
# Robots that a process fits at once.
_CHUNK = 16
# Where the rounding of positions comes this near to what would be looked into, a robot goes the processor's way.
_SAFE = 0.8
# Positions beyond this have gone wrong, rad (m), as in `simulate`.
_BOUND = 1e4


@dataclass(frozen=True, eq=False)
class RowsOfLogs:
    """One log each of some robots, as rows.

    Attributes:
        filter: that they went through.
        keep: samples that are kept.
        samples: of the logs.
        parts: what is kept of each part, and a file of its rows, `(robots, rows, columns)`.
        slow: where each robot hardly moves, `(robots, samples, joints)`, in bits.
    """

    filter: LowPass
    keep: slice
    samples: int
    parts: tuple[tuple[slice, Path], ...]
    slow: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Fitter:
    """What a process needs to fit robots from rows.

    Attributes:
        trials: of the rehearsal.
    """

    trials: Trials

    @cached_property
    def study(self) -> Study:
        """Of no log: the robot, its terms and how signals are made ready."""
        nominal, settings = (
            self.trials.nominal,
            Preparation(velocity="differentiated").for_rows(torques=True, one_by_one=True),
        )
        return Study(nominal.robot, (), (), nominal.terms, settings, 0.0, known_base=self.trials.base)

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.study.dynamics, self.study.base.independent)

    def judged(
        self, numbers: Sequence[int], among: slice, reached: Sequence[Reached | None], logs: Sequence[RowsOfLogs]
    ) -> list[Trial]:
        """The trials of robots.

        Args:
            numbers: of the robots.
            among: where they stand in the files of rows.
            reached: how far each went; None: it goes the processor's way.
            logs: their rows.
        """
        parts = [[(every, np.load(file, mmap_mode="r")[among]) for every, file in log.parts] for log in logs]
        found: list[Trial] = []
        for k, number in enumerate(numbers):
            far = reached[k]
            if far is None:
                found += self.trials.judged([number])
                continue
            data = [
                self._data(log, log.slow[k], [(every, rows[k]) for every, rows in own])
                for log, own in zip(logs, parts, strict=True)
            ]
            fit = fit_rows(self.study, RegressionData.joined(data))
            found.append(self.trials.judge.trial(self.trials.seed + number, *fit, self.trials.model(number), far))
        return found

    def _data(
        self, log: RowsOfLogs, slow: NDArray[np.uint8], parts: Sequence[tuple[slice, Array]]
    ) -> RegressionData:  # fmt: skip
        joints, nothing = self.study.robot.dof, np.empty(0)
        still = np.unpackbits(slow, count=log.samples * joints).reshape(log.samples, joints).astype(bool)
        motion = Motion(
            np.zeros(log.samples), nothing, nothing, nothing, nothing, log.filter, log.keep,
            "differentiated", standing=longer_than(min(log.filter.memory, log.samples - 1), still), fit_standing=False,
        )  # fmt: skip
        blocks: list[Block] = list(motion_blocks(self.rows, motion, parts))
        return RegressionData(self.rows.equations, self.rows.parameters, lambda: blocks, motion.row_period)


class _TableThere(MotionTable):
    """Rows of many robots, `(samples, columns · robots)`, where `lanes` makes them."""

    lanes: Any

    def begin(self) -> None:
        self.robots = self.motion.q.shape[2]

    def filtered(self, part: slice) -> Any:
        return self.motion.filter.of(self.make, self.samples, part)

    def make(self, start: int, stop: int) -> Any:
        own = slice(start + self.low, stop + self.low)
        given = {name: getattr(self.motion, name)[own] for name in self.rows.function.inputs}
        # Samples stand for the kernel's motions, and robots, which lie side by side, for its samples.
        return self.lanes(stop - start, self.robots, **given).reshape(stop - start, -1)


class PlantsOnGpu:
    """Makes the rows of robots of one rehearsal.

    Args:
        trials: of the rehearsal.
        study: of the logs of its first robot: what is the same for all is taken from it.
        device: where.
    """

    def __init__(self, trials: Trials, study: Study, device: Device) -> None:
        self.trials, self.device, robot = trials, device, trials.nominal.robot
        self.fitter = Fitter(trials)
        self.settings = self.fitter.study.preparation
        study = replace(study, preparation=self.settings)
        motions = [study.first_motions(k) for k in range(0, len(study.logs), trials.passes)]
        plain = not study.terms.history and all(len(m) == 1 and m[0].velocity == "differentiated" for m in motions)
        logs = study.beginnings[:: trials.passes]
        if not plain or any(len(m[0].t) != len(log) for m, log in zip(motions, logs, strict=True)):
            raise SteelyardError("A GPU makes rows of plain terms and whole motions alone; leave the GPU out.")
        self.like = [m[0] for m in motions]
        self._lanes = device.lanes(self.fitter.rows.function)
        self._follow = [
            FollowOnGpu(trials.model(0), m, trials.rate, trials.nominal, BANDWIDTH, device) for m in trials.motions
        ]
        signal = 8 * robot.dof * sum(len(m.t) for m in self.like)
        self.moved_at_once = max(32, int(_MOVES * device.free() / (3 * signal)))
        self.made_at_once = int(np.clip(_MAKES * device.free() / (_ARRAYS * signal), 32, _AT_ONCE))
        self._acceleration_noise = lru_cache(64)(acceleration_noise)

    def batches(self, numbers: Sequence[int], folder: Path, threads: int) -> Iterator[tuple[Any, ...]]:
        """What `Fitter.judged` wants of some of the robots of these `numbers` at a time: their numbers, how far each
        went, and rows, written to `folder`; noise is drawn by so many `threads`."""
        for first in range(0, len(numbers), self.moved_at_once):
            moved = numbers[first : first + self.moved_at_once]
            theta = np.array([self.trials.model(k).theta for k in moved])
            signals = [follow(theta) for follow in self._follow]
            reached = self._reached(moved, signals)
            for at in range(0, len(moved), self.made_at_once):
                part = slice(at, at + self.made_at_once)
                own = [(np.rint(q[..., part] / ENCODER) * ENCODER, tau[..., part]) for q, _, tau in signals]
                yield from self._made(moved[part], reached[part], own, folder, threads)

    def _reached(self, numbers: Sequence[int], signals: Sequence[tuple[Any, Any, Any]]) -> list[Reached]:
        """How far each robot went; one that went wrong is simulated once more, which says what is wrong."""
        judge, fetch, place = self.trials.judge, self.device.fetch, self.device.place
        middle = place(judge.middle)[:, None]
        most: list[list[Array]] = []
        for k, (q, dq, tau) in enumerate(signals):
            wanted = place(judge.wanted(k, self.like[k].t))[:, :, None]
            far = [np.abs(q - middle).max(axis=0), np.abs(dq).max(axis=0), np.abs(tau).max(axis=0)]
            most.append([fetch(x) for x in (*far, np.abs(q - wanted).max(axis=(0, 1)), np.abs(q).max(axis=(0, 1)))])
        q, dq, tau, off, size = (np.max(x, axis=0) for x in zip(*most, strict=True))
        for k in np.flatnonzero(~(size <= _BOUND)).tolist():
            next(self.trials.played([numbers[k]]))
        return [Reached(q[:, k], dq[:, k], tau[:, k], float(off[k])) for k in range(len(numbers))]

    def _made(
        self, numbers: Sequence[int], reached: Sequence[Reached], signals: Sequence[tuple[Any, Any]], folder: Path,
        threads: int,
    ) -> Iterator[tuple[Any, ...]]:  # fmt: skip
        """The same for robots whose measured positions and true torques are `signals`, cut-off by cut-off."""
        period = self.like[0].filter.period
        judges = deciding([len(m.t) for m in self.like])
        bands = [self.device.fetch(motion_bands(signals[k][0], period)) for k in judges]
        cutoffs = cutoffs_of(np.array(bands), period)
        for cutoff_hz in np.unique(cutoffs):
            members: list[int] = np.flatnonzero(cutoffs == cutoff_hz).tolist()
            there, everybody = self.device.place(np.array(members)), len(members) == len(numbers)
            own = signals if everybody else [(q[..., there], tau[..., there]) for q, tau in signals]
            logs: list[RowsOfLogs] = []
            far: list[Reached | None] = [reached[k] for k in members]
            for k, (q, tau) in enumerate(own):
                motion, slow = prepare_together(self.like[k], q, tau, self.settings, float(cutoff_hz))
                for robot in self._rounded(motion).tolist():
                    far[robot] = None
                bits = np.packbits(self.device.fetch(slow.transpose(2, 0, 1).copy()).reshape(len(members), -1), axis=1)
                for turn in range(self.trials.passes):
                    noise = self._noise([numbers[j] for j in members], k * self.trials.passes + turn, len(q), threads)
                    parts = self._rows(replace(motion, tau=tau + noise), folder)
                    logs.append(RowsOfLogs(motion.filter, motion.keep, len(q), parts, bits))
            yield [numbers[j] for j in members], far, logs

    def _noise(self, numbers: Sequence[int], log: int, samples: int, threads: int) -> Any:
        """Of the torques of a `log` of each robot, drawn as its sensors draw it."""
        joints = self.trials.nominal.robot.dof
        drawn = np.empty((len(numbers), samples, joints))

        def draw(k: int) -> None:
            drawn[k] = self.trials.sensors(numbers[k])[log].noise_of_torque(samples, joints)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(draw, range(len(numbers))))
        return self.device.place(drawn).transpose(1, 2, 0)

    def _rounded(self, motion: Motion) -> NDArray[np.int64]:
        """Robots of which the rounding of positions might move what is found."""
        inner = slice(motion.keep.start, motion.keep.stop)
        std = self.device.fetch(motion.ddq[inner].std(axis=0))
        noise = ENCODER / np.sqrt(12.0) * self._acceleration_noise(motion.filter) / np.maximum(std, 1e-12)
        return np.flatnonzero(~np.all(noise <= _SAFE * NEGLIGIBLE, axis=0))

    def _rows(self, motion: Motion, folder: Path) -> tuple[tuple[slice, Path], ...]:
        """The filtered rows of all robots, written."""
        motion = replace(motion, tau=motion.tau.copy())  # in the order that the kernel reads
        table = _TableThere(self.fitter.rows, motion)
        table.lanes = self._lanes
        out = []
        for every, filtered in filtered_rows(table):
            rows = self.device.fetch(filtered.reshape(len(filtered), -1, table.robots).transpose(2, 0, 1).copy())
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".npy", delete=False) as file:
                np.save(file, rows)
            out.append((every, Path(file.name)))
        return tuple(out)


def judged_on_gpu(
    trials: Trials, numbers: Sequence[int], study: Study, pool: Executor, device: Device
) -> Iterator[Trial]:  # fmt: skip
    """The trials of robots, in their order.

    Args:
        trials: of the rehearsal.
        numbers: of the robots.
        study: of the logs of the first robot.
        pool: processes that fit; each has a `Fitter` at hand.
        device: where robots move and rows are made.
    """
    threads = default_threads()
    plants = PlantsOnGpu(trials, study, device)
    with tempfile.TemporaryDirectory() as folder:
        made = plants.batches(numbers, Path(folder), threads)
        waiting: deque[tuple[Sequence[int], list[Future[list[Trial]]], list[RowsOfLogs]]] = deque()
        ready: dict[int, Trial] = {}
        for number in numbers:
            while number not in ready:
                while len(waiting) < 2 and (some := next(made, None)) is not None:  # some are fitted as others are made
                    own, reached, logs = some
                    waiting.append((own, _sent(pool, own, reached, logs), logs))
                own, jobs, logs = waiting.popleft()
                ready |= zip(own, (trial for job in jobs for trial in job.result()), strict=True)
                for file in (file for log in logs for _, file in log.parts):
                    file.unlink()
            yield ready.pop(number)


def _sent(
    pool: Executor, numbers: Sequence[int], reached: Sequence[Reached | None], logs: Sequence[RowsOfLogs]
) -> list[Future[list[Trial]]]:
    """Robots on their way to be fitted, some for each process."""
    chunks = [slice(k, k + _CHUNK) for k in range(0, len(numbers), _CHUNK)]
    return [
        pool.submit(_judged, numbers[c], c, reached[c], [replace(log, slow=log.slow[c]) for log in logs])
        for c in chunks
    ]


def _judged(*given: Any) -> list[Trial]:
    return at_hand(lambda fitter: fitter.judged(*given))  # type: ignore[no-any-return]
