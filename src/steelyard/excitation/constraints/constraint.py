"""`Constraint`: something a motion must keep to at every instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from steelyard.excitation.trajectories import Trajectory
from steelyard.robot.spatial import Array

Pull = Callable[[Array], Array]


class Constraint(Protocol):
    """Values c(x) ≤ 0 on a grid of times for the optimiser, and a bound that holds between the times.

    Values are shares of the limit: 0.01 is one percent too much. The optimiser needs gradients (`pull`); what has none
    (`smooth` is False: collision by meshes) is checked on what is delivered, and the motion is drawn back towards
    its centre until it holds. A `lazy` constraint is left out of the optimisation until a solution breaks it.
    """

    name: str
    smooth: bool
    lazy: bool

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        """The values at all times of the grid (flat), and pull(μ) = (∂c/∂x)ᵀ μ."""
        ...

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        """No value of the whole motion is larger than this: the constraint holds everywhere if it is ≤ 0.

        Where some value is found to be larger than `enough`, any number above it may be returned at once.
        """
        ...

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        """The values of standing still at `q` (joints,), and their pull on q."""
        ...

    def blame(self, trajectory: Trajectory) -> str:
        """In words, what this motion breaks most and by how much, and what would help."""
        ...
