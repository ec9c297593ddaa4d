"""Groups of parameters with recognised and exact coefficients, written as formulas: Izz2 + l2²·m3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import Parameter, Terms
from steelyard.regression._coefficient import Expression, Recogniser, decimal, quotient
from steelyard.regression._lengths import Length, lengths_of, with_changed_lengths
from steelyard.regression._structure import fresh_rows
from steelyard.robot.robot import Robot

_ONE = Expression("", "", 1.0)


class FormulaWriter:
    """Recognises the coefficients of one robot.

    Args:
        robot: Robot with the lengths.
        lengths: Lengths of the robot, and their values in the changed robot.
    """

    def __init__(self, robot: Robot, lengths: Sequence[Length]) -> None:
        self.robot, self.lengths = robot, tuple(lengths)
        self.gravity = float(np.linalg.norm(robot.gravity))
        self._recognisers: dict[tuple[int, ...], Recogniser] = {}

    def expression(
        self, pair: Array, lead: tuple[Parameter, int | None], other: tuple[Parameter, int | None]
    ) -> Expression:
        """Recognise a coefficient.

        Args:
            pair: Value of the coefficient with original and with changed lengths; both positive.
            lead: The parameter it adds to, with its link (None: a term).
            other: The parameter it multiplies, with its link.
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
        """Return a recogniser with the lengths between two links, or with all lengths if a term is involved."""
        way = None if one is None or other is None else self._links_between(one, other)
        key = tuple(k for k, length in enumerate(self.lengths) if way is None or length.frames & way)
        if key not in self._recognisers:
            self._recognisers[key] = Recogniser([self.lengths[k] for k in key])
        return self._recognisers[key]

    def _links_between(self, one: int, other: int) -> set[int]:
        a, b = self.robot.ancestors(one), self.robot.ancestors(other)
        common = [x for x, y in zip(a, b, strict=False) if x == y]
        return {*a[len(common) :], *b[len(common) :], common[-1] if common else -1}


def write_formula(lead: int, coefficients: dict[int, tuple[float, Expression]], names: Sequence[str]) -> str:
    """Write the leading parameter plus all others; parameters with the same coefficient share it.

    Args:
        lead: Column of the leading parameter.
        coefficients: Sign and absolute value of the coefficient by column.
        names: Names of the columns.
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


# With changed lengths the relations between columns must stay the same up to this; otherwise the original lengths were
# special (for example equal), and formulas are derived from one robot only.
_SAME_RELATIONS = 1e-9
# A changed coefficient below this is zero (relative to the other columns' norms).
_ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class FormulaGroups:
    """Groups with exact coefficients, and their formulas."""

    matrix: Array
    formulas: tuple[str, ...]


def write_groups(
    dynamics: Dynamics,
    matrix: Array,
    lead: Sequence[int],
    parameters: Sequence[Parameter],
    per_link: int,
    expand: Array | None = None,
) -> FormulaGroups:
    """Recognise the coefficients of groups.

    Args:
        dynamics: Physics of the robot with its terms.
        matrix: One row per group, one column per parameter; 1 in the column of the group's leading parameter.
        lead: Leading parameter of each group.
        parameters: Parameters of the columns.
        per_link: Parameters per link (10 or 16).
        expand: Matrix from a regressor of ten parameters per link to this one's.
    """
    # Closed loops would not close with other lengths, so their coefficients stay numbers.
    lengths = () if dynamics.robot.loops else lengths_of(dynamics.robot)
    changed = matrix if dynamics.robot.loops else _with_changed_lengths(dynamics, lengths, lead, expand)
    if changed is None:
        changed, lengths = matrix, tuple(Length(x.text, x.value, x.value, x.frames) for x in lengths)
    writer = FormulaWriter(dynamics.robot, lengths)
    links = len(dynamics.robot.links)
    places = [k // per_link if k < per_link * links else None for k in range(len(parameters))]
    names = [p.name for p in parameters]
    out, formulas = matrix.copy(), []
    seen: dict[tuple[object, ...], Expression] = {}
    for row, first in enumerate(lead):
        found: dict[int, tuple[float, Expression]] = {}
        for k in (int(j) for j in np.flatnonzero(matrix[row])):
            if k == first:
                continue
            pair = np.array([matrix[row, k], changed[row, k]])
            sign = float(np.sign(pair[0]))
            pair = pair * sign if pair[1] * sign > 0.0 else np.abs(pair[[0, 0]])
            key = (places[first], places[k], parameters[first].unit, parameters[k].unit, *(f"{x:.10e}" for x in pair))
            if key not in seen:
                seen[key] = writer.expression(pair, (parameters[first], places[first]), (parameters[k], places[k]))
            found[k] = (sign, seen[key])
            out[row, k] = sign * seen[key].value
        formulas.append(write_formula(first, found, names))
    return FormulaGroups(out, tuple(formulas))


def _with_changed_lengths(
    dynamics: Dynamics, lengths: tuple[Length, ...], lead: Sequence[int], expand: Array | None
) -> Array | None:
    """Compute the groups' coefficients in the robot with changed lengths; None if its columns depend differently."""
    robot = with_changed_lengths(dynamics.robot, lengths)
    W = fresh_rows(Dynamics(robot, Terms(robot, dynamics.terms.terms)))
    if expand is not None:
        W = W @ expand
    sizes = np.linalg.norm(W, axis=0)
    scale = np.where(sizes > 0.0, sizes, 1.0)
    S = W / scale
    coefficients, *_ = np.linalg.lstsq(S[:, list(lead)], S, rcond=None)
    error = np.linalg.norm(S - S[:, list(lead)] @ coefficients, axis=0)
    if error.max(initial=0.0) > _SAME_RELATIONS:
        return None
    coefficients[np.abs(coefficients) < _ZERO] = 0.0
    out: Array = coefficients * scale / scale[list(lead), None]
    return out
