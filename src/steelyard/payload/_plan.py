"""Unknowns of a payload identification, and the base parameters of each log as a linear function of them."""

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
    """`carried[i]` is the index of the payload in log i (−1: none); `arm`: bare arm's base parameters, if known."""

    base: BaseParameters
    carried: Sequence[int]
    host: int
    loads: int
    friction: Friction
    arm: Array | None

    @property
    def frictional(self) -> list[int]:
        """Indices of the base parameters of joint terms that are not inertias."""
        links = self.base.robot.inertial_count
        inertial = self.base.terms.per_parameter(lambda term, _: term.inertial)
        return [k for k, c in enumerate(self.base.independent) if c >= links and not inertial[c - links]]

    @property
    def names(self) -> tuple[str, ...]:
        base, friction = self.base, set(self.frictional)
        out = [f"{n} of load {g + 1}" for g in range(self.loads) for n in INERTIAL_NAMES]
        if self.friction == "own":
            out += [f"{base.names[k]} of log {i + 1}" for i in range(len(self.carried)) for k in self.frictional]
        elif self.arm is None:
            out += [base.names[k] for k in self.frictional]
        if self.arm is None:
            out += [base.names[k] for k in range(base.rank) if k not in friction]
        return tuple(out)

    def parts(self, data: Sequence[RegressionData]) -> list[Part]:
        base, friction = self.base, self.frictional
        names = self.names
        steady = [k for k in range(base.rank) if k not in set(friction)]
        parts = []
        for number, (rows, load) in enumerate(zip(data, self.carried, strict=True)):
            matrix, known = np.zeros((base.rank, len(names))), np.zeros(base.rank)
            if load >= 0:
                matrix[:, 10 * load : 10 * load + 10] = base.matrix[:, 10 * self.host : 10 * self.host + 10]
            at = 10 * self.loads
            if self.friction == "own":
                matrix[friction, range(at + number * len(friction), at + (number + 1) * len(friction))] = 1.0
                at += len(self.carried) * len(friction)
            elif self.arm is None:
                matrix[friction, range(at, at + len(friction))] = 1.0
                at += len(friction)
            if self.arm is None:
                matrix[steady, range(at, at + len(steady))] = 1.0
            else:
                known[steady] = self.arm[steady]
                if self.friction == "common":
                    known[friction] = self.arm[friction]
            parts.append(Part(rows, base, matrix, known))
        return parts
