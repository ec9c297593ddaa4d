"""`fit_static`: fits base parameters to the torques of poses at rest, with the dry friction of every joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.gravity.friction_at_rest import FrictionAtRest, FrictionKind, fit_tube
from steelyard.ground.arrays import Array

_ITERATIONS = 60
# Convergence: steps below this share of a standard error, and relative changes of the noise below it.
_SMALL_STEP, _SMALL_CHANGE = 0.02, 0.02
# Lower limit of a joint's noise, as a share of its torques: rounding of files.
_EXACT = 1e-6
_RIDGE = 1e-13


@dataclass(frozen=True, eq=False)
class StaticRows:
    """Equations y = A β + friction of poses at rest.

    Args:
        A: Columns, shape (poses, joints, unknowns).
        y: Torques [N m or N], shape (poses, joints).
        side: Sign of the last motion of each joint, shape (poses, joints); 0 if unknown.
        used: Joints with a reliable torque.
    """

    A: Array
    y: Array
    side: Array
    used: NDArray[np.bool_]

    def select(self, rows: NDArray[np.bool_]) -> StaticRows:
        """Select poses by `rows`."""
        return StaticRows(self.A[rows], self.y[rows], self.side[rows], self.used)


@dataclass(frozen=True, eq=False)
class StaticFit:
    """Result of `fit_static`.

    Attributes:
        beta: Unknowns.
        friction: Dry friction of each joint.
        information: Information of the data about the unknowns.
        slope: Slope of the log-likelihood at `beta`, which the prior balances.
        prior: Information of the prior.
        degrees: Degrees of freedom of the residuals, all joints together.
    """

    beta: Array
    friction: tuple[FrictionAtRest, ...]
    information: Array
    slope: Array
    prior: Array
    degrees: float

    @property
    def covariance(self) -> Array:
        """Covariance of the unknowns, from the distribution of the residuals."""
        return _inverse(self.information + self.prior)

    def residuals(self, rows: StaticRows) -> Array:
        """Compute y − A β of `rows`, which has their friction, shape (poses, joints)."""
        return np.asarray(rows.y - rows.A @ self.beta)

    def log_score(self, rows: StaticRows) -> Array:
        """Compute the log-density of `rows`, shape (poses, joints), with the uncertainty of the unknowns."""
        r = self.residuals(rows) - self.friction_torque(rows.side)
        variance = np.maximum(np.sum(rows.A @ self.covariance * rows.A, axis=2), 0.0)
        variance += _unknown_side(self.friction, rows.side)
        # The uncertainty of the prediction adds to the noise, row by row.
        return np.column_stack([f.log_density(r[:, j], variance[:, j]) for j, f in enumerate(self.friction)])

    def friction_torque(self, side: Array) -> Array:
        """Compute the friction against the last motion; `side` is its sign, shape (poses, joints)."""
        return np.array([f.limit if f.kind == "side" else 0.0 for f in self.friction]) * side


def fit_static(
    rows: StaticRows, kinds: Sequence[FrictionKind], center: Array, prior: Array, start: StaticFit | None = None
) -> StaticFit:
    """Fit unknowns and dry friction together by maximum likelihood, with a wide prior.

    Args:
        rows: Equations.
        kinds: Kind of friction of each joint.
        center: Prior values of the unknowns.
        prior: Information of the prior about the unknowns.
        start: Fit of nearly the same rows.
    """
    n, joints, p = rows.A.shape
    sided = [j for j in range(joints) if kinds[j] == "side"]
    # The friction against the last motion is one more unknown per joint.
    A = np.zeros((n, joints, p + len(sided)))
    A[:, :, :p] = rows.A
    for k, j in enumerate(sided):
        A[:, j, p + k] = rows.side[:, j]
    wide = np.zeros((p + len(sided),) * 2)
    wide[:p, :p] = prior
    middle = np.concatenate([center, np.zeros(len(sided))])
    rms = np.sqrt(np.mean(rows.y**2, axis=0))
    # The limit of a joint without load follows from the other joints: its torque is rounding.
    floor = np.maximum(_EXACT * np.maximum(rms, 1e-3 * rms.max()), 1e-12)
    used = np.flatnonzero(rows.used).tolist()
    size = np.maximum(rows.y.std(axis=0), floor)
    friction = [FrictionAtRest("noise", 0.0, float(s)) for s in size] if start is None else list(start.friction)
    for k, j in enumerate(sided):
        wide[p + k, p + k] = (10.0 * float(size[j])) ** -2
    beta = middle.copy()
    if start is not None:
        beta[:p] = start.beta
        beta[p:] = [start.friction[j].limit if start.friction[j].kind == "side" else 0.0 for j in sided]
    for iteration in range(_ITERATIONS):
        step, hessian = _newton(A, rows.y, rows.side, beta, friction, wide, middle, used)
        beta = beta + step
        r = rows.y - A @ beta
        inverse = _inverse(hessian)
        change = 0.0
        for j in used:
            before = friction[j]
            # The tube starts from the residuals of least squares.
            if kinds[j] == "tube" and iteration > 1:
                friction[j] = fit_tube(r[:, j], before, float(floor[j]))
            else:
                known = rows.side[:, j] != 0.0 if j in sided else np.ones(n, dtype=bool)
                known = known if known.any() else ~known
                own = A[known, j]
                taken = float(np.sum(own @ inverse * own)) / before.noise**2
                left = max(len(own) - taken, 0.25 * len(own), 1.0) if before.kind != "tube" else len(own)
                limit = float(beta[p + sided.index(j)]) if j in sided else 0.0
                noise = max(float(np.sqrt(np.sum(r[known, j] ** 2) / left)), float(floor[j]))
                friction[j] = FrictionAtRest("side" if j in sided else "noise", limit, noise)
            change = max(change, abs(friction[j].noise / before.noise - 1.0))
        if iteration > 2 and change < _SMALL_CHANGE and np.all(np.abs(step) <= _SMALL_STEP * np.sqrt(np.diag(inverse))):
            break
    information, slope = np.zeros_like(wide), np.zeros(len(beta))
    for j in used:
        own, extra = A[:, j], _unknown_side(friction, rows.side)[:, j]
        share = 1.0 / (1.0 + extra / friction[j].noise ** 2)
        information += friction[j].information() * (own * share[:, None]).T @ own
        slope -= own.T @ friction[j].slope_and_weight(rows.y[:, j] - own @ beta, extra)[0]
    taken = float(np.trace(_inverse(information + wide) @ information))
    # Eliminate the friction against the last motion.
    if sided:
        inner = _inverse(information[p:, p:])
        information = information[:p, :p] - information[:p, p:] @ inner @ information[p:, :p]
    return StaticFit(beta[:p], tuple(friction), information, slope[:p], prior, max(n * len(used) - taken, 1.0))


def _unknown_side(friction: Sequence[FrictionAtRest], side: Array) -> Array:
    """Compute the variance of the friction of poses with an unknown side of approach."""
    return np.asarray(np.array([f.limit**2 if f.kind == "side" else 0.0 for f in friction]) * (side == 0.0))


def _newton(
    A: Array, y: Array, side: Array, beta: Array, friction: Sequence[FrictionAtRest], prior: Array, middle: Array,
    used: Sequence[int],
) -> tuple[Array, Array]:  # fmt: skip
    """Compute one damped Newton step of the log-likelihood and the prior, and the Hessian."""
    unknown = _unknown_side(friction, side)
    hessian, pull = prior.copy(), -prior @ (beta - middle)
    r = y - A @ beta
    for j in used:
        slope, weight = friction[j].slope_and_weight(r[:, j], unknown[:, j])
        if friction[j].kind == "tube":
            # Inside the tube the likelihood is flat; a share of the expected information keeps the step bounded.
            weight = np.maximum(weight, 0.1 * friction[j].information())
        hessian += (A[:, j] * weight[:, None]).T @ A[:, j]
        pull -= A[:, j].T @ slope
    step = _inverse(hessian) @ pull
    if all(friction[j].kind != "tube" for j in used):
        return step, hessian

    def cost(b: Array) -> float:
        rest = y - A @ b
        value = 0.5 * float((b - middle) @ prior @ (b - middle))
        return value - sum(float(friction[j].log_density(rest[:, j]).sum()) for j in used)

    here, factor = cost(beta), 1.0
    while factor > 1e-4 and cost(beta + factor * step) > here:
        factor *= 0.5
    return factor * step, hessian


def _inverse(matrix: Array) -> Array:
    """Invert a symmetric positive matrix whose columns have different units."""
    lengths = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.where(lengths > 0.0, lengths, 1.0)
    scaled = matrix / np.outer(scale, scale)
    # A small diagonal below the rounding of the data makes the inverse finite in undetermined directions.
    inverse = np.linalg.inv(scaled + _RIDGE * np.eye(len(scale)))
    return np.asarray(0.5 * (inverse + inverse.T) / np.outer(scale, scale))
