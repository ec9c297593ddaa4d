"""`identifiable`: the deviations that a kind of measurement can identify, alone or in combinations, with formulas.

The answer follows from the structure of the robot, not from one table: the derivatives at many random postures span the
identifiable directions of any table. With a table, the derivatives at its poses give the answer for this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.calibration.chain import Chain
from steelyard.calibration.deviation_fit import Problem
from steelyard.calibration.joint_effects import Deviations, postures_of
from steelyard.calibration.measurement import Measurement, Setup
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr

# Singular values below this part of the largest one are zero: rounding gives 1e-12, the weakest real one 1e-6.
_ZERO = 1e-9
# Coefficients of a formula below this size are rounding.
_SMALL = 1e-7
_POSTURES = 200


@short_repr
@dataclass(frozen=True, eq=False)
class GeometryIdentifiability:
    """Identifiability of the unknowns, which are the setup's numbers and the deviations.

    Attributes:
        names: Names of all unknowns, the setup's first.
        rank: Number of identifiable combinations.
        formulas: One per dependent unknown: its equivalent in terms of other unknowns.
        alone: Deviations that are identifiable on their own.
        null_space: Directions that change no reading, one per row.
    """

    names: tuple[str, ...]
    rank: int
    formulas: tuple[str, ...]
    alone: tuple[str, ...]
    null_space: Array


def identifiable(
    chain: Chain, effects: Sequence[str], measurement: Measurement, setup: Setup, q: Array | None = None, seed: int = 0
) -> GeometryIdentifiability:
    """Find the deviations of a robot that a kind of measurement can identify.

    Args:
        chain: Chain to the tool.
        effects: Effects of the model.
        measurement: Readings; only their kind counts.
        setup: Setup.
        q: Joint positions of a table; None: random ones, for the structure.
        seed: Seed of the random postures.
    """
    if q is None:
        rng = np.random.default_rng(seed)
        # The same range for prismatic joints: any range up to a few times the size of the robot gives the same result.
        q = rng.uniform(-2.0, 2.0, (_POSTURES, chain.robot.dof))
    approach = np.sign(np.random.default_rng(seed + 1).normal(size=q.shape))
    alike = measurement.rows(np.arange(len(q)) % len(measurement))
    alike = alike.as_predicted(setup, chain.tips(q))
    problem = Problem.of(Deviations.of(chain, effects), postures_of(chain, q, approach), alike)
    _, J = problem.jacobian(setup, np.zeros(len(problem.deviations)))
    names = (*measurement.setup_names(setup), *problem.deviations.names)
    return _of_rows(J.reshape(-1, J.shape[2]), names, J.shape[2] - len(problem.deviations))


def _of_rows(rows: Array, names: tuple[str, ...], first: int) -> GeometryIdentifiability:
    sizes = np.linalg.norm(rows, axis=0)
    dead = sizes <= _ZERO * max(float(sizes.max()), 1e-300)
    scale = np.where(dead, 1.0, sizes)
    # The triangle has the same singular values and right vectors as all rows; there are more rows than unknowns.
    _, s, v = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"), full_matrices=True)
    rank = int(np.sum(s > _ZERO * s[0]))
    null = v[rank:] / scale
    reduced, pivots = _echelon(null * scale)
    reduced = reduced / scale
    formulas, mixed = [], set()
    for row, pivot in zip(reduced, pivots, strict=True):
        row = row / row[pivot]
        # Coefficients matter relative to what they change in the readings.
        members = [k for k in range(len(names)) if k != pivot and abs(row[k]) * scale[k] > _SMALL * scale[pivot]]
        mixed |= {pivot, *members}
        if not members:
            formulas.append(f"{names[pivot]} changes no reading")
            continue
        terms = [f"{-row[k]:+.4g} {names[k]}" for k in members]
        formulas.append(f"{names[pivot]} is equivalent to {' '.join(terms).lstrip('+')}")
    alone = tuple(names[k] for k in range(first, len(names)) if k not in mixed)
    return GeometryIdentifiability(names, rank, tuple(formulas), alone, null)


def _echelon(null: Array) -> tuple[Array, list[int]]:
    """Reduce a null space to reduced echelon form, from the last unknown backwards.

    The setup comes first, so that the formula of a deviation uses the setup where the two cannot be separated.
    """
    T, pivots = null.copy(), list[int]()
    for column in range(T.shape[1])[::-1]:
        row = len(pivots)
        if row == len(T):
            break
        best = row + int(np.argmax(np.abs(T[row:, column])))
        if abs(T[best, column]) < _SMALL:
            continue
        T[[row, best]] = T[[best, row]]
        T[row] /= T[row, column]
        for other in range(len(T)):
            if other != row:
                T[other] -= T[other, column] * T[row]
        pivots.append(column)
    return T[: len(pivots)], pivots
