"""Exact hierarchical fit of robots that share a mean and have their own effects; linear in the number of robots.

Robot r has the coordinates x_r = X μ + B u_r: μ are the base parameters of the mean robot and u_r its own effects with
the variance v (diagonal, one value per group). Its logs give E h_r = J_r x_r. The normal equations of μ, u_1, u_2, …
form an arrowhead matrix: one block per robot, bordered by the block of μ. Eliminating each robot's block

    P_r = (1/v + BᵀJ_rB)⁻¹,  Q_r = B P_r Bᵀ,  F_r = (1 − Q_rJ_r) X,

leaves Σ XᵀJ_rF_r μ = Σ F_rᵀh_r, and then x_r = F_r μ + Q_r h_r. The variances maximise the restricted likelihood
(Patterson & Thompson 1971) by Fisher scoring of their logarithms. A weak prior keeps them away from zero and infinity
when there are few robots (Chung et al. 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._information import Information
from steelyard.ground.arrays import Array
from steelyard.regression.normal_matrix import NormalMatrix

# Largest step of the logarithm of a variance.
_STEP = 1.5
# Variance of the logarithm of a variance without any data.
_MAX_LOG_VARIANCE = 2.0


@dataclass(frozen=True, eq=False)
class Solution:
    """Mean robot and all robots for fixed variances of the effects.

    Attributes:
        mu: Base parameters of the mean robot.
        cov_mu: Covariance of `mu` by the working information.
        identifiable: Base parameters that at least one robot identifies.
        x: Coordinates of every robot, shape (robots, coordinates).
        u: Effects of every robot.
        P: Covariance of the effects for a known mean, shape (robots, effects, effects).
        F: Derivative of x with respect to the mean, shape (robots, coordinates, base parameters).
        Q: Covariance of the coordinates for a known mean.
        variance_u: Variance of each effect including the uncertainty of the mean, shape (robots, effects).
    """

    mu: Array
    cov_mu: Array
    identifiable: NDArray[np.bool_]
    x: Array
    u: Array
    P: Array
    F: Array
    Q: Array
    variance_u: Array


@dataclass(frozen=True, eq=False)
class Arrowhead:
    """Normal equations of robots of one type.

    Attributes:
        J: Working information of every robot, shape (robots, coordinates, coordinates).
        h: Scores.
        B: Scaled effects, shape (coordinates, effects).
        group_of: Group of each effect.
        base: Number of base parameters among the coordinates.
        counts: Robots that contribute to the mean.
    """

    J: Array
    h: Array
    B: Array
    group_of: NDArray[np.int64]
    base: int
    counts: NDArray[np.bool_]

    @classmethod
    def of(
        cls, robots: Sequence[Information], B: Array, group_of: NDArray[np.int64], base: int, counts: Sequence[bool]
    ) -> Arrowhead:
        J, h = np.array([i.J for i in robots]), np.array([i.h for i in robots])
        return cls(J, h, B, group_of, base, np.array(counts, dtype=bool))

    def solve(self, v: Array) -> Solution:
        """Solve for fixed variances `v` of the groups."""
        p, d = self.base, self.J.shape[1]
        root = np.sqrt(v[self.group_of])
        B = self.B * root
        JB = self.J @ B
        inner: Array = np.asarray(np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB), dtype=float)
        Q = B @ inner @ B.T
        F = (np.eye(d) - Q @ self.J)[:, :, :p]
        whole = np.tensordot(self.counts.astype(float), self.J[:, :p] @ F, 1)
        normal = NormalMatrix.of(0.5 * (whole + whole.T))
        cov = normal.inverse
        score = self.counts @ (np.swapaxes(F, 1, 2) @ self.h[..., None])[..., 0]
        mu = cov @ score
        rest = self.h - self.J[:, :, :p] @ mu
        across = inner @ np.swapaxes(JB, 1, 2)[:, :, :p]  # (1 + BᵀJB)⁻¹BᵀJX
        u = (inner @ (rest @ B)[..., None])[..., 0] * root
        x = F @ mu + (Q @ self.h[..., None])[..., 0]
        model = np.sum((across @ cov) * across, axis=2)
        own = np.diagonal(inner, axis1=1, axis2=2)
        P = inner * root * root[:, None]
        return Solution(mu, cov, normal.identifiable, x, u, P, F, Q, (own + model) * root**2)

    def evidence(self, v: Array) -> Array:
        """Compute twice the log likelihood ratio of each group's variance against zero.

        Without the effects g, R = (1 + BᵀJB)⁻¹ loses R_·g R_gg⁻¹ R_g·, so each group needs a low-rank update only.
        """
        p = self.base
        B = self.B * np.sqrt(v[self.group_of])
        JB, counted = self.J @ B, self.counts.astype(float)
        R: Array = np.asarray(np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB), dtype=float)
        across = R @ np.swapaxes(JB, 1, 2)[:, :, :p]
        own = R @ (self.h @ B)[..., None]
        whole = np.tensordot(counted, self.J[:, :p, :p] - JB[:, :p] @ across, 1)
        score = counted @ (self.h[:, :p] - (JB[:, :p] @ own)[..., 0])
        out, best = np.zeros(len(v)), _restricted(whole, score)
        for g in np.unique(self.group_of[np.any(self.B != 0.0, axis=0)]):
            members = np.flatnonzero(self.group_of == g)
            part = R[:, members][:, :, members]
            lost = np.linalg.solve(part, np.concatenate([across[:, members], own[:, members]], axis=2))
            more = np.tensordot(counted, np.swapaxes(across[:, members], 1, 2) @ lost, 1)
            less = counted @ np.sum(own[:, members, 0] * lost[:, :, p], axis=1)
            size = counted @ np.linalg.slogdet(part)[1]
            out[g] = best + less + size - _restricted(whole + more[:, :p], score + more[:, p])
        return out


def score_step(
    u: Array, variance: Array, v: Array, group_of: NDArray[np.int64], expected: Array, avoid: Array
) -> tuple[Array, Array]:
    """Compute a Fisher scoring step of the logarithms of the variances, and their degrees of freedom.

    Args:
        u: Effects of robots or logs, shape (units, effects).
        variance: Posterior variance of each effect.
        v: Variances by group.
        group_of: Group of each effect.
        expected: Prior standard deviations of the groups.
        avoid: Strength of the prior against zero by group; 0: none, 0.5: it grows with the standard deviation.
    """
    mine = v[group_of]
    groups = len(v)
    score: Array = np.bincount(group_of, 0.5 * np.sum((u**2 + variance) / mine - 1.0, axis=0), groups).astype(float)
    degrees: Array = np.bincount(
        group_of, np.sum((1.0 - np.minimum(variance / mine, 1.0)) ** 2, axis=0), groups
    ).astype(float)
    # Prior of v = s² per log v: v^avoid for small s, 1/v beyond the expected size.
    part = v / (expected**2 + v)
    score = score + avoid - (1.0 + avoid) * part
    curve = 0.5 * degrees + (1.0 + avoid) * part * (1.0 - part) + 0.1
    return np.clip(score / curve, -_STEP, _STEP), degrees


def log_variance(degrees: Array) -> Array:
    """Return the variance of the logarithm of a variance with these `degrees` of freedom."""
    return np.asarray(1.0 / (0.5 * degrees + 1.0 / _MAX_LOG_VARIANCE))


def covariances(arrow: Arrowhead, solution: Solution, K: Array, v: Array, degrees: Array) -> tuple[Array, Array]:
    """Compute the covariances of all robots' coordinates and of the mean robot's base parameters.

    Two terms are added to the covariance by the working information. First, the scores may vary more or less than it
    says; every estimate is linear in all scores. Second, the variances of the effects are uncertain: with P their
    covariance, ∂u/∂log v = P u/v, and the law of total variance adds P Pᵀ/v times half the variance of log v on
    average, more for large effects (Kackar & Harville 1984; Prasad & Rao 1990).

    Args:
        arrow: Normal equations of the robots.
        solution: Solution of these equations.
        K: Covariances of the scores, shape (robots, coordinates, coordinates).
        v: Variances by group.
        degrees: Degrees of freedom of the variances.
    """
    F, cov = solution.F, solution.cov_mu
    counts = arrow.counts[:, None, None]
    model = F @ cov
    V = solution.Q + model @ np.swapaxes(F, 1, 2)
    more = K - arrow.J
    through = np.swapaxes(F, 1, 2) @ more @ F * counts
    others = through.sum(axis=0) - through
    out = V + V @ more @ V + model @ others @ np.swapaxes(model, 1, 2)
    # The score of a robot that does not contribute to the mean affects this robot only.
    alone = ~arrow.counts
    if alone.any():
        Q, m = solution.Q[alone], model[alone]
        out[alone] = V[alone] + Q @ more[alone] @ Q + m @ through.sum(axis=0) @ np.swapaxes(m, 1, 2)
    mine = v[arrow.group_of]
    weight = log_variance(degrees)[arrow.group_of] * (0.5 + np.maximum(solution.u**2 / mine - 1.0, 0.0)) / mine
    BP = arrow.B @ solution.P
    out = out + (BP * weight[:, None, :]) @ np.swapaxes(BP, 1, 2)
    return out, cov + cov @ through.sum(axis=0) @ cov


def _restricted(whole: Array, score: Array) -> float:
    """Return the part of twice the restricted log likelihood that depends on the mean."""
    normal = NormalMatrix.of(0.5 * (whole + whole.T))
    return float(score @ normal.inverse @ score) - normal.log_determinant


def fit_alone(info: Information, base: int) -> tuple[Array, Array]:
    """Fit a robot's base parameters to its own logs, with the gains of the mean robot; NaN if not identifiable.

    Args:
        info: Information of the robot.
        base: Number of base parameters among the coordinates.
    """
    normal = NormalMatrix.of(info.J[:base, :base])
    beta, V = normal.inverse @ info.h[:base], normal.inverse @ info.widened[:base, :base] @ normal.inverse
    unknown = ~normal.identifiable
    beta[unknown] = np.nan
    V[unknown], V[:, unknown] = np.nan, np.nan
    return beta, V
