"""`evolve`: design of a motion by a population."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation._search_state import check_owner, search_key
from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.constraints._space import options_in_space
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.evolution._score import MotionScore, SampleTests
from steelyard.excitation.evolution.genome import Coefficients, Genome, Optimiser
from steelyard.excitation.evolution.strategies import Genetic, PiecewiseConstraint
from steelyard.excitation.evolution.via_points import ViaPoints
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.fitness import Fitness, Generation
from steelyard.excitation.plan import Plan
from steelyard.excitation.search import Progress
from steelyard.excitation.search_problem import families_of, requirements
from steelyard.excitation.settle import find_centre, holds
from steelyard.excitation.trajectories import Family, Fourier, Trajectory
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.files import OwnFile, plain
from steelyard.ground.interrupt import stop_wanted
from steelyard.ground.untrusted_files import read_json
from steelyard.ground.verb_options import with_changes
from steelyard.robot.robot import Robot

_FORMAT = "steelyard-evolution-1"
# Number of generations without a feasible individual after which a run is aborted.
_INFEASIBLE_GENERATIONS = 10
# Smallest gain (logarithm of the criterion: 1 %) that counts as progress.
_SMALLEST_GAIN = 0.01


@dataclass
class _Record:
    """History of a run: the values of every generation (which a checkpoint stores) and the best individuals."""

    values: list[list[float]] = field(default_factory=list)
    bests: list[Array] = field(default_factory=list)
    value: float = np.inf
    history: list[tuple[int, float]] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    evaluations: int = 0

    def add(self, population: Array, values: Array) -> None:
        self.values.append(values.tolist())
        self.evaluations += len(values)
        k = int(np.argmin(values))
        if values[k] < self.value:
            self.bests.append(population[k].copy())
            self.value = float(values[k])
        self.history.append((self.evaluations, self.value))
        feasible = values[np.isfinite(values)]
        mean = float(feasible.mean()) if len(feasible) else np.nan
        self.generations.append(Generation(self.evaluations, self.value, mean, len(feasible), len(values)))

    def fitness(self, label: str, report_value: Callable[[float], float]) -> Fitness:
        """Return the generations from the first feasible individual on, with criteria by `report_value`."""
        feasible = [g for g in self.generations if np.isfinite(g.best)]
        return Fitness(label, tuple(replace(g, best=report_value(g.best), mean=report_value(g.mean)) for g in feasible))

    @property
    def best(self) -> Array | None:
        return self.bests[-1] if self.bests else None

    def has_stalled(self, patience: int | None) -> bool:
        """Check whether the last `patience` generations made no progress."""
        if patience is None or len(self.history) <= patience or not np.isfinite(self.value):
            return False
        return bool(self.history[-1 - patience][1] - self.value < _SMALLEST_GAIN)


class _Evolution:
    """Runs an optimiser.

    A checkpoint stores the values of all generations, from which the run is replayed, so any optimiser whose
    populations follow from its seed can be resumed.

    Args:
        optimiser: The optimiser.
        genes: Number of genes.
        seed: Seed of the optimiser.
        evaluate: Returns the values of a population.
        report_value: Converts a value to the reported criterion.
        progress: Function called after every generation.
        checkpoint: File to write and to resume from.
        key: Key of the problem.
        patience: Generations without progress after which the run ends.
        plot_values: Returns further values of an individual for plots.
    """

    def __init__(
        self,
        optimiser: Optimiser,
        genes: int,
        seed: int,
        evaluate: Callable[[Array], Array],
        report_value: Callable[[float], float],
        progress: Callable[[Progress], Any] | None = None,
        checkpoint: str | Path | None = None,
        key: str = "",
        patience: int | None = None,
        plot_values: Callable[[Array], dict[str, Any]] = lambda genes: {},
    ) -> None:
        self.optimiser, self.evaluate, self.report_value, self.patience = optimiser, evaluate, report_value, patience
        self.plot_values, self._values, self._bests, self.stopped = plot_values, dict[str, Any](), 0, False
        self.progress, self.checkpoint, self.key, self.seed = progress, checkpoint, key, seed
        self._file = None if checkpoint is None else OwnFile(checkpoint)
        self.strategy = optimiser.start(genes, seed)
        self.record = _Record()
        self._replay()

    def run(self) -> _Record:
        if self.record.values:
            earlier = [(n, self.report_value(v)) for n, v in self.record.history if np.isfinite(v)]
            self._make_report(earlier=earlier).send()
        while len(self.record.values) < self.optimiser.generations and not self.record.has_stalled(self.patience):
            population = self.strategy.ask()
            values = self.evaluate(population)
            self.record.add(population, values)
            self.strategy.tell(values)
            done = len(self.record.values)
            if self.record.best is None and done >= _INFEASIBLE_GENERATIONS:
                break
            if self._report():
                self.stopped = done < self.optimiser.generations
                break
        if self.record.best is None:
            raise ExcitationError(
                f"None of {self.record.evaluations} individuals is within all limits; give a region that the robot "
                "reaches, lower speeds, or wider limits."
            )
        return self.record

    def _report(self) -> bool:
        r = self.record
        if self._file is not None:
            document = {"format": _FORMAT, "seed": self.seed, "problem": self.key, "values": plain(r.values),
                        "best": None if r.best is None else r.best.tolist()}  # fmt: skip
            self._file.write(json.dumps(document) + "\n")
        report = self._make_report()
        if r.best is None:
            report.send()
            return stop_wanted()
        return report.report(self.progress)

    def _make_report(self, **values: Any) -> Progress:
        """Return a report with values for plots."""
        r, done, total = self.record, len(self.record.values), self.optimiser.generations
        doing = f"Breeding motions: generation {done} of {total}"
        if r.best is None:
            report = Progress.of(doing, done, total, r.evaluations, np.nan, feasible=False, **values)
            return replace(report, message="no motion within all limits yet")
        if len(r.bests) > self._bests:
            self._bests, self._values = len(r.bests), self.plot_values(r.best)
        best = self.report_value(r.value)
        return Progress.of(doing, done, total, r.evaluations, best, feasible=True, **self._values, **values)

    def _replay(self) -> None:
        file = None if self.checkpoint is None else Path(self.checkpoint)
        if file is None or not file.exists():
            return
        document = read_json(file, ExcitationError, "delete it, or name another file", exact=True)
        check_owner(document, _FORMAT, self.key, self.seed)
        table = document.table(("values",), ("best",), others=True)
        generations = [values.array(None, missing=np.inf) for values in table["values"].items("generation")]
        best = table["best"].array(None) if "best" in table else None
        for values in generations:
            population = self.strategy.ask()
            if len(values) != len(population):
                raise ExcitationError(f"{file} does not match the optimiser's population size; delete it.")
            self.record.add(population, values)
            self.strategy.tell(values)
        if best is not None and (self.record.best is None or not np.array_equal(best, self.record.best)):
            raise ExcitationError(
                f"{file} was written by another version of the optimiser, whose populations differ; delete it."
            )


# Attempts to make an individual calmer, and the constraints for which that helps. For others, go back in the sequence
# of best individuals by these steps: the last ones differ little, the first one is far from every limit.
_SLOWER = 40
_HELPED_BY_CALM = ("torque limits", "power limits", "joint limits")
_STEPS_BACK = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 10**6)

# Options that the genome and the optimiser do not replace.
_USED = (
    "terms", "rate", "limits", "criterion", "scaling", "equations", "parameters", "wanted", "weights", "prior", "model",
    "torque_margin", "box", "frame", "floor", "collision", "clearance", "packages", "srdf", "regions", "constraints",
    "seed", "patience",
)  # fmt: skip


def evolve(
    robot: Robot,
    genome: ViaPoints | Family | Sequence[Family],
    options: ExciteOptions | None = None,
    *,
    optimiser: Optimiser | None = None,
    progress: Callable[[Progress], Any] | None = None,
    checkpoint: str | Path | None = None,
    threads: int | None = None,
    **changes: Any,
) -> Plan:
    """Design a motion by a population: `Genetic()` (Pedrocchi et al. 2013) or `CovarianceAdaptation()` (CMA-ES).

    An individual is rejected if it breaks a limit at a sample or may break it next to one. The result keeps all limits
    at every instant.

    Args:
        robot: The robot.
        genome: `ViaPoints` (programs of a robot's own controller), or a smooth family (one for all joints, or one per
            joint) whose coefficients are the genes.
        options: Options of the design; None: the defaults, but with the criterion "d". Via-points have their own
            limits, and the genome and the optimiser replace the options about them.
        optimiser: The optimiser with its settings.
        progress: As in `excite`.
        checkpoint: JSON file written after every generation; an existing one is resumed.
        threads: Threads for the Gram matrices (default: all cores).
        **changes: Fields of `ExciteOptions` that replace those of `options`.
    """
    chosen = optimiser or Genetic()
    o = with_changes(options or ExciteOptions(criterion="d"), changes, "evolve", _USED)
    if o.patience is not None and o.patience < 1:
        raise ExcitationError(f"patience is {o.patience}; give a number of generations, 1 or more, or None.")
    bounds = genome.limits if isinstance(genome, ViaPoints) else limits_from(robot, o.limits)
    o, notes = options_in_space(robot, o)
    rate, regions = o.rate, o.regions
    families = _families(robot, genome)
    with one_blas_thread(), compiled_at_once():  # else a resumed search would differ in the last digits
        design = DesignColumns(robot, families, bounds, replace(o, scheme="dynamic"))
        goal = design.goal(o)
        score = MotionScore(design, goal, threads)

        def needs_of(some: Sequence[Family]) -> tuple[Constraint, ...]:
            every = requirements(robot, some, bounds, o)
            if not isinstance(genome, ViaPoints):
                return every
            return tuple(c if isinstance(c, JointLimits) else PiecewiseConstraint(c) for c in every)

        space: Genome
        needs: tuple[Constraint, ...]
        if isinstance(genome, ViaPoints):
            space, needs = genome, ()
        else:
            needs = needs_of(families)
            space = Coefficients(find_centre(families, bounds, needs, o.seed), needs)
        nominal = o.model or (Model.nominal(robot) if robot.has_inertia else None)
        # Smooth families test torques and positions on their own grids.
        tests = SampleTests(robot, nominal, (1.0 - o.torque_margin) * bounds.tau, regions)

        def evaluate(population: Array) -> Array:
            motions = space.signals(population, rate)
            return score(tests.reject(motions) if isinstance(space, ViaPoints) else motions)

        def plot_values(genes: Array) -> dict[str, Any]:
            (motion,) = space.signals(genes[None], rate)
            return {} if motion is None else goal.progress_values(score.grams(motion))

        counts = len(regions), len(o.constraints)
        about = chosen, rate, *counts, list(regions), o.torque_margin, goal.about
        key = search_key(bounds, robot.fingerprint, design.columns, goal.label, space.label, *about)
        report_value = goal.criterion.report_value
        run = _Evolution(
            chosen, space.size, o.seed, evaluate, report_value, progress, checkpoint, key, o.patience, plot_values
        )
        record = run.run()
        trajectory, checked, genes = _deliver(space, record, needs_of)
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
        start_value=report_value(_first(record)),
        limits=bounds,
        seed=o.seed,
        evaluations=record.evaluations,
        history=tuple((n, report_value(v)) for n, v in record.history if np.isfinite(v)),
        fitness=record.fitness(goal.label, report_value),
        stopped=run.stopped,
        program=genome.program(genes) if isinstance(genome, ViaPoints) else None,
        notes=tuple(notes),
    )


def _families(robot: Robot, genome: ViaPoints | Family | Sequence[Family]) -> tuple[Family, ...]:
    """Return the smooth families; for via-points any families that move all joints yield the identifiable columns."""
    if isinstance(genome, ViaPoints):
        return (Fourier(5, 10.0),) * robot.dof
    return families_of(robot, genome)


def _deliver(
    genome: Genome, record: _Record, needs_of: Callable[[Sequence[Family]], tuple[Constraint, ...]]
) -> tuple[Trajectory, Sequence[Constraint], Array]:
    """Return the best individual within all limits, the constraints that were checked, and its genes.

    If a torque is too large between samples, calmer variants are tried; for other constraints, earlier best
    individuals.
    """
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
    """Return the best value of the first generation with a feasible individual."""
    return next(v for _, v in record.history if np.isfinite(v))
