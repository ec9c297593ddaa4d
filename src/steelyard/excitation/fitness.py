"""`Fitness`: generation by generation, the best of an evolutionary search and the mean of its population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.ground.files import csv_text

# Why a mean may be missing, for `why_null`.
NO_MEAN = "No individual of this generation keeps to all limits."


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        evaluations: Individuals that were judged until its end.
        best: Criterion of the best individual so far.
        mean: Mean fitness of its individuals that keep to all limits, as a criterion; not a number where none does.
        feasible: How many of them keep to all limits.
        individuals: How many there are.
    """

    evaluations: int
    best: float
    mean: float
    feasible: int
    individuals: int


@dataclass(frozen=True)
class Fitness:
    """How a population came to its best motion; generations before the first feasible individual are left out.

    Attributes:
        label: What the criterion is of.
        generations: In their order.
    """

    label: str
    generations: tuple[Generation, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [{**vars(g), "mean": g.mean if np.isfinite(g.mean) else None} for g in self.generations]

    def csv(self) -> str:
        """One row per generation; the mean is empty where no individual keeps to all limits."""
        heads = ("generation", "evaluations", "best", "mean", "feasible", "individuals")
        rows = [
            (k, g.evaluations, g.best, g.mean if np.isfinite(g.mean) else "", g.feasible, g.individuals)
            for k, g in enumerate(self.generations, start=1)
        ]
        return csv_text([heads, *rows])
