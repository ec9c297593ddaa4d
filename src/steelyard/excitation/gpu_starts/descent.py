"""The augmented Lagrangian of `_lagrangian.py` for many motions at once.

Every motion has its own L-BFGS, step length and memory, but all are evaluated together: one whose step was too long
halves it while another goes on, so that nobody waits. Steps need only bring enough (Armijo); pairs without positive
curvature are not remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.excitation._lagrangian import FIRST_PENALTY, GROWTH, LARGEST_PENALTY
from steelyard.excitation.gpu_starts.limits import ManyLimit

_Many = Callable[[Any], tuple[Any, Any]]

# Pairs that are remembered: fewer than one motion alone keeps, for each is a few launches of a kernel.
_MEMORY = 12
# As for one motion: relative decrease, and largest entry of the gradient, at which there is nothing left to gain.
_DECREASE, _GRADIENT = 1e-9, 1e-5
_ENOUGH = 1e-4
# Evaluations for a step, on average, beyond which a motion is left as it is.
_TRIES = 1.3


def minimise(
    function: _Many, x: Any, iterations: int, stop: Callable[[], bool] = lambda: False, scale: float = 1.0
) -> tuple[Any, int]:
    """Where each motion gets to in so many steps, and how often all were evaluated.

    Args:
        function: values `(motions,)` and gradients `(motions, size)` of coefficients `(motions, size)`.
        x: the starts.
        iterations: steps of each.
        stop: asked before every evaluation.
        scale: length of the first step.
    """
    value, gradient = function(x)
    pairs = np.zeros_like(x, shape=(2, _MEMORY, *x.shape))
    curvature = np.zeros_like(x, shape=(_MEMORY, len(x)))  # 1 / sᵀy; 0 where there is no pair
    direction = -gradient
    step = scale / np.maximum(_norm(gradient), 1e-300)
    taken, going = np.zeros_like(x, shape=(len(x),)), np.isfinite(value)
    evaluations = 1
    while evaluations <= _TRIES * iterations and not stop() and bool(np.any(going)):
        evaluations += 1
        trial = x + (step * going)[:, None] * direction
        found, slope = function(trial)
        expected = _dot(gradient, direction) * step
        good = going & (found <= value + _ENOUGH * expected)
        moved, turned = trial - x, slope - gradient
        product = _dot(moved, turned)
        kept = good & (product > 1e-12 * _norm(moved) * _norm(turned))
        pairs, curvature = _remembered(pairs, curvature, np.stack([moved, turned]), product, kept)
        little = value - found <= _DECREASE * np.maximum(np.maximum(np.abs(value), np.abs(found)), 1.0)
        # The parabola through what is known says where along the direction to try next.
        with np.errstate(invalid="ignore", divide="ignore"):
            best = -0.5 * expected / (found - value - expected)
        shorter = np.where(np.isfinite(best), np.clip(best, 0.1, 0.5), 0.1)
        x, gradient = (np.where(good[:, None], new, old) for new, old in ((trial, x), (slope, gradient)))
        value, taken = np.where(good, found, value), taken + good
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


def _remembered(pairs: Any, curvature: Any, new: Any, product: Any, kept: Any) -> tuple[Any, Any]:
    """The pairs, newest last, with the `new` one where it is `kept`."""
    later = np.concatenate([pairs[:, 1:], new[:, None]], axis=1)
    safe = np.where(kept, product, 1.0)
    curved = np.concatenate([curvature[1:], (1.0 / safe)[None]])
    return np.where(kept[:, None], later, pairs), np.where(kept, curved, curvature)


def _direction(gradient: Any, pairs: Any, curvature: Any) -> Any:
    """−H g by the two loops of L-BFGS (Nocedal & Wright 2006, algorithm 7.4)."""
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
    """Where many minimisations stand: coefficients, multipliers of every limit, penalties and violations."""

    x: Any
    multipliers: list[Any]
    penalty: Any
    violation: Any

    @staticmethod
    def first(x: Any, limits: Sequence[ManyLimit]) -> ManyIterates:
        """At the starts `x`, with nothing known of the `limits`."""
        ones = np.ones_like(x, shape=(len(x),))
        return ManyIterates(x, [np.zeros_like(c.evaluate(x)) for c in limits], FIRST_PENALTY * ones, np.inf * ones)


def many_steps(
    objective: _Many,
    limits: Sequence[ManyLimit],
    start: ManyIterates,
    iterations: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[ManyIterates, int]:
    """One outer iteration of every motion, as `_lagrangian.step` does for one, and how often all were evaluated.

    Args:
        objective: values and gradients of many motions.
        limits: what they must keep to.
        start: where they stand.
        iterations: inner steps of each.
        stop: asked before every evaluation.
    """

    def along(values: Any, limit: ManyLimit) -> Any:
        """One number a motion, beside the values of a limit."""
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
