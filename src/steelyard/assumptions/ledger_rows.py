"""Gram matrices of the rows of a fit with the columns of all suspects, by block of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from steelyard.assumptions.modelled_motion import ModelledMotion
from steelyard.assumptions.suspect import Suspect
from steelyard.assumptions.suspect_table import columns_of, suspects_of
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Index, Mask
from steelyard.regression.block_rows import align_rows, labels, stretches, tables
from steelyard.regression.delay import far_from_reversals
from steelyard.regression.observe import standstill_rows, with_history
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.study import Study

if TYPE_CHECKING:
    from steelyard.assumptions.changes_in_time import Course

# Rows used per equation, in stretches along the logs: a scale is accurate to some per cent, and the fit takes 10 %
# longer.
LEDGER_ROWS = 2_000
# Minimum number of rows of all equations per parameter.
_FEWEST = 4
# Parts of every left-out block, between which errors are compared.
_PARTS = 4


@dataclass(frozen=True, eq=False)
class EquationSums:
    """The Gram matrices of an equation's rows, one for each block.

    Attributes:
        columns: Indices of its columns among all parameters, then all suspects.
        grams: [A S y]ᵀ[A S y] of the rows away from reversals, shape (blocks, columns + 1, columns + 1).
        rows: Number of these rows in each block.
        near: The same as `grams` for the rows near reversals of the joint, where the shape of friction is uncertain.
            They show harm, but no estimate. None if they are left out.
        near_rows: Number of these rows.
    """

    columns: Index
    grams: Array
    rows: Array
    near: Array | None = None
    near_rows: float = 0.0

    @cached_property
    def total(self) -> Array:
        return np.asarray(self.grams.sum(axis=0))

    @property
    def count(self) -> float:
        return max(float(self.rows.sum()), 1.0)

    @property
    def everywhere(self) -> Array:
        """Mean of the products over all rows in motion."""
        if self.near is None:
            return np.asarray(self.total / self.count)
        return np.asarray((self.total + self.near.sum(axis=0)) / (self.count + self.near_rows))


@dataclass(frozen=True, eq=False)
class LedgerRows:
    """Rows of a fit with the columns of all suspects.

    Attributes:
        suspects: The suspects, in the order of their columns.
        rank: Number of base parameters, whose columns come first.
        equations: Sums of every equation, joints with a used torque in order.
        folds: Fold of each block for cross-validation.
        beginnings: Number of the log and time [s] of the first row of each block.
        courses: Courses of the changes (`changes_in_time.py`), whose suspects come last.
    """

    suspects: tuple[Suspect, ...]
    rank: int
    equations: tuple[EquationSums, ...]
    folds: Index
    beginnings: tuple[tuple[int, float], ...] = ()
    courses: tuple[Course, ...] = ()

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
    reversals: bool = False,
) -> LedgerRows | None:
    """Sum the rows of the beginnings of a study's logs; None if they are too short.

    Args:
        study: Study with the terms of the model.
        model: Fitted model.
        enough: Rows used per equation.
        change: Correction that is applied to every motion first.
        reversals: Whether rows near reversals are summed as well, to show harm.
    """
    numbered = [(k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k) if m.long_enough]
    if change is not None:
        # Joint loads of a corrected motion are those of the corrected model.
        carrier = None if study.carrier is None else model
        numbered = [(k, with_history(study.dynamics, change(m), carrier)) for k, m in numbered]
    return _rows_of_motions(study, model, [(k, align_rows(m)) for k, m in numbered if m.long_enough], enough, reversals)


def _rows_of_motions(
    study: Study, model: Model, numbered: Sequence[tuple[int, Motion]], enough: int, reversals: bool
) -> LedgerRows | None:
    """Sum the rows of motions, each with the index of its log; other arguments as for `ledger_rows`."""
    base, robot = study.base, study.robot
    used = np.flatnonzero(robot.torque_used)
    parts = stretches([m for _, m in numbered], enough)
    counts = [(k, part.rows) for (k, _), some in zip(numbered, parts, strict=True) for _, part in some]
    if sum(rows for _, rows in counts) * len(used) < _FEWEST * base.rank:
        return None
    folds = np.concatenate(labels(counts))
    blocks = folds * _PARTS + _within(folds)
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
    joined = columns_of(ModelledMotion(stretched, model))
    suspects, free, far = suspects_of(robot), np.concatenate(moving), far_from_reversals(stretched)
    equations = []
    for e, joint in enumerate(used):
        own = joined[:, joint]
        nonzero = np.flatnonzero(np.any(own != 0.0, axis=0))
        table = np.concatenate(A[e])
        stays = free[:, joint]
        whole = np.column_stack([table[:, :-1], own[:, nonzero], table[:, -1]])[stays]
        places = np.concatenate([traced.equations[e].among(base.independent)[1], base.rank + nonzero])
        equations.append(_equation(whole, places, blocks[stays], int(blocks[-1]) + 1, far[stays, joint], reversals))
    count = int(blocks[-1]) + 1
    firsts = np.searchsorted(blocks, np.arange(count))
    numbers = np.concatenate([np.full(rows, k) for k, rows in counts])
    times = np.concatenate([part.t[part.keep] for part in stretched])
    beginnings = tuple((int(numbers[i]), float(times[i])) for i in firsts)
    return LedgerRows(tuple(suspects), base.rank, tuple(equations), np.arange(count) // _PARTS, beginnings)


def _within(folds: Index) -> Index:
    """Return the part of its fold for each row."""
    out = np.zeros_like(folds)
    for fold in np.unique(folds):
        mine = folds == fold
        count = int(mine.sum())
        out[mine] = np.arange(count) * _PARTS // count
    return out


def _equation(whole: Array, places: Index, blocks: Index, count: int, far: Mask, reversals: bool) -> EquationSums:
    grams = _block_grams(whole[far], blocks[far], count)
    near = _block_grams(whole[~far], blocks[~far], count) if reversals else None
    return EquationSums(places, grams, np.bincount(blocks[far], minlength=count).astype(float), near, float(sum(~far)))


def _block_grams(whole: Array, blocks: Index, count: int) -> Array:
    out = np.zeros((count, whole.shape[1], whole.shape[1]))
    for b in range(count):
        part = whole[blocks == b]
        out[b] = part.T @ part
    return out
