"""`Fitness`: best and mean criterion of an evolutionary search, generation by generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.ground.files import csv_text

# Reason for a missing mean, for `why_null`.
NO_MEAN = "No individual of this generation keeps to all limits."


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        evaluations: Number of individuals evaluated so far.
        best: Criterion of the best individual so far.
        mean: Mean criterion of the feasible individuals of this generation; NaN without one.
        feasible: Number of individuals within all limits.
        individuals: Number of individuals.
    """

    evaluations: int
    best: float
    mean: float
    feasible: int
    individuals: int


@dataclass(frozen=True)
class Fitness:
    """Progress of a population towards its best motion, from the first feasible individual on.

    Attributes:
        label: Description of the criterion.
        generations: The generations in their order.
    """

    label: str
    generations: tuple[Generation, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [{**vars(g), "mean": g.mean if np.isfinite(g.mean) else None} for g in self.generations]

    def csv(self) -> str:
        """Return a table with one row per generation; the mean is empty without a feasible individual."""
        heads = ("generation", "evaluations", "best", "mean", "feasible", "individuals")
        rows = [
            (k, g.evaluations, g.best, g.mean if np.isfinite(g.mean) else "", g.feasible, g.individuals)
            for k, g in enumerate(self.generations, start=1)
        ]
        return csv_text([heads, *rows])
