"""`Evolution`: generation after generation, to be watched, stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.evolution.genome import Optimiser
from steelyard.excitation.search import Progress
from steelyard.ground.arrays import Array
from steelyard.ground.files import plain, write_whole

_FORMAT = "steelyard-evolution-1"
# Generations without a single feasible individual after which a run is given up.
_PATIENCE = 10


@dataclass
class Record:
    """What a run has seen: the values of every generation (all a checkpoint needs) and the best individuals."""

    values: list[list[float]] = field(default_factory=list)
    best: Array | None = None
    value: float = np.inf
    history: list[tuple[int, float]] = field(default_factory=list)
    evaluations: int = 0

    def take(self, population: Array, values: Array) -> None:
        self.values.append(values.tolist())
        self.evaluations += len(values)
        k = int(np.argmin(values))
        if values[k] < self.value:
            self.best, self.value = population[k].copy(), float(values[k])
        self.history.append((self.evaluations, self.value))


class Evolution:
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
    ) -> None:
        """`evaluate` gives the values of a population; `shown` turns a value into the criterion people know."""
        self.optimiser, self.evaluate, self.shown = optimiser, evaluate, shown
        self.progress, self.checkpoint, self.key, self.seed = progress, checkpoint, key, seed
        self.strategy = optimiser.start(genes, seed)
        self.record = Record()
        self._replay()

    def run(self) -> Record:
        while len(self.record.values) < self.optimiser.generations:
            population = self.strategy.ask()
            values = self.evaluate(population)
            self.record.take(population, values)
            self.strategy.tell(values)
            done = len(self.record.values)
            if self.record.best is None and done >= _PATIENCE:
                break
            if self._report():
                break
        if self.record.best is None:
            raise ExcitationError(
                f"None of {self.record.evaluations} individuals keeps to all limits; give a region that the robot "
                "reaches, lower speeds, or wider limits."
            )
        return self.record

    def _report(self) -> bool:
        r = self.record
        if self.checkpoint is not None:
            document = {"format": _FORMAT, "seed": self.seed, "problem": self.key, "values": plain(r.values),
                        "best": None if r.best is None else r.best.tolist()}  # fmt: skip
            write_whole(self.checkpoint, json.dumps(document) + "\n")
        if self.progress is None or r.best is None:
            return False
        done, total = len(r.values), self.optimiser.generations
        said = Progress(done, total, r.evaluations, self.shown(r.value), f"generation {done} of {total}")
        return self.progress(said) is True

    def _replay(self) -> None:
        file = None if self.checkpoint is None else Path(self.checkpoint)
        if file is None or not file.exists():
            return
        try:
            document = json.loads(file.read_text())
            same = (document["format"], document["problem"], document["seed"]) == (_FORMAT, self.key, self.seed)
            told = [np.array([np.inf if v is None else v for v in values]) for values in document["values"]]
            best = None if document["best"] is None else np.array(document["best"])
        except (ValueError, KeyError, TypeError) as error:
            raise ExcitationError(f"{file} is no checkpoint of an evolution ({error}); delete it.") from None
        if not same:
            raise ExcitationError(
                f"{file} belongs to another search (another robot, goal, limits, optimiser or seed); delete it, or "
                "name another file."
            )
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
