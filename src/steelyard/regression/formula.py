"""Write base parameters as formulas: Izz2 + l2²·m3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.parameters.terms import Parameter
from steelyard.regression.coefficient import Expression, Recogniser, decimal
from steelyard.regression.dimension import quotient
from steelyard.regression.lengths import Length
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

_ONE = Expression("", "", 1.0)


class FormulaWriter:
    """Recognises the coefficients of one robot.

    Args:
        robot: whose lengths the formulas use.
        lengths: those lengths, and what they become in the changed robot.
    """

    def __init__(self, robot: Robot, lengths: Sequence[Length]) -> None:
        self.robot, self.lengths = robot, tuple(lengths)
        self.gravity = float(np.linalg.norm(robot.gravity))
        self._recognisers: dict[tuple[int, ...], Recogniser] = {}

    def expression(
        self, pair: Array, lead: tuple[Parameter, int | None], other: tuple[Parameter, int | None]
    ) -> Expression:
        """What a coefficient (as it is, and with lengths changed; both positive) stands for.

        `lead` and `other` are the parameter it adds to and the one it multiplies, each with its link (None: a term).
        """
        if abs(pair[0] - 1.0) < 1e-12 and abs(pair[1] - 1.0) < 1e-12:
            return _ONE
        size = quotient(lead[0].unit, other[0].unit)
        if size is None or size[0] != 0 or size[2] not in (0, -2, 2) or (size[2] and not self.gravity):
            return decimal(float(pair[0]))
        power = -size[2] // 2  # of gravity, in m/s²
        g = self.gravity**power
        found = self._recogniser(lead[1], other[1]).recognise(pair / g, size[1] - power)
        if found is None:
            return decimal(float(pair[0]))
        if power == 0:
            return found
        top = "·".join(x for x in ("g" if power > 0 else "", found.numerator) if x)
        bottom = "·".join(x for x in ("g" if power < 0 else "", found.denominator) if x)
        return Expression(top, f"({bottom})" if "·" in bottom else bottom, found.value * g)

    def _recogniser(self, one: int | None, other: int | None) -> Recogniser:
        """A recogniser with the lengths on the way from one link to another; all lengths where a term is involved."""
        way = None if one is None or other is None else self._way(one, other)
        key = tuple(k for k, length in enumerate(self.lengths) if way is None or length.frames & way)
        if key not in self._recognisers:
            self._recognisers[key] = Recogniser([self.lengths[k] for k in key])
        return self._recognisers[key]

    def _way(self, one: int, other: int) -> set[int]:
        a, b = self.robot.ancestors(one), self.robot.ancestors(other)
        common = [x for x, y in zip(a, b, strict=False) if x == y]
        return {*a[len(common) :], *b[len(common) :], common[-1] if common else -1}


def write_formula(lead: int, coefficients: dict[int, tuple[float, Expression]], names: Sequence[str]) -> str:
    """The leading parameter plus all others; those with the same coefficient share it.

    `coefficients` maps a column to the sign and the absolute value of its coefficient.
    """
    shared: dict[tuple[float, str, str], list[str]] = {}
    for k, (sign, e) in coefficients.items():
        shared.setdefault((sign, e.numerator, e.denominator), []).append(names[k])
    out = names[lead]
    for (sign, numerator, denominator), members in shared.items():
        plain = not numerator and not denominator
        if len(members) == 1 or plain:
            between = " + " if sign > 0 else " - "
            what = between.join(members)
        else:
            what = f"({' + '.join(members)})"
        out += (" + " if sign > 0 else " - ") + Expression(numerator, denominator, 0.0).times(what)
    return out
