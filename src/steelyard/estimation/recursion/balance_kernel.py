"""`BalanceKernel`: both sides of the balance over one sampling interval, in one call of machine code.

For the entries of the regressors that are not structurally zero: stored (momentum or energy) and lost (remainder or
dissipation) at the new sample, and with those of the sample before

    mean = (stored − stored before)·factor + new share·lost + old share·lost before.

At instants (torque or power) nothing is stored, and the mean is the regressor itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.dynamics import regressors
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.function import Function, trace
from steelyard.dynamics.native.balance import Balance
from steelyard.ground.arrays import Array
from steelyard.ground.scalars import Vector
from steelyard.parameters.terms import Entries
from steelyard.regression.base_parameters import BaseParameters


class BalanceKernel(Balance):
    """One of `KINDS` over the base columns: per joint whose torque is used, or for the whole robot.

    `sample` holds q, q̇ (and τ and q̈ for torque and power) one after the other. Entry k of `mean` belongs to equation
    `equations[k]` and column `columns[k]`.
    """

    def __init__(self, dynamics: Dynamics, base: BaseParameters, kind: str, sample: Array) -> None:
        function, self.equations, self.columns = _function(dynamics, base, kind)
        super().__init__(function, sample)


def _function(dynamics: Dynamics, base: BaseParameters, kind: str) -> tuple[Function, Array, Array]:
    """Stored entries, then lost ones, over the same (equation, column) pairs."""
    robot = dynamics.robot
    entries_of, inputs, scalar = KINDS[kind]
    rows = [0] if scalar else [j for j, used in enumerate(robot.torque_used) if used]
    row_of, column_of = {r: k for k, r in enumerate(rows)}, {c: k for k, c in enumerate(base.independent)}

    def body(*signals: Vector) -> dict[tuple[int, ...], Any]:
        return {
            (side, row_of[row], column_of[column]): value
            for side, entries in enumerate(entries_of(dynamics, *signals))
            for (row, column), value in entries.items()
            if row in row_of and column in column_of
        }

    shape = (2, len(rows), base.rank)
    whole = trace(kind, dict.fromkeys(inputs.split(), robot.dof), body, shape)
    side = shape[1] * shape[2]
    output = dict(zip(whole.places.tolist(), whole.outputs, strict=True))
    places = np.unique(whole.places % side)
    outputs = [output.get(int(p) + s * side, 0.0) for s in (0, 1) for p in places]
    count = np.arange(len(outputs), dtype=np.int64)
    picked = Function(kind, whole.graph, whole.inputs, tuple(outputs), (len(outputs),), count)
    return picked, *np.divmod(places, base.rank)


def _momentum(dynamics: Dynamics, q: Vector, dq: Vector) -> tuple[Entries, Entries]:
    robot, terms = dynamics.robot, dynamics.terms
    stored = {**regressors.momentum_regressor(robot, q, dq), **_behind(robot.links, terms.momentum(q, dq))}
    lost = {**regressors.remainder_regressor(robot, q, dq), **_behind(robot.links, terms.remainder(q, dq))}
    return stored, lost


def _energy(dynamics: Dynamics, q: Vector, dq: Vector) -> tuple[Entries, Entries]:
    robot, terms = dynamics.robot, dynamics.terms
    stored: Entries = {}
    of_terms = (_behind(robot.links, terms.kinetic(q, dq)), _behind(robot.links, terms.potential(q)))
    for part in (regressors.kinetic_regressor(robot, q, dq), regressors.potential_regressor(robot, q), *of_terms):
        for key, value in part.items():
            stored[key] = stored[key] + value if key in stored else value
    return stored, _behind(robot.links, terms.dissipation(q, dq))


def _torque(dynamics: Dynamics, q: Vector, dq: Vector, _: Vector, ddq: Vector) -> tuple[Entries, Entries]:
    robot = dynamics.robot
    of_terms = _behind(robot.links, dynamics.terms.torque(q, dq, ddq))
    return {}, {**regressors.torque_regressor(robot, q, dq, ddq), **of_terms}


def _power(dynamics: Dynamics, q: Vector, dq: Vector, tau: Vector, ddq: Vector) -> tuple[Entries, Entries]:
    total: Entries = {}
    for (joint, column), value in _torque(dynamics, q, dq, tau, ddq)[1].items():
        part = dq[joint] * value
        total[0, column] = total[0, column] + part if (0, column) in total else part
    return {}, total


# By name: stored and lost, the signals they need, and whether they are one equation for the whole robot.
KINDS: dict[str, tuple[Callable[..., tuple[Entries, Entries]], str, bool]] = {
    "momentum": (_momentum, "q dq", False),
    "energy": (_energy, "q dq", True),
    "torque": (_torque, "q dq tau ddq", False),
    "power": (_power, "q dq tau ddq", True),
}


def _behind(links: tuple[Any, ...], of_terms: Entries) -> Entries:
    """The terms' columns come after ten per link."""
    return {(row, 10 * len(links) + k): value for (row, k), value in of_terms.items()}
