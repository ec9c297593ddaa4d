"""`Genetic`: the genetic algorithm with which Pedrocchi et al. 2013 breed via-point programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.excitation.error import ExcitationError
from steelyard.robot.spatial import Array


@dataclass(frozen=True)
class Genetic:
    """Real genes, elitist selection, recombination, mutation.

    The paper gives `population` = 150 and no operators; these are the usual ones: `elites` survive as they are;
    parents win tournaments of `tournament`; with probability `crossover` children lie anywhere in the parents' box
    widened by `blend` on both sides (BLX-α, Eshelman & Schaffer 1993), else they are copies; every gene mutates with
    probability `mutation` by a Gaussian step of `step`. Genes are clipped to 0 … 1; rejected individuals never win.
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
                "A genetic algorithm needs 4 individuals or more, one generation, fewer elites than individuals and "
                f"tournaments of one at least, not {self}."
            )

    def start(self, genes: int, seed: int) -> Breeding:
        return Breeding(self, genes, np.random.default_rng([seed, 4]))


class Breeding:
    """One run of the algorithm."""

    def __init__(self, settings: Genetic, genes: int, rng: np.random.Generator) -> None:
        self.settings, self.genes, self._rng = settings, genes, rng
        self._next: Array = rng.uniform(size=(settings.population, genes))

    def ask(self) -> Array:
        return self._next

    def tell(self, values: Array) -> None:
        s, rng = self.settings, self._rng
        if not np.any(np.isfinite(values)):
            self._next = rng.uniform(size=self._next.shape)  # nobody to breed from: a new throw
            return
        order = np.argsort(values, kind="stable")
        elites = self._next[order[: s.elites]][np.isfinite(values[order[: s.elites]])]
        count = s.population - len(elites)
        first, second = self._parents(values, count), self._parents(values, count)
        children = np.where(rng.uniform(size=(count, 1)) < s.crossover, self._blended(first, second), first)
        mutants = rng.uniform(size=children.shape) < s.mutation
        children = children + mutants * rng.normal(0.0, s.step, children.shape)
        self._next = np.vstack([elites, np.clip(children, 0.0, 1.0)])

    def _parents(self, values: Array, count: int) -> Array:
        """Winners of tournaments; where all of one are rejected, the best of all steps in."""
        picked = self._rng.integers(len(values), size=(count, self.settings.tournament))
        winners = picked[np.arange(count), np.argmin(values[picked], axis=1)]
        winners = np.where(np.isfinite(values[winners]), winners, int(np.argmin(values)))
        parents: Array = self._next[winners]
        return parents

    def _blended(self, first: Array, second: Array) -> Array:
        low, high = np.minimum(first, second), np.maximum(first, second)
        margin = self.settings.blend * (high - low)
        child: Array = self._rng.uniform(low - margin, high + margin)
        return child
