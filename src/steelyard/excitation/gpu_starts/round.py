"""`first_round`: all random starts of a search, improved at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from steelyard.dynamics.cuda.device import Device, gpu
from steelyard.errors import ExcitationError
from steelyard.excitation._lagrangian import Iterate
from steelyard.excitation.constraints import Constraint
from steelyard.excitation.gpu_starts.descent import ManyIterates, many_steps
from steelyard.excitation.gpu_starts.limits import ManyJointLimits, many_limits
from steelyard.excitation.gpu_starts.rows import ManyGoal
from steelyard.excitation.problem import SearchProblem
from steelyard.ground.arrays import Array


class ManyStarts:
    """A search's problem, compiled for many motions at once.

    Args:
        problem: the goal, the centre, and what motions must keep to.
        active: of the constraints, those that the search looks at from its beginning.
        device: where; None: the first GPU.
    """

    def __init__(self, problem: SearchProblem, active: Sequence[Constraint], device: Device | None = None) -> None:
        self.problem, self.device = problem, device or gpu()
        self.goal = ManyGoal(problem.goal, self.device)
        self.limits = many_limits(active, self.device)
        self._joints = next(c for c in self.limits if isinstance(c, ManyJointLimits))
        self._calm = self.device.place(problem.centre.coefficients)

    def starts(self, count: int, seed: int) -> Array:
        """`count` random motions up to 80 % of the joint limits, drawn by `seed` as `SearchProblem` draws each."""
        size = len(self.problem.centre.coefficients)
        normal = np.array([np.random.default_rng([seed, k]).normal(size=size) for k in range(count)])
        wild = self._calm + 1e3 * self.device.place(normal)
        edge: Array = self._calm + 0.8 * (self._joints.draw_back(wild, self._calm) - self._calm)
        return edge

    def ranks(self, x: Array) -> Array:
        """The objective without smoothing of each motion `x`, drawn back into the joint limits first."""
        inside = self._joints.draw_back(x, self._calm)
        seen = self.goal.criterion_matrix(self.goal.grams(inside))
        values = np.linalg.eigvalsh(self.device.fetch(seen))
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
        """The best `keep` of `count` starts after their first round, by rank, and how many evaluations it took.

        Args:
            count: how many starts.
            seed: that draws them.
            sharpness: of the p-norm, a whole number.
            repeats: outer iterations.
            iterations: inner ones of each.
            keep: how many are wanted.
            stop: asked before every evaluation; the best so far is then taken.
        """
        if sharpness != int(sharpness):
            raise ExcitationError(f"The sharpness is {sharpness:g}; on a GPU it is a whole number.")
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
        """Motion `k`, as the search goes on with it."""
        fetch = self.device.fetch
        own = [
            limit.multipliers_of(fetch(np.take(mu, k, axis=limit.motions_axis)))
            for limit, mu in zip(self.limits, state.multipliers, strict=True)
        ]
        return Iterate(fetch(state.x[k]), own, float(state.penalty[k]), float(state.violation[k]), evaluations)
