"""A motion that nobody designed: what a careful person might play, and what a design is held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.excitation.constraints import Constraint, JointLimits, Limits
from steelyard.excitation.requirements import grid
from steelyard.excitation.settle import settle
from steelyard.excitation.trajectories import Family, Trajectory

# As starts of a search do: limits are neared, not touched.
_SHARE = 0.8


def random_motion(
    families: Sequence[Family],
    limits: Limits,
    seed: int = 0,
    needs: Sequence[Constraint] = (),
    centre: Trajectory | None = None,
) -> Trajectory:
    """Random coefficients, every joint up to 80 % of its limits, drawn back until `needs` hold at every instant."""
    calm = centre or Trajectory.standing(families, limits.middle)
    keep = JointLimits(limits, families, grid(families, 40))
    wild = calm.coefficients + 1e3 * np.random.default_rng([seed, 8]).normal(size=calm.size)
    edge = calm.coefficients + _SHARE * (keep.drawn_back(wild, calm.coefficients) - calm.coefficients)
    return settle(calm.with_coefficients(edge), calm, (keep, *needs))
