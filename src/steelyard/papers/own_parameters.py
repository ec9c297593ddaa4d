"""`OwnParameters`: the parameters that a paper writes, as combinations of ours; back and forth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import steelyard as sy
from steelyard.ground import Array, evaluate_expression

# Formulas are exact; what is left after regrouping is rounding.
_EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class OwnParameters:
    """A paper's parameters by name, each a formula such as "Izz2 + L2**2*m3" of ours and of the robot's lengths.

    `matrix` @ θ are the paper's values; `from_base` gives them from base parameters, `model` puts them into a model.
    """

    formulas: Mapping[str, str]
    base: sy.BaseParameters
    matrix: Array
    regrouping: Array

    @classmethod
    def of(cls, formulas: Mapping[str, str], base: sy.BaseParameters) -> OwnParameters:
        """From `formulas` by name, for the robot and terms of `base`."""
        names = [p.name for p in base.parameters]
        lengths = dict(base.robot.lengths)
        matrix = np.array([_coefficients(text, names, lengths) for text in formulas.values()])
        regrouping = np.linalg.lstsq(base.matrix.T, matrix.T, rcond=None)[0].T
        lost = np.max(np.abs(regrouping @ base.matrix - matrix), axis=1)
        for name, error in zip(formulas, lost, strict=True):
            if error > _EXACT:
                raise sy.StructureError(f"'{name}' = {formulas[name]} cannot be found from the robot's motion.")
        return cls(dict(formulas), base, matrix, regrouping)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.formulas)

    @property
    def rank(self) -> int:
        """How many of them are independent."""
        return int(np.linalg.matrix_rank(self.regrouping))

    def values(self, theta: ArrayLike) -> Array:
        """From full parameters `theta`."""
        return np.asarray(self.matrix @ np.asarray(theta, dtype=float))

    def from_base(self, beta: ArrayLike) -> Array:
        """From base parameters `beta`, one vector or several `(…, base parameters)`."""
        return np.asarray(np.asarray(beta, dtype=float) @ self.regrouping.T)

    def model(self, values: ArrayLike, near: sy.Model) -> sy.Model:
        """The model with these `values` whose full parameters are nearest to those of `near`."""
        change = np.linalg.lstsq(self.matrix, np.asarray(values) - self.values(near.theta), rcond=None)[0]
        return sy.Model(near.robot, near.terms, near.theta + change)


def _coefficients(text: str, names: list[str], lengths: dict[str, float]) -> Array:
    """Of a formula that is linear in our parameters."""
    out = np.zeros(len(names))
    for name in set(re.findall(r"[A-Za-z_]\w*", text)) & set(names):
        known = {**dict.fromkeys(names, 0.0), **lengths}
        del known[name]
        out[names.index(name)] = evaluate_expression(text, known, (name,))[1]
    return out
