"""Delay of torques, estimated together with the parameters, with error bars.

A torque with delay d is τ(t − d) ≈ Y θ − d·d(Y θ)/dt. The derivative of the fitted model is one more column per
joint, and its coefficient is the delay. The motion is shifted by the estimate and the fit repeated, so that long
delays converge. Errors come from the scatter of the scores between stretches of the log, which includes model errors.

Rows near the reversals of a joint are excluded. Dry friction reverses before or after the joint does (gears wind up,
bristles bend), and a jump that is early or late by some milliseconds would look like a delay of the whole torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.normal_matrix import NormalMatrix
from steelyard.regression.observe import observe, with_history
from steelyard.signals.prepare import Motion

# Maximum number of iterations; the error is squared in each, once the steps are no longer limited (`_LONGEST_STEP`).
_ROUNDS = 12
# Growing steps in a row that end an iteration after it shrank: one alone comes from weights that change with the fit.
_MOST_GROWING = 2
# Number of stretches of the logs whose scores are compared.
_STRETCHES = 30
# Maximum number of samples and rows; they suffice for delays of a millisecond to some percent.
_MOST_SAMPLES, _MOST_ROWS = 30_000, 3_000
# Iterations end after a step shorter than this [s].
_SHORT_STEP = 1e-4
# Longest step of the linearisation [s].
_LONGEST_STEP = 0.02
# A clock delays all joints equally; friction with memory looks like a different delay on each joint. A delay belongs to
# the clock if it differs from zero by this number of standard deviations, of its error and between joints combined.
_DEVIATIONS = 3.0
# Rows within this number of periods of the cut-off around a reversal are excluded, since the filter spreads the jump of
# friction. A joint that would lose more than the second number (a fraction) of its rows keeps all.
_REVERSAL_PERIODS, _MOST_LOST = 1.0, 0.5


@dataclass(frozen=True, eq=False)
class DelayEstimate:
    """The delay of the torques behind the motion.

    Attributes:
        delay_s: Common delay of all joints [s].
        error_s: Standard error of the common delay [s]; larger if joints disagree.
        joints: Joints (from 0) of the equations.
        by_joint_s: Each joint's own delay [s].
        errors_s: Standard errors of the delays of the joints [s].
        spread_s: Standard deviation between the joints' delays, beyond their errors [s]; 0 for one joint.
    """

    delay_s: float
    error_s: float
    joints: tuple[int, ...]
    by_joint_s: Array
    errors_s: Array
    spread_s: float = 0.0

    @property
    def text(self) -> str:
        """Describe the delay in half a sentence."""
        word = "behind" if self.delay_s > 0.0 else "ahead of"
        return f"{1e3 * abs(self.delay_s):.2f} ± {1e3 * self.error_s:.2f} ms {word} the motion"

    def to_json(self) -> dict[str, Any]:
        """Convert to the form of `result.json`."""
        return {
            "delay_s": self.delay_s,
            "standard_error_s": self.error_s,
            "spread_between_joints_s": self.spread_s,
            "by_joint_s": self.by_joint_s.tolist(),
            "standard_errors_s": self.errors_s.tolist(),
        }

    @property
    def is_shared(self) -> bool:
        """Return whether all joints share a nonzero delay.

        A single joint cannot be compared with others: there only an early torque counts, which neither friction nor a
        drive can cause.
        """
        far = abs(self.delay_s) > _DEVIATIONS * float(np.hypot(self.error_s, self.spread_s))
        return far and (len(self.joints) > 1 or self.delay_s < 0.0)


def estimate_delay(
    dynamics: Dynamics, base: BaseParameters, motions: Sequence[Motion], start_s: float = 0.0
) -> DelayEstimate | None:
    """Estimate the delay of the torques behind the motion; None if it is not identifiable.

    Args:
        dynamics: Physics of the robot with its terms.
        base: Base parameters to fit at the same time.
        motions: Prepared motions.
        start_s: First guess [s].
    """
    motions = _excerpt(motions)
    delay, before, growing, shrank = start_s, np.inf, 0, False
    found: DelayEstimate | None = None
    shortest: tuple[float, DelayEstimate] | None = None
    for _ in range(_ROUNDS):
        shifted = [replace(m.with_delay(delay), fit_standing=True) for m in motions]
        step = _fit(dynamics, base, [m for m in shifted if m.long_enough])
        if step is None:
            return None
        found, size = replace(step, delay_s=step.delay_s + delay, by_joint_s=step.by_joint_s + delay), abs(step.delay_s)
        if size < max(0.1 * step.error_s, _SHORT_STEP):
            break
        shrank = shrank or size < before < np.inf
        growing = growing + 1 if shrank and before <= _LONGEST_STEP and size > before else 0
        if shortest is None or size < shortest[0]:
            shortest = size, found
        if growing == _MOST_GROWING:
            # The iteration came closer and moves away again: the steps follow something other than a delay. What was
            # left at the shortest step is part of the error.
            return replace(shortest[1], error_s=float(np.hypot(shortest[1].error_s, shortest[0])))
        before = size
        delay += float(np.clip(step.delay_s, -_LONGEST_STEP, _LONGEST_STEP))
    return found


def _excerpt(motions: Sequence[Motion]) -> list[Motion]:
    """Return the first motions, and the beginning of a long one."""
    out: list[Motion] = []
    left = min(_MOST_SAMPLES, _MOST_ROWS * max((m.keep.step or 1 for m in motions), default=1))
    for m in motions:
        n = len(m.t)
        if left < n:
            start, stop, step = m.keep.indices(n)
            keep, cut = slice(start, max(start, left - (n - stop)), step), slice(0, left)
            still = None if m.standing is None else m.standing[cut]
            m = replace(m, t=m.t[cut], q=m.q[cut], dq=m.dq[cut], ddq=m.ddq[cut], tau=m.tau[cut], keep=keep,
                        standing=still, history=None, history_key=())  # fmt: skip
        if m.long_enough:
            out.append(m)
        left -= n
        if left <= 0:
            break
    return out


def _fit(dynamics: Dynamics, base: BaseParameters, motions: Sequence[Motion]) -> DelayEstimate | None:
    """Do one iteration: parameters and one delay per joint by weighted least squares."""
    if not motions:
        return None
    motions = [with_history(dynamics, m) for m in motions]
    data = observe(dynamics, base, lambda: motions)
    parts: list[list[tuple[Array, Array]]] = [[] for _ in data.equations]
    for block in data.blocks():
        parts[block.equation].append((block.A, block.y))
    rank, rows = base.rank, sum(m.rows for m in motions)
    if rows < 2 * rank or any(sum(len(y) for _, y in part) != rows for part in parts):
        return None
    y = np.array([np.concatenate([b for _, b in part]) for part in parts])
    A = np.zeros((len(parts), rows, rank))
    for e, (equation, part) in enumerate(zip(data.equations, parts, strict=True)):
        A[e][:, equation.among(base.independent)[1]] = np.vstack([a for a, _ in part])
    joints = tuple(dynamics.robot.joint_index(e.name) for e in data.equations)
    used = far_from_reversals(motions)[:, list(joints)].T
    A, y = A * used[:, :, None], y * used
    beta, weights = _weighted(A, y)
    theta = np.zeros(len(base.parameters))
    theta[list(base.independent)] = beta
    rates = np.vstack([_rates(dynamics, m, theta) for m in motions])[:, list(joints)].T
    return _delays(A, y - A @ beta, rates * used, weights, joints)


def far_from_reversals(motions: Sequence[Motion]) -> NDArray[np.bool_]:
    """Mark the rows far from every reversal of a joint; a joint that would lose most of them keeps all.

    Args:
        motions: Prepared motions.

    Returns:
        Shape (rows of all motions, joints).
    """
    far = np.vstack([_far_from_reversals(m) for m in motions])
    return np.asarray(far | (np.mean(far, axis=0) < 1.0 - _MOST_LOST))


def _far_from_reversals(motion: Motion) -> NDArray[np.bool_]:
    """Return a mask `(rows, joints)` of rows far from every reversal of the joint."""
    reach = int(np.ceil(_REVERSAL_PERIODS / (motion.filter.cutoff_hz * motion.filter.period)))
    turns = np.zeros((len(motion.t) + 1, motion.dq.shape[1]), dtype=np.int64)
    turns[2:] = np.cumsum(np.diff(np.sign(motion.dq), axis=0) != 0.0, axis=0)
    rows = np.arange(len(motion.t))[motion.keep]
    before, after = np.maximum(rows - reach, 0), np.minimum(rows + reach + 1, len(motion.t))
    return np.asarray(turns[after] == turns[before + 1])


def _weighted(A: Array, y: Array) -> tuple[Array, Array]:
    """Fit β to all equations weighted by their residuals; also return the weights."""
    grams, sides = A.transpose(0, 2, 1) @ A, np.einsum("erp,er->ep", A, y)
    size = np.mean(y**2, axis=1) + 1e-24
    weights, beta = 1.0 / np.sqrt(size), np.zeros(A.shape[2])
    for _ in range(3):
        H = np.einsum("e,epq->pq", weights**2, grams)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        inverse = np.linalg.pinv(H * scale * scale[:, None], rcond=1e-12, hermitian=True)
        beta = scale * (inverse @ (scale * (weights**2 @ sides)))
        left = size - (2.0 * sides @ beta - np.einsum("p,epq,q->e", beta, grams, beta)) / A.shape[1]
        weights = 1.0 / np.sqrt(np.maximum(left, 1e-12 * size))
    return beta, weights


def _rates(dynamics: Dynamics, motion: Motion, theta: Array) -> Array:
    """Compute d(Y θ)/dt through the motion's filter, at its rows."""
    torque = dynamics.inverse_dynamics(motion.q, motion.dq, motion.ddq, theta, motion.history)
    return motion.filter(np.gradient(torque, motion.filter.period, axis=0), motion.keep)


def _delays(A: Array, rest: Array, rates: Array, weights: Array, joints: tuple[int, ...]) -> DelayEstimate | None:
    """Estimate delays from residuals, with the parameters fitted at the same time.

    Args:
        A: Columns of the parameters, `(equations, rows, rank)`.
        rest: Residuals of their fit, `(equations, rows)`.
        rates: Time derivatives of the fitted torques, same shape.
        weights: Weights of the equations.
        joints: Joints of the equations.
    """
    count, rows, rank = A.shape
    Z = np.zeros((count, rows, rank + count))
    Z[:, :, :rank] = A
    for e in range(count):
        Z[e, :, rank + e] = -rates[e]
    Z *= weights[:, None, None]
    r = weights[:, None] * rest
    flat = Z.reshape(count * rows, -1)
    inverse = NormalMatrix.of(flat.T @ flat).inverse
    x = inverse @ (flat.T @ r.ravel())
    left = r - Z @ x
    edges = np.linspace(0, rows, min(_STRETCHES, rows) + 1).astype(int)
    scores = np.array([np.tensordot(left[:, a:b], Z[:, a:b], 2) for a, b in pairwise(edges)])
    delays, variance = x[rank:], np.diag(inverse @ (scores.T @ scores) @ inverse)[rank:]
    valid = variance > 0.0
    if not valid.any():
        return None
    share = np.where(valid, 1.0 / np.where(valid, variance, 1.0), 0.0)
    mean = float(share @ delays / share.sum())
    # Disagreement between joints increases the error of their mean.
    freedom = int(valid.sum()) - 1
    excess = float(share @ (delays - mean) ** 2) - freedom
    error = float(np.sqrt(max(1.0 + excess / max(freedom, 1), 1.0) / share.sum()))
    # DerSimonian & Laird (1986), eq. 8: the variance between them.
    between = max(excess, 0.0) / (share.sum() - share @ share / share.sum()) if freedom else 0.0
    return DelayEstimate(mean, error, joints, delays, np.sqrt(variance), float(np.sqrt(between)))
