"""Groups of parameters, with coefficients recognised and snapped to what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.parameters.terms import Parameter, Terms
from steelyard.regression.coefficient import Expression
from steelyard.regression.formula import FormulaWriter, write_formula
from steelyard.regression.lengths import Length, lengths_of, with_changed_lengths
from steelyard.regression.structure import fresh_rows
from steelyard.robot.spatial import Array

# With its lengths changed, the robot must keep the same relations between columns to rounding, else the lengths as
# they are were special (say, equal), and formulas are sought from one robot only.
_KEPT = 1e-9
# Below this, a changed coefficient is zero (relative to the other columns' norms).
_ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class Written:
    """Groups with snapped coefficients, and their formulas."""

    matrix: Array
    formulas: tuple[str, ...]


def write_groups(
    dynamics: Dynamics,
    matrix: Array,
    lead: Sequence[int],
    parameters: Sequence[Parameter],
    per_link: int,
    expand: Array | None = None,
) -> Written:
    """Recognise the coefficients of groups.

    Args:
        dynamics: of the robot with its terms.
        matrix: one row per group, one column per parameter; 1 in the column of the group's leading parameter.
        lead: the leading parameter of each group.
        parameters: what the columns stand for.
        per_link: how many parameters a link has (10 or 16).
        expand: the matrix that turns a regressor of ten parameters per link into this one's.
    """
    lengths = lengths_of(dynamics.robot)
    changed = _with_changed_lengths(dynamics, lengths, lead, expand)
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
    return Written(out, tuple(formulas))


def _with_changed_lengths(
    dynamics: Dynamics, lengths: tuple[Length, ...], lead: Sequence[int], expand: Array | None
) -> Array | None:
    """The groups' coefficients in the robot with changed lengths, or None if its columns depend differently."""
    robot = with_changed_lengths(dynamics.robot, lengths)
    W = fresh_rows(Dynamics(robot, Terms(robot, dynamics.terms.terms)))
    if expand is not None:
        W = W @ expand
    sizes = np.linalg.norm(W, axis=0)
    scale = np.where(sizes > 0.0, sizes, 1.0)
    S = W / scale
    coefficients, *_ = np.linalg.lstsq(S[:, list(lead)], S, rcond=None)
    error = np.linalg.norm(S - S[:, list(lead)] @ coefficients, axis=0)
    if error.max(initial=0.0) > _KEPT:
        return None
    coefficients[np.abs(coefficients) < _ZERO] = 0.0
    out: Array = coefficients * scale / scale[list(lead), None]
    return out
