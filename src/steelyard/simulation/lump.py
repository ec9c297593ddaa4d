"""Lumped parameters: fewer numbers per link that move the robot in just the same way.

Torque is linear in the links' parameters, τ = Y θ, and some columns of Y are combinations of columns of links
nearer to the base (a mass behind a revolute joint acts like mass, first moment and inertia of the link before
it; Gautier & Khalil 1990). Parameters of such columns are added to the others and set to zero, which saves
12 to 23 % of the arithmetic of forward dynamics. Nothing else is meant by them: the lumped links need not be
physically possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array, frozen

# Inside a link, parameters that are good to get rid of come last: their columns are tried against the others.
_KEEP_FIRST = (9, 4, 5, 7, 8, 1, 2, 3, 0, 6)
# A column whose part outside the span of the others is smaller than this is a combination of them. Measured on the
# built-in robots and a UR10: dependent columns leave at most 3e-11, the others at least 0.5.
_DEPENDENT = 1e-9
# Columns this small beside the largest are the rounding of sines and cosines that should vanish.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Lumps:
    """`kept` are the indices that remain, and `matrix` · θ their values (all parameters of the links → the kept)."""

    kept: tuple[int, ...]
    matrix: Array


def lump(robot: Robot) -> Lumps:
    """How the links' parameters of a robot can be lumped; the same for every run on every machine."""
    n, count = robot.dof, 10 * len(robot.links)
    samples = 4 * count // n + 8
    # Fixed states: any generic ones give the same answer. Speeds and accelerations of a few rad/s.
    q, dq, ddq = np.random.default_rng(0).uniform(-3.0, 3.0, (3, samples, n))
    Y = robot.torque_regressor(q, dq, ddq).reshape(samples * n, count)
    everything = Lumps(tuple(range(count)), frozen(np.eye(count)))
    norms = np.linalg.norm(Y, axis=0)
    floor = _NOTHING * float(np.max(norms))
    order = [10 * link + k for link in range(len(robot.links)) for k in _KEEP_FIRST]
    basis = np.zeros((len(Y), 0))
    kept: list[int] = []
    for c in order:
        rest = Y[:, c]
        for _ in range(2):  # twice is enough for an orthogonal remainder (Kahan)
            rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > _DEPENDENT * max(float(norms[c]), floor):
            kept.append(c)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    kept.sort()
    matrix = np.linalg.lstsq(Y[:, kept], Y, rcond=None)[0]
    matrix[np.abs(matrix) < 1e-12] = 0.0
    matrix[:, kept] = np.eye(len(kept))
    if not np.allclose(Y[:, kept] @ matrix, Y, rtol=0.0, atol=1e-10 * (1.0 + float(np.abs(Y).max()))):
        return everything  # no clear structure: full parameters are always right
    return Lumps(tuple(kept), frozen(matrix))
