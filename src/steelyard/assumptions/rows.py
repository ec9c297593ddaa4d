"""The rows of a fit with the columns of all suspects beside them, added up block of time by block of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.assumptions.modelled import ModelledMotion
from steelyard.assumptions.suspect import Suspect
from steelyard.assumptions.table import columns_of, suspects_of
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Index, Mask
from steelyard.regression.block_rows import align_rows, labels, stretches, tables
from steelyard.regression.delay import far_from_reversals
from steelyard.regression.observe import standstill_rows, with_history
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# Rows of an equation that are looked at, in stretches all along the logs. Of as many a scale is known to some per cent,
# and a fit that takes a second takes a tenth more.
LEDGER_ROWS = 2_000
# Rows of all equations per parameter, below which nothing can be said of anything else.
_FEWEST = 4
# Parts of every block that is left out; errors are compared between the parts of all of them.
_PARTS = 4


@dataclass(frozen=True, eq=False)
class EquationSums:
    """The Gram matrices of an equation's rows, one for each block.

    Attributes:
        columns: Places of its columns among those of all parameters, then of all suspects.
        grams: [A S y]ᵀ[A S y], shape (blocks, columns + 1, columns + 1).
        rows: Number of rows in each block.
    """

    columns: Index
    grams: Array
    rows: Array

    @cached_property
    def total(self) -> Array:
        return np.asarray(self.grams.sum(axis=0))

    @property
    def count(self) -> float:
        return max(float(self.rows.sum()), 1.0)


@dataclass(frozen=True, eq=False)
class LedgerRows:
    """Rows of a fit with the columns of all suspects.

    Attributes:
        suspects: The suspects, in the order of their columns.
        rank: Number of base parameters, whose columns come first.
        equations: Sums of every equation, joints with a used torque in order.
        folds: Of each block, the number of the fold that is left out with it.
    """

    suspects: tuple[Suspect, ...]
    rank: int
    equations: tuple[EquationSums, ...]
    folds: Index

    @property
    def size(self) -> int:
        return self.rank + len(self.suspects)

    @property
    def blocks(self) -> int:
        return len(self.folds)


def ledger_rows(
    study: Study,
    model: Model,
    enough: int = LEDGER_ROWS,
    change: Callable[[Motion], Motion] | None = None,
) -> LedgerRows | None:
    """Add up the rows of the beginnings of a study's logs; None where they are too short.

    Args:
        study: Study with the terms of the model.
        model: Fitted model.
        enough: Rows that are looked at.
        change: What is done to every motion before.
    """
    numbered = [(k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k) if m.long_enough]
    if change is not None:
        numbered = [(k, with_history(study.dynamics, change(m), study.carrier)) for k, m in numbered]
    return _rows_of_motions(study, model, [(k, align_rows(m)) for k, m in numbered if m.long_enough], enough)


def _rows_of_motions(
    study: Study, model: Model, numbered: Sequence[tuple[int, Motion]], enough: int
) -> LedgerRows | None:
    """Add up the rows of motions, each with the number of its log; other arguments are those of `ledger_rows`."""
    base, robot = study.base, study.robot
    used = np.flatnonzero(robot.torque_used)
    parts = stretches([m for _, m in numbered], enough)
    counts = [(k, part.rows) for (k, _), some in zip(numbered, parts, strict=True) for _, part in some]
    if sum(rows for _, rows in counts) * len(used) < _FEWEST * base.rank:
        return None
    folds = np.concatenate(labels(counts))
    blocks = folds * _PARTS + _within(folds)
    ends = {k: _span([m for n, m in numbered if n == k]) for k in {k for k, _ in numbered}}
    traced = Rows.cached(study.dynamics, base.independent)
    A: list[list[Array]] = [[] for _ in used]
    moving: list[Mask] = []
    stretched = [part for some in parts for _, part in some]
    for (_, motion), some in zip(numbered, parts, strict=True):
        still = standstill_rows(study.dynamics, motion)
        for at, part in some:
            for e, table in enumerate(tables(study.dynamics, base, traced, part)):
                A[e].append(table)
            free = np.ones((part.rows, robot.dof), dtype=bool)
            moving.append(free if still is None else ~still[at][part.keep])
    spans = [ends[k] for (k, _), some in zip(numbered, parts, strict=True) for _ in some]
    joined = columns_of(ModelledMotion(stretched, model, spans))
    suspects, free = suspects_of(robot), np.concatenate(moving) & far_from_reversals(stretched)
    equations = []
    for e, joint in enumerate(used):
        own = joined[:, joint]
        seen = np.flatnonzero(np.any(own != 0.0, axis=0))
        table = np.concatenate(A[e])
        stays = free[:, joint]
        whole = np.column_stack([table[:, :-1], own[:, seen], table[:, -1]])[stays]
        places = np.concatenate([traced.equations[e].among(base.independent)[1], base.rank + seen])
        equations.append(_equation(whole, places, blocks[stays], int(blocks[-1]) + 1))
    return LedgerRows(tuple(suspects), base.rank, tuple(equations), np.arange(int(blocks[-1]) + 1) // _PARTS)


def _within(folds: Index) -> Index:
    """The part of its fold that each row lies in."""
    out = np.zeros_like(folds)
    for fold in np.unique(folds):
        mine = folds == fold
        count = int(mine.sum())
        out[mine] = np.arange(count) * _PARTS // count
    return out


def _span(motions: Sequence[Motion]) -> tuple[float, float]:
    return float(min(m.t[0] for m in motions)), float(max(m.t[-1] for m in motions))


def _equation(whole: Array, places: Index, blocks: Index, count: int) -> EquationSums:
    grams, rows = np.zeros((count, whole.shape[1], whole.shape[1])), np.zeros(count)
    for b in range(count):
        part = whole[blocks == b]
        grams[b], rows[b] = part.T @ part, len(part)
    return EquationSums(places, grams, rows)
