"""Blocks of a data set over all columns, one by one or joined across the equations of the same instants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.unknowns import Columns


def dense(data: RegressionData, block: Block, columns: Columns) -> Array:
    """Return the rows of a block over all unknown columns, shape (rows, columns); missing columns are zero."""
    own, where = data.equations[block.equation].among(columns.independent)
    out = np.zeros((len(block.A), columns.rank))
    out[:, where] = block.A[:, own]
    return out


def one_by_one(data: RegressionData, columns: Columns) -> Iterator[Array]:
    """Yield [A y] of each block, shape (rows, 1, columns + 1), with one row per instant."""
    for block in data.blocks():
        yield np.column_stack([dense(data, block, columns), block.y])[:, None, :]


def simultaneous(data: RegressionData, columns: Columns) -> Iterator[Array | None]:
    """Yield [A y] of each stretch of time, shape (instants, equations, columns + 1).

    None if the equations have different numbers of rows in a stretch (some are masked), since rows cannot be matched
    then.
    """
    for group in _stretches(data):
        if len(group) < len(data.equations) or len({len(b.y) for b in group}) > 1:
            yield None
            continue
        out = np.zeros((len(group[0].y), len(group), columns.rank + 1))
        for block in group:
            out[:, block.equation, :-1] = dense(data, block, columns)
            out[:, block.equation, -1] = block.y
        yield out


def _stretches(data: RegressionData) -> Iterator[list[Block]]:
    """Consecutive blocks, at most one per equation."""
    group: list[Block] = []
    for block in data.blocks():
        if any(b.equation == block.equation for b in group):
            yield group
            group = []
        group.append(block)
        if len(group) == len(data.equations):
            yield group
            group = []
    if group:
        yield group
