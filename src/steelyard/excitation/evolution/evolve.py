"""`evolve`: the motion that makes a robot's parameters visible, bred instead of derived."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits, Limits
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.criteria import Criterion
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.evolution._score import MotionScore, SampleTests
from steelyard.excitation.evolution.genome import Coefficients, Genome, Optimiser
from steelyard.excitation.evolution.strategies import Genetic, PiecewiseConstraint
from steelyard.excitation.evolution.via_points import ViaPoints
from steelyard.excitation.fitness import Fitness, Generation
from steelyard.excitation.plan import Plan
from steelyard.excitation.problem import FreeSpace, families_of, requirements
from steelyard.excitation.search import Progress, check_owner, search_key
from steelyard.excitation.settle import find_centre, holds
from steelyard.excitation.trajectories import Family, Fourier, Trajectory
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.files import OwnFile, plain
from steelyard.ground.interrupt import stop_wanted
from steelyard.ground.untrusted import read_json
from steelyard.parameters.terms import Terms
from steelyard.regression.factor import Factor
from steelyard.robot.robot import Robot

# `_Evolution`: generation after generation, to be watched, stopped and resumed.


_FORMAT = "steelyard-evolution-1"
# Generations without a single feasible individual after which a run is given up.
_PATIENCE = 10
# An evolution stands still where the best individual gains less than this (logarithm of the criterion: 1 %).
_STILL = 0.01


@dataclass
class _Record:
    """What a run has seen: the values of every generation (all a checkpoint needs) and the best individuals."""

    values: list[list[float]] = field(default_factory=list)
    bests: list[Array] = field(default_factory=list)
    value: float = np.inf
    history: list[tuple[int, float]] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    evaluations: int = 0

    def take(self, population: Array, values: Array) -> None:
        self.values.append(values.tolist())
        self.evaluations += len(values)
        k = int(np.argmin(values))
        if values[k] < self.value:
            self.bests.append(population[k].copy())
            self.value = float(values[k])
        self.history.append((self.evaluations, self.value))
        kept = values[np.isfinite(values)]
        mean = float(kept.mean()) if len(kept) else np.nan
        self.generations.append(Generation(self.evaluations, self.value, mean, len(kept), len(values)))

    def fitness(self, label: str, shown: Callable[[float], float]) -> Fitness:
        """The generations since the first feasible individual; `shown` turns a value into the criterion, which
        `label` names."""
        known = [g for g in self.generations if np.isfinite(g.best)]
        return Fitness(label, tuple(replace(g, best=shown(g.best), mean=shown(g.mean)) for g in known))

    @property
    def best(self) -> Array | None:
        return self.bests[-1] if self.bests else None

    def still(self, patience: int | None) -> bool:
        """Whether so many generations have brought next to nothing."""
        if patience is None or len(self.history) <= patience or not np.isfinite(self.value):
            return False
        return bool(self.history[-1 - patience][1] - self.value < _STILL)


class _Evolution:
    """Runs an optimiser. A checkpoint holds the values told so far, from which the run is replayed: nothing else of
    an optimiser's inside is stored, so any optimiser whose populations follow from its seed can be resumed."""

    def __init__(
        self,
        optimiser: Optimiser,
        genes: int,
        seed: int,
        evaluate: Callable[[Array], Array],
        shown: Callable[[float], float],
        progress: Callable[[Progress], Any] | None = None,
        checkpoint: str | Path | None = None,
        key: str = "",
        patience: int | None = None,
        drawn: Callable[[Array], dict[str, Any]] = lambda genes: {},
    ) -> None:
        """`evaluate` gives the values of a population; `shown` turns a value into the criterion people know; `drawn`
        says of the genes of one what there is to be drawn."""
        self.optimiser, self.evaluate, self.shown, self.patience = optimiser, evaluate, shown, patience
        self.drawn, self._drawn, self._bests, self.stopped = drawn, dict[str, Any](), 0, False
        self.progress, self.checkpoint, self.key, self.seed = progress, checkpoint, key, seed
        self._kept = None if checkpoint is None else OwnFile(checkpoint)
        self.strategy = optimiser.start(genes, seed)
        self.record = _Record()
        self._replay()

    def run(self) -> _Record:
        if self.record.values:
            earlier = [(n, self.shown(v)) for n, v in self.record.history if np.isfinite(v)]
            self._said(earlier=earlier).tell()
        while len(self.record.values) < self.optimiser.generations and not self.record.still(self.patience):
            population = self.strategy.ask()
            values = self.evaluate(population)
            self.record.take(population, values)
            self.strategy.tell(values)
            done = len(self.record.values)
            if self.record.best is None and done >= _PATIENCE:
                break
            if self._report():
                self.stopped = done < self.optimiser.generations
                break
        if self.record.best is None:
            raise ExcitationError(
                f"None of {self.record.evaluations} individuals keeps to all limits; give a region that the robot "
                "reaches, lower speeds, or wider limits."
            )
        return self.record

    def _report(self) -> bool:
        r = self.record
        if self._kept is not None:
            document = {"format": _FORMAT, "seed": self.seed, "problem": self.key, "values": plain(r.values),
                        "best": None if r.best is None else r.best.tolist()}  # fmt: skip
            self._kept.write(json.dumps(document) + "\n")
        said = self._said()
        if r.best is None:
            said.tell()
            return stop_wanted()
        return said.report(self.progress)

    def _said(self, **seen: Any) -> Progress:
        """How far it is, and what there is to be drawn."""
        r, done, total = self.record, len(self.record.values), self.optimiser.generations
        doing = f"Breeding motions: generation {done} of {total}"
        if r.best is None:
            said = Progress.of(doing, done, total, r.evaluations, np.nan, feasible=False, **seen)
            return replace(said, message="none keeps to all limits yet")
        if len(r.bests) > self._bests:
            self._bests, self._drawn = len(r.bests), self.drawn(r.best)
        return Progress.of(doing, done, total, r.evaluations, self.shown(r.value), feasible=True, **self._drawn, **seen)

    def _replay(self) -> None:
        file = None if self.checkpoint is None else Path(self.checkpoint)
        if file is None or not file.exists():
            return
        document = read_json(file, ExcitationError, "delete it, or name another file", exact=True)
        check_owner(document, _FORMAT, self.key, self.seed)
        given = document.table(("values",), ("best",), others=True)
        told = [values.array(None, missing=np.inf) for values in given["values"].items("generation")]
        best = given["best"].array(None) if "best" in given else None
        for values in told:
            population = self.strategy.ask()
            if len(values) != len(population):
                raise ExcitationError(f"{file} does not fit its own optimiser; delete it.")
            self.record.take(population, values)
            self.strategy.tell(values)
        if best is not None and (self.record.best is None or not np.array_equal(best, self.record.best)):
            raise ExcitationError(
                f"{file} was written by another version of the optimiser, whose populations differ; delete it."
            )


_SLOWER = 40
# What slower programs keep to sooner; and how far back in the row of best individuals one is looked for where that does
# not help: the last ones differ little, the first one of all is far from every limit.
_HELPED_BY_CALM = ("torque limits", "power limits", "joint limits")
_STEPS_BACK = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 10**6)


def evolve(
    robot: Robot,
    genome: ViaPoints | Family | Sequence[Family],
    *,
    optimiser: Optimiser | None = None,
    terms: Terms | None = None,
    rate: float = 100.0,
    limits: Mapping[str, ArrayLike] | Limits | None = None,
    criterion: str | Criterion = "d",
    scaling: str = "natural",
    equations: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None,
    wanted: Sequence[str] | None = None,
    weights: str | ArrayLike | None = None,
    prior: Array | Factor | None = None,
    model: Model | None = None,
    torque_margin: float = 0.0,
    regions: Sequence[FreeSpace] = (),
    constraints: Sequence[Constraint | Callable[[Sequence[Family]], Constraint]] = (),
    seed: int = 0,
    progress: Callable[[Progress], Any] | None = None,
    checkpoint: str | Path | None = None,
    threads: int | None = None,
    patience: int | None = None,
) -> Plan:
    """Design a motion by a population: `Genetic()` (Pedrocchi et al. 2013) or `CovarianceAdaptation()` (CMA-ES).

    Args:
        robot: the robot.
        genome: `ViaPoints` (programs of a robot's own controller), or a smooth family (one for all joints, or one per
            joint) whose coefficients are the genes.
        optimiser: its settings.
        limits: as in `excite`; via-points bring their own.
        checkpoint: a JSON file to write after every generation, and to resume from where it exists.
        threads: for the Gram matrices (default: all cores).
        patience: end where so many generations have brought less than 1 % (default: never before the last).

    Those of `excite` are `terms`, `rate`, `criterion`, `scaling`, `equations`, `parameters`, `wanted`, `weights`,
    `prior`, `model`, `torque_margin`, `regions`, `constraints`, `seed` and `progress`. An individual that breaks a
    limit at a sample, or has a peak next to it that may, is rejected; what is delivered keeps to all of them at every
    instant.
    """
    chosen = optimiser or Genetic()
    if patience is not None and patience < 1:
        raise ExcitationError(f"patience is {patience}; give a number of generations, 1 or more, or none.")
    bounds = genome.limits if isinstance(genome, ViaPoints) else limits_from(robot, limits)
    families = _families(robot, genome)
    with one_blas_thread(), compiled_at_once():  # or a resumed search would differ in the last digits
        design = DesignColumns(
            robot, terms, families, rate, bounds, equations, parameters, "dynamic", None, False, seed
        )
        goal = design.goal(criterion, scaling, weights, prior, wanted)
        score = MotionScore(design, goal, threads)

        def needs_of(some: Sequence[Family]) -> tuple[Constraint, ...]:
            found = requirements(robot, some, bounds, model, torque_margin, regions, constraints)
            if not isinstance(genome, ViaPoints):
                return found
            return tuple(c if isinstance(c, JointLimits) else PiecewiseConstraint(c) for c in found)

        made: Genome
        needs: tuple[Constraint, ...]
        if isinstance(genome, ViaPoints):
            made, needs = genome, ()
        else:
            needs = needs_of(families)
            made = Coefficients(find_centre(families, bounds, needs, seed), needs)
        nominal = model or (Model.nominal(robot) if robot.has_inertia else None)
        # Smooth families test torques and places on their own grids.
        tests = SampleTests(robot, nominal, (1.0 - torque_margin) * bounds.tau, regions)

        def evaluate(population: Array) -> Array:
            motions = made.signals(population, rate)
            return score(tests.keep(motions) if isinstance(made, ViaPoints) else motions)

        def drawn(genes: Array) -> dict[str, Any]:
            (motion,) = made.signals(genes[None], rate)
            return {} if motion is None else goal.progress_values(score.grams(motion))

        counts = len(regions), len(constraints)
        about = chosen, rate, *counts, list(regions), torque_margin, goal.about
        key = search_key(bounds, robot.fingerprint, design.columns, goal.label, made.label, *about)
        shown = goal.criterion.report_value
        hunt = _Evolution(chosen, made.size, seed, evaluate, shown, progress, checkpoint, key, patience, drawn)
        record = hunt.run()
        trajectory, checked, genes = _delivered(made, record, needs_of)
        t = trajectory.times(rate)
        grams = score.grams(trajectory.sample(t))
        value = goal.criterion(goal.criterion_matrix(goal.join(grams)))
    return Plan.of_search(
        trajectory,
        goal,
        grams,
        checked,
        design.columns,
        design.units,
        joint_names=robot.joint_names,
        rate=rate,
        value=value,
        start_value=shown(_first(record)),
        limits=bounds,
        seed=seed,
        evaluations=record.evaluations,
        history=tuple((n, shown(v)) for n, v in record.history if np.isfinite(v)),
        fitness=record.fitness(goal.label, shown),
        stopped=hunt.stopped,
        program=genome.program(genes) if isinstance(genome, ViaPoints) else None,
    )


def _families(robot: Robot, genome: ViaPoints | Family | Sequence[Family]) -> tuple[Family, ...]:
    """The smooth families; for via-points any that move all joints will do to find the visible columns."""
    if isinstance(genome, ViaPoints):
        return (Fourier(5, 10.0),) * robot.dof
    return families_of(robot, genome)


def _delivered(
    genome: Genome, record: _Record, needs_of: Callable[[Sequence[Family]], tuple[Constraint, ...]]
) -> tuple[Trajectory, Sequence[Constraint], Array]:
    """The winner; a calmer one where a torque rises too far between the samples; one of the best before it where a
    place is left there, which no calm helps. What was checked, and its genes."""
    blame = ""
    former = record.bests[::-1]
    for back in sorted({min(step, len(former) - 1) for step in _STEPS_BACK}):
        genes = former[back]
        for _ in range(_SLOWER):
            trajectory = genome.trajectory(genes)
            needs = needs_of(trajectory.families) if isinstance(genome, ViaPoints) else genome.constraints(trajectory)
            if holds(trajectory, needs):
                return trajectory, needs, genes
            broken = max(needs, key=lambda c: c.excess(trajectory))
            blame = blame or broken.blame(trajectory)
            calmer = genome.calmer(genes)
            if calmer is None or broken.name not in _HELPED_BY_CALM:
                break
            genes = calmer
    raise ExcitationError(f"The best individuals do not keep to all limits between their samples: {blame}.")


def _first(record: _Record) -> float:
    """The best of the first generation that had any."""
    return next(v for _, v in record.history if np.isfinite(v))
