"""`Problem`: a goal, the motions to choose from, and what they must keep to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.goal import Goal
from steelyard.excitation.settle import grid_settled
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array

# Starts keep this share of their limits: at the edge, the first steps would be all about the limits.
_START = 0.8


@dataclass(frozen=True, eq=False)
class Problem:
    """Coefficients x of motions around `centre`, a calm motion that keeps to all constraints."""

    goal: Goal
    centre: Trajectory
    constraints: tuple[Constraint, ...]

    @property
    def joint_limits(self) -> JointLimits:
        return next(c for c in self.constraints if isinstance(c, JointLimits))

    def objective(self, x: Array, sharpness: float) -> tuple[float, Array]:
        return self.goal.objective(x, sharpness)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Any motion inside the limits, joint by joint up to 80 % of them."""
        calm = self.centre.coefficients
        wild = calm + 1e3 * rng.normal(size=len(calm))
        edge = self.joint_limits.drawn_back(wild, calm)
        return grid_settled(calm + _START * (edge - calm), calm, self.constraints)

    def candidate(self, x: Array, active: Sequence[Constraint]) -> tuple[Array, float]:
        """x drawn back until it keeps to all limits at the times of their grids, and its rank."""
        calm = self.centre.coefficients
        inside = self.joint_limits.drawn_back(x, calm)
        others = [c for c in active if not isinstance(c, JointLimits)]
        if others:
            inside = grid_settled(inside, calm, others)
        return inside, self.rank(inside)

    def rank(self, x: Array) -> float:
        """The objective without smoothing: smaller is better, whatever the criterion."""
        return self.goal.criterion.gradient(self.goal.seen(self.goal.gram(x)))[0]
