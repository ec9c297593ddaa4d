"""Which unknowns a weighing has, and how each log's base parameters are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Part

Friction = Literal["own", "common"]


@dataclass(frozen=True, eq=False)
class Plan:
    """`carried[i]` is the number of log i's load (−1: none); `arm` the bare arm's base parameters, where known."""

    base: BaseParameters
    carried: Sequence[int]
    host: int
    loads: int
    friction: Friction
    arm: Array | None

    @property
    def frictional(self) -> list[int]:
        """The base parameters that belong to joint terms other than inertias."""
        links = self.base.robot.inertial_count
        inertial = self.base.terms.per_parameter(lambda term, _: term.inertial)
        return [k for k, c in enumerate(self.base.independent) if c >= links and not inertial[c - links]]

    @property
    def names(self) -> tuple[str, ...]:
        base, rubbing = self.base, set(self.frictional)
        out = [f"{n} of load {g + 1}" for g in range(self.loads) for n in INERTIAL_NAMES]
        if self.friction == "own":
            out += [f"{base.names[k]} of log {i + 1}" for i in range(len(self.carried)) for k in self.frictional]
        elif self.arm is None:
            out += [base.names[k] for k in self.frictional]
        if self.arm is None:
            out += [base.names[k] for k in range(base.rank) if k not in rubbing]
        return tuple(out)

    def parts(self, data: Sequence[RegressionData]) -> list[Part]:
        base, rubbing = self.base, self.frictional
        names = self.names
        steady = [k for k in range(base.rank) if k not in set(rubbing)]
        parts = []
        for number, (rows, load) in enumerate(zip(data, self.carried, strict=True)):
            matrix, known = np.zeros((base.rank, len(names))), np.zeros(base.rank)
            if load >= 0:
                matrix[:, 10 * load : 10 * load + 10] = base.matrix[:, 10 * self.host : 10 * self.host + 10]
            at = 10 * self.loads
            if self.friction == "own":
                matrix[rubbing, range(at + number * len(rubbing), at + (number + 1) * len(rubbing))] = 1.0
                at += len(self.carried) * len(rubbing)
            elif self.arm is None:
                matrix[rubbing, range(at, at + len(rubbing))] = 1.0
                at += len(rubbing)
            if self.arm is None:
                matrix[steady, range(at, at + len(steady))] = 1.0
            else:
                known[steady] = self.arm[steady]
                if self.friction == "common":
                    known[rubbing] = self.arm[rubbing]
            parts.append(Part(rows, base, matrix, known))
        return parts
