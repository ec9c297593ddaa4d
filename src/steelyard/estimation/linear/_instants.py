"""Blocks of a data set over all columns: one by one, or those of all equations at the same instants side by side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.unknowns import Columns


def dense(data: RegressionData, block: Block, columns: Columns) -> Array:
    """The rows of a block over all columns that are looked for, `(rows, columns)`; zero where its equation has none."""
    own, where = data.equations[block.equation].among(columns.independent)
    out = np.zeros((len(block.A), columns.rank))
    out[:, where] = block.A[:, own]
    return out


def one_by_one(data: RegressionData, columns: Columns) -> Iterator[Array]:
    """[A y] `(rows, 1, columns + 1)` of one block after the other, every row an instant of its own."""
    for block in data.blocks():
        yield np.column_stack([dense(data, block, columns), block.y])[:, None, :]


def simultaneous(data: RegressionData, columns: Columns) -> Iterator[Array | None]:
    """[A y] `(instants, equations, base parameters + 1)` of one stretch of time after the other.

    None where equations have different numbers of rows in a stretch (some are masked): then nobody knows any more
    which rows belong together.
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
    """Blocks that follow one another, one per equation at most."""
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
