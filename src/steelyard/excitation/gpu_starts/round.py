"""`ManyStarts`: the first round of a search, with all random starts in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from steelyard.dynamics.cuda.device import Device, gpu
from steelyard.errors import ExcitationError
from steelyard.excitation._lagrangian import Iterate
from steelyard.excitation.constraints import Constraint
from steelyard.excitation.gpu_starts.descent import ManyIterates, many_steps
from steelyard.excitation.gpu_starts.many_limits import ManyJointLimits, many_limits
from steelyard.excitation.gpu_starts.many_motions import ManyGoal
from steelyard.excitation.search_problem import SearchProblem
from steelyard.ground.arrays import Array


class ManyStarts:
    """A search problem, compiled for many motions in parallel.

    Args:
        problem: The problem.
        active: Constraints that the search uses from its beginning.
        device: The GPU; None: the first one.
    """

    def __init__(self, problem: SearchProblem, active: Sequence[Constraint], device: Device | None = None) -> None:
        self.problem, self.device = problem, device or gpu()
        self.goal = ManyGoal(problem.goal, self.device)
        self.limits = many_limits(active, self.device)
        self._joints = next(c for c in self.limits if isinstance(c, ManyJointLimits))
        self._calm = self.device.place(problem.centre.coefficients)

    def starts(self, count: int, seed: int) -> Array:
        """Draw random motions up to 80 % of the joint limits, as `SearchProblem` draws each.

        Args:
            count: Number of motions.
            seed: Seed of the motions.
        """
        size = len(self.problem.centre.coefficients)
        normal = np.array([np.random.default_rng([seed, k]).normal(size=size) for k in range(count)])
        wild = self._calm + 1e3 * self.device.place(normal)
        edge: Array = self._calm + 0.8 * (self._joints.draw_back(wild, self._calm) - self._calm)
        return edge

    def ranks(self, x: Array) -> Array:
        """Draw each motion `x` back into the joint limits and return its objective without smoothing."""
        inside = self._joints.draw_back(x, self._calm)
        matrices = self.goal.criterion_matrix(self.goal.grams(inside))
        values = np.linalg.eigvalsh(self.device.fetch(matrices))
        return np.array([self.problem.goal.criterion.rank(one) for one in values])

    def improve(
        self,
        count: int,
        seed: int,
        sharpness: float,
        repeats: int,
        iterations: int,
        keep: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[list[tuple[float, Iterate]], int]:
        """Run the first round; return its best motions by rank, and the number of evaluations.

        Args:
            count: Number of starts.
            seed: Seed of the starts.
            sharpness: Exponent of the p-norm, a whole number.
            repeats: Outer iterations.
            iterations: Inner iterations of each.
            keep: Number of motions to return.
            stop: Called before every evaluation; True ends the round.
        """
        if sharpness != int(sharpness):
            raise ExcitationError(f"The sharpness is {sharpness:g}; on a GPU it must be a whole number.")
        state = ManyIterates.first(self.starts(count, seed), self.limits)
        evaluations = 0
        for _ in range(repeats):
            state, more = many_steps(
                lambda x: self.goal.objective(x, int(sharpness)), self.limits, state, iterations, stop
            )
            evaluations += more
        ranks = self.ranks(state.x)
        best = np.argsort(ranks, kind="stable")[:keep]
        return [(float(ranks[k]), self._iterate(state, int(k), evaluations)) for k in best], evaluations * count

    def _iterate(self, state: ManyIterates, k: int, evaluations: int) -> Iterate:
        """Return motion `k` as a state of the single-motion search."""
        fetch = self.device.fetch
        own = [
            limit.multipliers_of(fetch(np.take(mu, k, axis=limit.motions_axis)))
            for limit, mu in zip(self.limits, state.multipliers, strict=True)
        ]
        return Iterate(fetch(state.x[k]), own, float(state.penalty[k]), float(state.violation[k]), evaluations)
