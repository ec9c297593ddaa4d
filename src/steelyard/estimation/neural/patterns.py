"""`Patterns`: the rows of a log as a network sees them: instant by instant, scaled if wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from steelyard.estimation.linear.free import FreeFit
from steelyard.estimation.recursion.simultaneous import simultaneous
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns
from steelyard.robot.spatial import Array


@dataclass(frozen=True, eq=False)
class Patterns:
    """Inputs `(instants, rows, weights)` and targets `(instants, rows)`; β = weights · `target_scale` / `scales`.

    Where rows are masked nobody knows which belong to the same instant: then every row is an instant of its own.
    """

    inputs: Array
    targets: Array
    scales: Array
    target_scale: float

    @classmethod
    def of(cls, data: RegressionData, columns: Columns, free: FreeFit, scaled: bool) -> Patterns:
        stretches = list(simultaneous(data, cast(BaseParameters, columns)))
        whole = [s for s in stretches if s is not None]
        if len(whole) < len(stretches):
            whole = [_alone(data, columns)]
        rows = np.concatenate(whole)
        A, y = rows[:, :, :-1], rows[:, :, -1]
        scales, size = np.ones(columns.rank), 1.0
        if scaled:
            count = float(free.problem.rows.sum())
            norms = np.linalg.norm(free.joined, axis=0) / np.sqrt(count)
            scales, size = norms[:-1], float(norms[-1]) or 1.0
        return cls(A / scales, y / size, scales, size)

    def beta(self, weights: Array) -> Array:
        """Base parameters of weights."""
        return np.asarray(weights * self.target_scale / self.scales)

    def weights(self, beta: Array) -> Array:
        return np.asarray(beta * self.scales / self.target_scale)


def _alone(data: RegressionData, columns: Columns) -> Array:
    place = {int(c): k for k, c in enumerate(columns.independent)}
    out = []
    for block in data.blocks():
        rows = np.zeros((len(block.y), 1, columns.rank + 1))
        for k, column in enumerate(data.equations[block.equation].columns):
            if int(column) in place:
                rows[:, 0, place[int(column)]] = block.A[:, k]
        rows[:, 0, -1] = block.y
        out.append(rows)
    return np.concatenate(out)
