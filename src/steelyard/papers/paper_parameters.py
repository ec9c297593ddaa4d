"""`PaperParameters`: conversion between a paper's parameters and ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import steelyard as sy
from steelyard.ground import Array, evaluate_expression

# Formulas are exact; a larger error after regrouping is no rounding.
_EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class PaperParameters:
    """A paper's parameters as formulas of ours and of the robot's lengths, such as "Izz2 + L2**2*m3".

    Attributes:
        formulas: Formulas by name.
        base: Base parameters of the robot and its terms.
        matrix: `matrix` @ θ are the paper's values.
        regrouping: `regrouping` @ β are the paper's values.
    """

    formulas: Mapping[str, str]
    base: sy.BaseParameters
    matrix: Array
    regrouping: Array

    @classmethod
    def of(cls, formulas: Mapping[str, str], base: sy.BaseParameters) -> PaperParameters:
        """Make the parameters from their formulas.

        Args:
            formulas: Formulas by name.
            base: Base parameters of the robot and its terms.
        """
        names = [p.name for p in base.parameters]
        lengths = dict(base.robot.lengths)
        matrix = np.array([_coefficients(text, names, lengths) for text in formulas.values()])
        regrouping = np.linalg.lstsq(base.matrix.T, matrix.T, rcond=None)[0].T
        errors = np.max(np.abs(regrouping @ base.matrix - matrix), axis=1)
        for name, error in zip(formulas, errors, strict=True):
            if error > _EXACT:
                raise sy.StructureError(f"'{name}' = {formulas[name]} is not identifiable from the robot's motion.")
        return cls(dict(formulas), base, matrix, regrouping)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.formulas)

    @property
    def rank(self) -> int:
        """Number of independent parameters."""
        return int(np.linalg.matrix_rank(self.regrouping))

    def values(self, theta: ArrayLike) -> Array:
        """Return the paper's values for full parameters `theta`."""
        return np.asarray(self.matrix @ np.asarray(theta, dtype=float))

    def from_base(self, beta: ArrayLike) -> Array:
        """Return the paper's values for base parameters `beta`, one vector or several `(…, base parameters)`."""
        return np.asarray(np.asarray(beta, dtype=float) @ self.regrouping.T)

    def model(self, values: ArrayLike, near: sy.Model) -> sy.Model:
        """Return the model with the paper's values whose full parameters are closest to those of another.

        Args:
            values: The paper's values.
            near: The other model.
        """
        change = np.linalg.lstsq(self.matrix, np.asarray(values) - self.values(near.theta), rcond=None)[0]
        return sy.Model(near.robot, near.terms, near.theta + change)


def _coefficients(text: str, names: list[str], lengths: dict[str, float]) -> Array:
    """Return the coefficients of a formula that is linear in our parameters."""
    out = np.zeros(len(names))
    for name in set(re.findall(r"[A-Za-z_]\w*", text)) & set(names):
        constants = {**dict.fromkeys(names, 0.0), **lengths}
        del constants[name]
        out[names.index(name)] = evaluate_expression(text, constants, (name,))[1]
    return out
