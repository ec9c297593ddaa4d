"""`Covariance`: CMA-ES (Hansen & Ostermeier 2001), by the library `cmaes` (the extra `cma`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.excitation.error import ExcitationError
from steelyard.robot.spatial import Array


@dataclass(frozen=True)
class Covariance:
    """A normal distribution over the genes that learns where good motions lie.

    It starts in the middle of the genes, `spread` wide; `population` None leaves the size to the library
    (4 + 3 log genes). What lies outside 0 … 1 is drawn again. Rejected individuals count as worse than all others.
    """

    population: int | None = 150
    generations: int = 100
    spread: float = 0.3

    def __post_init__(self) -> None:
        if (self.population or 4) < 4 or self.generations < 1 or not 0.0 < self.spread < 10.0:
            raise ExcitationError(
                f"CMA-ES needs 4 individuals or more, a generation and a positive spread, not {self}."
            )

    def start(self, genes: int, seed: int) -> Adaptation:
        try:
            from cmaes import CMA
        except ImportError:
            raise ExcitationError("CMA-ES needs the library cmaes; pip install 'steelyard[cma]'.") from None
        bounds = np.tile([0.0, 1.0], (genes, 1))
        made = CMA(np.full(genes, 0.5), self.spread, bounds=bounds, seed=seed, population_size=self.population)
        return Adaptation(made)


class Adaptation:
    """One run of the library."""

    def __init__(self, strategy: Any) -> None:
        self._strategy, self._asked = strategy, np.zeros((0, 0))

    def ask(self) -> Array:
        self._asked = np.array([self._strategy.ask() for _ in range(self._strategy.population_size)])
        return self._asked

    def tell(self, values: Array) -> None:
        finite = values[np.isfinite(values)]
        if not len(finite):
            return  # nothing is learned; the next population is another throw of the same distribution
        worse = float(finite.max()) + 1.0
        told = np.where(np.isfinite(values), values, worse)
        self._strategy.tell(list(zip(self._asked, told.tolist(), strict=True)))
