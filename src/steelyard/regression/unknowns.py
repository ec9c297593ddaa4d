"""Unknowns of a regression: base parameters, or other named unknowns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation


class Columns(Protocol):
    """Named columns of a data set to solve for, such as base parameters."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def independent(self) -> tuple[int, ...]: ...
    @property
    def rank(self) -> int: ...


@short_repr
@dataclass(frozen=True)
class Unknowns:
    """Columns with their own names, numbered from 0."""

    names: tuple[str, ...]

    @property
    def independent(self) -> tuple[int, ...]:
        return tuple(range(len(self.names)))

    @property
    def rank(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Part:
    """A data set with base parameters β = `known` + `matrix` @ x, with x the unknowns of several data sets."""

    data: RegressionData
    columns: Columns
    matrix: Array
    known: Array


def substitute(parts: Sequence[Part], unknowns: Unknowns) -> RegressionData:
    """Express the rows of several data sets in common unknowns; each data set keeps its equations and their noise.

    Args:
        parts: Data sets.
        unknowns: Common unknowns.
    """
    equations: list[Equation] = []
    for number, part in enumerate(parts):
        for equation in part.data.equations:
            rows = equation.among(part.columns.independent)[1]
            used = np.flatnonzero(np.any(part.matrix[rows] != 0.0, axis=0))
            equations.append(Equation(f"{equation.name}, log {number + 1}", used))

    def source() -> Iterable[Block]:
        first = 0
        for part in parts:
            for block in part.data.blocks():
                rows = part.data.equations[block.equation].among(part.columns.independent)[1]
                used = equations[first + block.equation].columns
                yield Block(
                    first + block.equation,
                    block.A @ part.matrix[rows][:, used],
                    block.y - block.A @ part.known[rows],
                )
            first += len(part.data.equations)

    return RegressionData(tuple(equations), unknowns.rank, source, parts[0].data.period)
