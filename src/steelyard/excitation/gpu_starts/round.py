"""`ManyStarts`: the first round of a search, with all random starts in parallel.

It minimises the augmented Lagrangian of `_lagrangian.py`. Every motion has its own L-BFGS, step length and memory, but
all are evaluated together: one motion may halve its step while another takes its next one. Steps need a sufficient
decrease (Armijo); pairs without positive curvature are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.dynamics.cuda.device import Device, gpu
from steelyard.errors import ExcitationError
from steelyard.excitation._lagrangian import FIRST_PENALTY, GROWTH, LARGEST_PENALTY, Iterate
from steelyard.excitation.constraints import Constraint
from steelyard.excitation.gpu_starts.many_motions import ManyGoal, ManyJointLimits, ManyLimit, many_limits
from steelyard.excitation.search_problem import SearchProblem
from steelyard.ground.arrays import Array

_Many = Callable[[Any], tuple[Any, Any]]

# Stored pairs: fewer than for a single motion, since each costs a few kernel launches.
_MEMORY = 12
# As for one motion: relative decrease, and largest entry of the gradient, at which a motion has converged.
_DECREASE, _GRADIENT = 1e-9, 1e-5
_ENOUGH = 1e-4
# Largest mean number of evaluations per step.
_TRIES = 1.3


def minimise(
    function: _Many, x: Any, iterations: int, stop: Callable[[], bool] = lambda: False, scale: float = 1.0
) -> tuple[Any, int]:
    """Minimise a function for each motion; return the motions and the number of common evaluations.

    Args:
        function: Values `(motions,)` and gradients `(motions, size)` of coefficients `(motions, size)`.
        x: Starts.
        iterations: Largest number of steps of each motion.
        stop: Called before every evaluation; True ends the minimisation.
        scale: Length of the first step.
    """
    value, gradient = function(x)
    pairs = np.zeros_like(x, shape=(2, _MEMORY, *x.shape))
    curvature = np.zeros_like(x, shape=(_MEMORY, len(x)))  # 1 / sᵀy; 0 without a pair
    direction = -gradient
    step = scale / np.maximum(_norm(gradient), 1e-300)
    taken, going = np.zeros_like(x, shape=(len(x),)), np.isfinite(value)
    evaluations = 1
    while evaluations <= _TRIES * iterations and not stop() and bool(np.any(going)):
        evaluations += 1
        trial = x + (step * going)[:, None] * direction
        trial_value, slope = function(trial)
        expected = _dot(gradient, direction) * step
        good = going & (trial_value <= value + _ENOUGH * expected)
        moved, turned = trial - x, slope - gradient
        product = _dot(moved, turned)
        convex = good & (product > 1e-12 * _norm(moved) * _norm(turned))
        pairs, curvature = _append_pair(pairs, curvature, np.stack([moved, turned]), product, convex)
        size = np.maximum(np.abs(value), np.abs(trial_value))
        little = value - trial_value <= _DECREASE * np.maximum(size, 1.0)
        # The minimum of the parabola through both values and the slope is the next step.
        with np.errstate(invalid="ignore", divide="ignore"):
            best = -0.5 * expected / (trial_value - value - expected)
        shorter = np.where(np.isfinite(best), np.clip(best, 0.1, 0.5), 0.1)
        x, gradient = (np.where(good[:, None], new, old) for new, old in ((trial, x), (slope, gradient)))
        value, taken = np.where(good, trial_value, value), taken + good
        ahead = _direction(gradient, pairs, curvature)
        downhill = _dot(ahead, gradient) < 0.0
        ahead = np.where(downhill[:, None], ahead, -gradient)
        first = np.where(downhill, 1.0, scale / np.maximum(_norm(gradient), 1e-300))
        direction = np.where(good[:, None], ahead, direction)
        step = np.where(good, first, step * shorter)
        done = (good & (little | (np.abs(gradient).max(axis=1) <= _GRADIENT))) | (taken >= iterations) | (step < 1e-12)
        going = going & ~done
    return x, evaluations


def _dot(a: Any, b: Any) -> Any:
    return np.sum(a * b, axis=-1)


def _norm(a: Any) -> Any:
    return np.sqrt(_dot(a, a))


def _append_pair(pairs: Any, curvature: Any, new: Any, product: Any, where: Any) -> tuple[Any, Any]:
    """Append the `new` pair for the motions `where`; the oldest one is dropped."""
    later = np.concatenate([pairs[:, 1:], new[:, None]], axis=1)
    safe = np.where(where, product, 1.0)
    curved = np.concatenate([curvature[1:], (1.0 / safe)[None]])
    return np.where(where[:, None], later, pairs), np.where(where, curved, curvature)


def _direction(gradient: Any, pairs: Any, curvature: Any) -> Any:
    """Return −H g by the two loops of L-BFGS (Nocedal & Wright 2006, algorithm 7.4)."""
    (moved, turned), q, shares = pairs, gradient, []
    for k in reversed(range(_MEMORY)):
        share = curvature[k] * _dot(moved[k], q)
        q = q - share[:, None] * turned[k]
        shares.append(share)
    length = _dot(turned[-1], turned[-1]) * curvature[-1]
    q = q / np.where(length > 0.0, length, 1.0)[:, None]
    for k, share in zip(range(_MEMORY), reversed(shares), strict=True):
        q = q + (share - curvature[k] * _dot(turned[k], q))[:, None] * moved[k]
    return -q


@dataclass
class ManyIterates:
    """State of many minimisations: coefficients, multipliers of every limit, penalties and violations."""

    x: Any
    multipliers: list[Any]
    penalty: Any
    violation: Any

    @staticmethod
    def first(x: Any, limits: Sequence[ManyLimit]) -> ManyIterates:
        """Return the initial state.

        Args:
            x: Starts.
            limits: The limits.
        """
        ones = np.ones_like(x, shape=(len(x),))
        return ManyIterates(x, [np.zeros_like(c.evaluate(x)) for c in limits], FIRST_PENALTY * ones, np.inf * ones)


def many_steps(
    objective: _Many,
    limits: Sequence[ManyLimit],
    start: ManyIterates,
    iterations: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[ManyIterates, int]:
    """Perform one outer iteration of every motion, as `_lagrangian.step`; return it and the number of evaluations.

    Args:
        objective: Values and gradients of many motions.
        limits: The limits.
        start: State to continue from.
        iterations: Inner steps of each motion.
        stop: Called before every evaluation; True ends the iteration.
    """

    def along(values: Any, limit: ManyLimit) -> Any:
        """Reshape one number per motion for broadcasting with the values of a limit."""
        shape = [1, 1, 1, 1, 1][: start.multipliers[limits.index(limit)].ndim]
        shape[limit.motions_axis] = -1
        return values.reshape(shape)

    def lagrangian(x: Any) -> tuple[Any, Any]:
        value, gradient = objective(x)
        for limit, mu in zip(limits, start.multipliers, strict=True):
            push = np.maximum(0.0, mu + along(start.penalty, limit) * limit.evaluate(x))
            others = tuple(k for k in range(push.ndim) if k != limit.motions_axis)
            value = value + np.sum(push * push - mu * mu, axis=others) / (2.0 * start.penalty)
            gradient = gradient + limit.pull(x, push)
        return value, gradient

    x, count = minimise(lagrangian, start.x, iterations, stop)
    values = [limit.evaluate(x) for limit in limits]
    violation = np.zeros_like(start.violation)
    for limit, v in zip(limits, values, strict=True):
        others = tuple(k for k in range(v.ndim) if k != limit.motions_axis)
        violation = np.maximum(violation, v.max(axis=others))
    updated = [
        np.maximum(0.0, mu + along(start.penalty, limit) * v)
        for limit, mu, v in zip(limits, start.multipliers, values, strict=True)
    ]
    slow = (violation > 0.25 * start.violation) & (violation > 1e-4)
    penalty = np.where(slow, np.minimum(GROWTH * start.penalty, LARGEST_PENALTY), start.penalty)
    return ManyIterates(x, updated, penalty, violation), count


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
