"""Rows of all equations at the same instants, side by side, from the blocks of a data set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Block, RegressionData


def simultaneous(data: RegressionData, base: BaseParameters) -> Iterator[Array | None]:
    """[A y] `(instants, equations, base parameters + 1)` of one stretch of time after the other.

    None where equations have different numbers of rows in a stretch (some are masked): then nobody knows any more
    which rows belong together.
    """
    place = {int(c): k for k, c in enumerate(base.independent)}
    wanted = [np.array([place.get(int(c), -1) for c in e.columns], dtype=np.int64) for e in data.equations]
    for group in _stretches(data):
        if len(group) < len(data.equations) or len({len(b.y) for b in group}) > 1:
            yield None
            continue
        out = np.zeros((len(group[0].y), len(group), base.rank + 1))
        for block in group:
            columns = wanted[block.equation]
            out[:, block.equation, columns[columns >= 0]] = block.A[:, columns >= 0]
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
