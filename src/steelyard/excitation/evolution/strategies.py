"""Optimisers of populations: the genetic algorithm of Pedrocchi et al. 2013, and CMA-ES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.constraints.limits import Constraint, Pull
from steelyard.excitation.constraints.traced_limit import TracedLimit
from steelyard.excitation.trajectories import Fixed, Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.extras import import_extra


@dataclass(frozen=True)
class CovarianceAdaptation:
    """CMA-ES (Hansen & Ostermeier 2001): a normal distribution over the genes that adapts to good motions.

    It starts in the middle of the genes. Genes outside 0 … 1 are drawn again. Rejected individuals count as worse than
    all others.

    Args:
        population: Individuals in a generation; None: the library's default (4 + 3 log genes).
        generations: Number of generations.
        initial_std: Initial standard deviation of every gene.
        genes, seed: Arguments of `start`, as in `Optimiser`.
    """

    population: int | None = 150
    generations: int = 100
    initial_std: float = 0.3

    def __post_init__(self) -> None:
        if (self.population or 4) < 4 or self.generations < 1 or not 0.0 < self.initial_std < 10.0:
            raise ExcitationError(
                "CMA-ES needs 4 individuals or more (--population), a generation (--generations) and a positive "
                f"initial_std below 10, not {self.population}, {self.generations} and {self.initial_std:g}."
            )

    def start(self, genes: int, seed: int) -> _Adaptation:
        CMA = import_extra("cmaes", "cma", "CMA-ES", ExcitationError).CMA
        bounds = np.tile([0.0, 1.0], (genes, 1))
        strategy = CMA(np.full(genes, 0.5), self.initial_std, bounds=bounds, seed=seed, population_size=self.population)
        return _Adaptation(strategy)


class _Adaptation:
    """One run of the library."""

    def __init__(self, strategy: Any) -> None:
        self._strategy, self._population = strategy, np.zeros((0, 0))

    def ask(self) -> Array:
        self._population = np.array([self._strategy.ask() for _ in range(self._strategy.population_size)])
        return self._population

    def tell(self, values: Array) -> None:
        finite = values[np.isfinite(values)]
        if not len(finite):
            return  # the next population is another draw from the same distribution
        finite_values = np.where(np.isfinite(values), values, float(finite.max()) + 1.0)
        self._strategy.tell(list(zip(self._population, finite_values.tolist(), strict=True)))


class PiecewiseConstraint:
    """A constraint of motions whose acceleration jumps: the largest bound of the pieces between the jumps.

    Args:
        constraint: The constraint.
        trajectory, enough, x, q: Arguments of the methods, as in `Constraint`.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._last: tuple[Trajectory, float] | None = None
        self.name, self.smooth, self.lazy = constraint.name, constraint.smooth, constraint.lazy

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        # The result's excess is needed twice (feasibility and margin) and takes seconds for six axes.
        if self._last is not None and self._last[0] is trajectory:
            return self._last[1]
        pieces = _pieces(trajectory)
        if isinstance(self._constraint, TracedLimit):
            worst = self._constraint.excess_of_all(pieces, enough)
        else:
            worst = max(self._constraint.excess(piece, enough) for piece in pieces)
        if worst <= enough:
            self._last = (trajectory, worst)
        return worst

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        return self._constraint.evaluate(x)

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        return self._constraint.at_rest(q)

    def blame(self, trajectory: Trajectory) -> str:
        return max(
            (self._constraint.excess(p), k, self._constraint.blame(p)) for k, p in enumerate(_pieces(trajectory))
        )[2]


def _pieces(trajectory: Trajectory) -> list[Trajectory]:
    """Cut the motion at its breaks, each piece starting at time 0; return it whole without breaks."""
    fixed = [f for f in trajectory.families if isinstance(f, Fixed)]
    if len(fixed) != trajectory.joints:
        return [trajectory]
    lengths = np.diff(fixed[0].breaks).tolist()
    return [
        Trajectory(tuple(Fixed((0.0, h), (f.table[k],)) for f in fixed), np.zeros(0)) for k, h in enumerate(lengths)
    ]


@dataclass(frozen=True)
class Genetic:
    """Genetic algorithm with real genes, elitist selection, recombination and mutation.

    The paper gives only the population of 150; the operators are the usual ones. Genes are clipped to 0 … 1; rejected
    individuals never win.

    Args:
        population: Individuals in a generation.
        generations: Number of generations.
        elites: Best individuals that survive unchanged.
        tournament: Individuals in a tournament of parents.
        crossover: Probability that a child is drawn from the parents' box, widened on both sides; else it is a copy.
        blend: Share by which the box is widened (BLX-α, Eshelman & Schaffer 1993).
        mutation: Probability of a mutation of each gene.
        step: Standard deviation of a mutation.
        genes, seed: Arguments of `start`, as in `Optimiser`.
    """

    population: int = 150
    generations: int = 100
    elites: int = 2
    tournament: int = 3
    crossover: float = 0.9
    blend: float = 0.5
    mutation: float = 0.05
    step: float = 0.1

    def __post_init__(self) -> None:
        if self.population < 4 or self.generations < 1 or not 0 <= self.elites < self.population or self.tournament < 1:
            raise ExcitationError(
                "A genetic algorithm needs at least 4 individuals, one generation, fewer elites than individuals and "
                f"tournaments of one or more, not {self}."
            )

    def start(self, genes: int, seed: int) -> _Breeding:
        return _Breeding(self, genes, np.random.default_rng([seed, 4]))


class _Breeding:
    """One run of the algorithm."""

    def __init__(self, settings: Genetic, genes: int, rng: np.random.Generator) -> None:
        self.settings, self.genes, self._rng = settings, genes, rng
        self._next: Array = rng.uniform(size=(settings.population, genes))

    def ask(self) -> Array:
        return self._next

    def tell(self, values: Array) -> None:
        s, rng = self.settings, self._rng
        if not np.any(np.isfinite(values)):
            self._next = rng.uniform(size=self._next.shape)  # without parents: a new draw
            return
        order = np.argsort(values, kind="stable")
        elites = self._next[order[: s.elites]][np.isfinite(values[order[: s.elites]])]
        count = s.population - len(elites)
        first, second = self._parents(values, count), self._parents(values, count)
        children = np.where(rng.uniform(size=(count, 1)) < s.crossover, self._blend(first, second), first)
        mutants = rng.uniform(size=children.shape) < s.mutation
        children = children + mutants * rng.normal(0.0, s.step, children.shape)
        self._next = np.vstack([elites, np.clip(children, 0.0, 1.0)])

    def _parents(self, values: Array, count: int) -> Array:
        """Return winners of tournaments; the best individual replaces a tournament of rejected ones."""
        picked = self._rng.integers(len(values), size=(count, self.settings.tournament))
        winners = picked[np.arange(count), np.argmin(values[picked], axis=1)]
        winners = np.where(np.isfinite(values[winners]), winners, int(np.argmin(values)))
        parents: Array = self._next[winners]
        return parents

    def _blend(self, first: Array, second: Array) -> Array:
        low, high = np.minimum(first, second), np.maximum(first, second)
        margin = self.settings.blend * (high - low)
        child: Array = self._rng.uniform(low - margin, high + margin)
        return child
