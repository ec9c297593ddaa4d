"""The search for the best motion by gradients from several starts; it reports progress, can be stopped and resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation._lagrangian import Iterate, step
from steelyard.excitation._search_state import SearchState, check_owner
from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.plan import Plan
from steelyard.excitation.search_problem import SearchProblem
from steelyard.excitation.settle import holds, settle
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.files import OwnFile, plain
from steelyard.ground.interrupt import stop_wanted
from steelyard.ground.progress import ProgressReport, has_progress_callback, report_progress
from steelyard.ground.short_repr import short_repr
from steelyard.ground.untrusted_files import read_json

_FORMAT = "steelyard-excitation-search-1"
_ROUNDS_OF_TIGHTENING = 5


@dataclass(frozen=True)
class SearchSettings:
    """Effort of the search.

    A round improves each of its motions by `repeats` outer iterations of up to `iterations` steps: first `starts`
    random ones, then the best `survivors[0]` of them, and so on. If the criterion depends on extreme eigenvalues, the
    rounds minimise a p-norm of growing `sharpness` p: 4 finds good regions, larger values the exact minimum.

    Attributes:
        starts: Number of random starts.
        survivors: Number of motions in each later round.
        sharpness: Exponent of each round.
        repeats: Outer iterations per round.
        iterations: Largest number of inner iterations.
        gpu: Improve all starts at once on a GPU; a thousand take seconds.
    """

    starts: int = 6
    survivors: tuple[int, ...] = (2, 1, 1)
    sharpness: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0)
    repeats: int = 2
    iterations: int = 60
    gpu: bool = False

    def __post_init__(self) -> None:
        if min(self.starts, *self.survivors, self.repeats, self.iterations) < 1:
            raise ExcitationError("A search needs at least one start, survivor, repeat and iteration.")
        if len(self.sharpness) != len(self.survivors) + 1:
            raise ExcitationError("A search needs one sharpness per round: one more than it has numbers of survivors.")

    @property
    def members(self) -> tuple[int, ...]:
        """Number of motions that each round improves."""
        out = [self.starts]
        for n in self.survivors:
            out.append(min(n, out[-1]))
        return tuple(out)

    @property
    def stages(self) -> int:
        return sum(self.members) * self.repeats

    def locate(self, stage: int) -> tuple[int, int, int]:
        """Return round, member and repeat of a `stage`, which counts from 0."""
        left = stage
        for number, members in enumerate(self.members):
            if left < members * self.repeats:
                return number, left // self.repeats, left % self.repeats
            left -= members * self.repeats
        raise IndexError(stage)


class _StoppedError(Exception):
    """The user stopped the search; its result is the best motion so far."""


@short_repr
@dataclass(frozen=True)
class Progress(ProgressReport):
    """Report to a callback after each stage.

    Attributes:
        number: Number of finished stages.
        count: Number of all stages.
        evaluations: Evaluations so far.
        best: Best criterion so far.
    """

    number: int = 0
    count: int = 0
    evaluations: int = 0
    best: float = math.nan

    @staticmethod
    def of(doing: str, number: int, count: int, evaluations: int, best: float, **results: Any) -> Progress:
        """Make a report.

        Args:
            doing: Description of the stage.
            number: Number of finished stages.
            count: Number of all stages.
            evaluations: Evaluations so far.
            best: Best criterion so far.
            results: Further values for plots.
        """
        values = plain({"of": "motion", "evaluations": evaluations, "best": best, **results})
        return Progress(doing, number / max(count, 1), f"best {best:.5g}", values, number, count, evaluations, best)

    def report(self, watch: Callable[[Progress], Any] | None) -> bool:
        """Report to all listeners and to `watch`; return whether `watch` returned True, which stops the search."""
        self.send()
        return watch is not None and watch(self) is True

    def send(self) -> None:
        """Report to all listeners."""
        report_progress(self.stage, self.fraction, self.message, self.results)


class Search:
    """Runs all stages; the same problem, settings and seed give the same motion, resumed or not.

    Args:
        problem: The problem.
        settings: Effort of the search.
        seed: Seed of the starts.
        progress: Function called after every stage, as in `excite`.
        checkpoint: File to write and to resume from.
        key: Key of the problem; only the same key resumes the file.
    """

    def __init__(
        self,
        problem: SearchProblem,
        settings: SearchSettings,
        seed: int,
        progress: Callable[[Progress], Any] | None = None,
        checkpoint: str | Path | None = None,
        key: str = "",
    ) -> None:
        self.key = key
        self.problem, self.settings, self.seed = problem, settings, seed
        self.progress, self.checkpoint = progress, None if checkpoint is None else Path(checkpoint)
        self._file = None if checkpoint is None else OwnFile(checkpoint)
        self.active: list[Constraint] = [c for c in problem.constraints if c.smooth and not c.lazy]
        self.state = self._restore()
        self.stopped = False  # whether it ended before its last stage
        self._best_rank, self._best_values = np.inf, dict[str, Any]()  # rank of the best motion; its values for plots

    def run(self) -> Trajectory:
        """Return the best motion; every constraint holds at every instant."""
        if self.state.best is not None:
            self._update_best_values(self.state.best, self.state.rank)
            self._send(earlier=self.state.history)
        self.stopped = True
        with suppress(_StoppedError):
            if self.settings.gpu and self.state.stage < self.settings.starts * self.settings.repeats:
                self._all_starts()
                self._report()
            while self.state.stage < self.settings.stages:
                self._stage()
                if self._report() and self.state.stage < self.settings.stages:
                    return self._deliver()
            self.stopped = False
        return self._deliver()

    def plan(self, columns: Sequence[str], units: Sequence[str], **more: Any) -> Plan:
        """Run the search and return its plan.

        Args:
            columns: Names of the parameters.
            units: Units of the parameters.
            more: The plan's other fields.
        """
        trajectory, goal = self.run(), self.problem.goal
        x, state = trajectory.coefficients, self.state
        return Plan.of_search(
            trajectory, goal, goal.observation.grams(x), self.problem.constraints, columns, units, value=goal.value(x),
            start_value=state.start_value, evaluations=state.evaluations, history=tuple(state.history), seed=self.seed,
            stopped=self.stopped, **more,
        )  # fmt: skip

    def _stage(self) -> None:
        s = self.state
        number, member, repeat = self.settings.locate(s.stage)
        if number > 0 and member == repeat == 0:
            s.pool = sorted(s.finished, key=lambda pair: pair[0])[: self.settings.members[number]]
            s.finished = []
        if repeat == 0:
            s.current = self._start(member) if number == 0 else s.pool[member][1]
        rank = self._advance(self.settings.sharpness[number])
        if repeat == self.settings.repeats - 1:
            assert s.current is not None
            s.finished.append((rank, s.current))
        s.stage += 1

    def _all_starts(self) -> None:
        """Run the first round on a GPU; only the best of its motions continue."""
        from steelyard.excitation.gpu_starts.round import ManyStarts

        s, own, calls = self.state, self.settings, 0
        first = own.starts * own.repeats
        self._start(0)

        def stop() -> bool:
            nonlocal calls
            calls += 1
            report = Progress.of(
                f"Looking for a motion: {own.starts} at once", 0, own.stages, calls * own.starts, **self._best_values
            )
            share = min(calls / (own.repeats * own.iterations), 1.0)
            replace(report, fraction=share * first / own.stages).send()
            return stop_wanted()

        many = ManyStarts(self.problem, self.active)
        keep = own.members[1] if len(own.members) > 1 else 1
        s.finished, evaluations = many.improve(
            own.starts, self.seed, own.sharpness[0], own.repeats, own.iterations, keep, stop
        )
        s.evaluations, s.stage = s.evaluations + evaluations, first
        for _, iterate in s.finished:
            self._offer(*self.problem.candidate(iterate.x, self.active))

    def _start(self, k: int) -> Iterate:
        x = self.problem.random_start(np.random.default_rng([self.seed, k]))
        if k == 0:
            self.state.start_value = self.problem.goal.value(x)
        self._offer(x, self.problem.rank(x))
        return Iterate(x)

    def _advance(self, sharpness: float, margins: list[float] | None = None) -> float:
        """Perform one outer iteration of the current motion and return its rank."""
        s = self.state
        assert s.current is not None
        before, count = s.current.evaluations, 0

        def objective(x: Array) -> tuple[float, Array]:
            nonlocal count
            if stop_wanted() and s.best is not None:
                raise _StoppedError
            value, gradient = self.problem.objective(x, sharpness)
            count += 1
            if has_progress_callback():
                self._send(count, now=self.problem.goal.criterion.report_value(value))
            return value, gradient

        s.current = step(objective, self.active, s.current, self.settings.iterations, margins)
        s.evaluations += s.current.evaluations - before
        x, rank = self.problem.candidate(s.current.x, self.active)
        self._offer(x, rank)
        return rank

    def _offer(self, x: Array, rank: float) -> None:
        s = self.state
        if rank < s.rank:
            s.best, s.rank = x, rank
            s.history.append((s.evaluations, self.problem.goal.value(x)))
            self._update_best_values(x, rank)

    def _deliver(self) -> Trajectory:
        """Settle the best motion; if settling would cost too much, tighten the constraints and search again."""
        assert self.state.best is not None
        problem, centre = self.problem, self.problem.centre
        best: tuple[float, Trajectory] | None = None
        margins = {id(c): 0.0 for c in problem.constraints}
        for _ in range(_ROUNDS_OF_TIGHTENING):
            target = centre.with_coefficients(self.state.best)
            settled = settle(target, centre, problem.constraints)
            rank = problem.rank(settled.coefficients)
            if best is None or rank < best[0]:
                best = (rank, settled)
            self._send(settled=problem.goal.criterion.report_value(best[0]))
            # Joint limits settle joint by joint at little cost; other constraints draw back the whole motion.
            others = [c for c in problem.constraints if c.smooth and not isinstance(c, JointLimits)]
            excess = {id(c): c.excess(target) for c in others}
            broken = [c for c in others if excess[id(c)] > 0.0]
            if not broken or stop_wanted():
                self.stopped = self.stopped or stop_wanted()
                break
            fresh = [c for c in broken if c not in self.active]
            self.active += fresh
            for c in broken:  # the excess over a constraint that was inactive says nothing about its grid
                margins[id(c)] += 0.0 if c in fresh else 1.05 * excess[id(c)]
            # A newly active constraint changes the problem; a tightened one moves only its boundary.
            if fresh:
                self.state.current = Iterate(settled.coefficients.copy())
            sharpness = self.settings.sharpness if fresh else self.settings.sharpness[-1:]
            with suppress(_StoppedError):
                self._search_again([margins[id(c)] for c in self.active], sharpness)
        assert best is not None
        self._check(best[1])
        return best[1]

    def _search_again(self, margins: list[float], sharpness: tuple[float, ...]) -> None:
        self.state.rank = np.inf  # the best motion so far breaks a limit
        for p in sharpness:
            for _ in range(self.settings.repeats):
                self._advance(p, margins)

    def _check(self, trajectory: Trajectory) -> None:
        if not holds(trajectory, self.problem.constraints):
            broken = max(self.problem.constraints, key=lambda c: c.excess(trajectory))
            raise ExcitationError(f"The search found no motion within all limits: {broken.blame(trajectory)}.")

    def _report(self) -> bool:
        s = self.state
        if self._file is not None:
            document = {"format": _FORMAT, "seed": self.seed, "problem": self.key, **s.to_dict()}
            self._file.write(json.dumps(document) + "\n")
        if s.best is None:
            return False
        values = {**self._best_values, "best": self.problem.goal.value(s.best)}
        report = Progress.of(self._doing(s.stage - 1), s.stage, self.settings.stages, s.evaluations, **values)
        return report.report(self.progress)

    def _doing(self, stage: int) -> str:
        if stage >= self.settings.stages:
            return "Keeping the motion within all limits"
        number, member, _ = self.settings.locate(stage)
        return f"Looking for a motion: round {number + 1} of {len(self.settings.members)}, motion {member + 1}"

    def _update_best_values(self, x: Array, rank: float) -> None:
        """Store the values for plots if the motion is the best so far."""
        if rank >= self._best_rank:
            return
        goal, self._best_rank = self.problem.goal, rank
        grams = goal.observation.grams(x)
        # Limits that the search ignores until a motion breaks them.
        inactive = [c for c in self.problem.constraints if c.smooth and c not in self.active]
        self._best_values = {
            "best": goal.criterion(goal.criterion_matrix(goal.join(grams))),
            "feasible": all(float(c.evaluate(x)[0].max(initial=-1.0)) <= 0.0 for c in inactive),
            **goal.progress_values(grams),
        }

    def _send(self, count: int = 0, **results: Any) -> None:
        """Report `count` further evaluations in the current stage, and the values `results`."""
        s, stages = self.state, self.settings.stages
        share = min(count / (self.settings.iterations + 1), 1.0)
        report = Progress.of(
            self._doing(s.stage), s.stage, stages, s.evaluations + count, **self._best_values, **results
        )
        replace(report, fraction=min((s.stage + share) / stages, 1.0)).send()

    def _restore(self) -> SearchState:
        if self.checkpoint is None or not self.checkpoint.exists():
            return SearchState()
        document = read_json(self.checkpoint, ExcitationError, "delete it, or name another file", exact=True)
        check_owner(document, _FORMAT, self.key, self.seed)
        state = SearchState.from_field(document)
        if not self._fits(state):
            document.fail("is damaged: its state does not fit this search; delete it.")
        return state

    def _fits(self, s: SearchState) -> bool:
        """Check that a state's motions have the right sizes and that it has those that its stage needs."""
        x = self.problem.centre.coefficients
        sizes = [len(c.evaluate(x)[0]) for c in self.active]
        iterates = [i for i in (s.current, *(i for _, i in (*s.pool, *s.finished))) if i is not None]
        same = all(len(i.x) == len(x) and [len(m) for m in i.multipliers] in ([], sizes) for i in iterates)
        if not same or s.stage > self.settings.stages or (s.best is not None and len(s.best) != len(x)):
            return False
        if s.stage == self.settings.stages:
            return s.best is not None
        number, member, repeat = self.settings.locate(s.stage)
        if repeat > 0:
            return s.current is not None
        return number == 0 or len(s.finished if member == 0 else s.pool) > member
