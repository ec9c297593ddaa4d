"""`ByPieces`: a constraint on motions whose acceleration jumps, checked between the jumps, where all is smooth."""

from __future__ import annotations

import numpy as np

from steelyard.excitation.constraints.constraint import Constraint, Pull
from steelyard.excitation.trajectories import Fixed, Trajectory
from steelyard.robot.spatial import Array


class ByPieces:
    """The bound of a constraint on the whole motion is the largest of its bounds on the pieces."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self.name, self.smooth, self.lazy = constraint.name, constraint.smooth, constraint.lazy

    def excess(self, trajectory: Trajectory, enough: float = np.inf) -> float:
        worst = -np.inf
        for piece in _pieces(trajectory):
            worst = max(worst, self._constraint.excess(piece, enough))
            if worst > enough:
                break
        return worst

    def evaluate(self, x: Array) -> tuple[Array, Pull]:
        return self._constraint.evaluate(x)

    def at_rest(self, q: Array) -> tuple[Array, Pull]:
        return self._constraint.at_rest(q)

    def blame(self, trajectory: Trajectory) -> str:
        return max(
            (self._constraint.excess(p), k, self._constraint.blame(p)) for k, p in enumerate(_pieces(trajectory))
        )[2]


def _pieces(trajectory: Trajectory) -> list[Trajectory]:
    """The motion cut at its breaks, each piece starting at time 0; the same motion where nothing is cut."""
    fixed = [f for f in trajectory.families if isinstance(f, Fixed)]
    if len(fixed) != trajectory.joints:
        return [trajectory]
    lengths = np.diff(fixed[0].breaks).tolist()
    return [
        Trajectory(tuple(Fixed((0.0, h), (f.table[k],)) for f in fixed), np.zeros(0)) for k, h in enumerate(lengths)
    ]
