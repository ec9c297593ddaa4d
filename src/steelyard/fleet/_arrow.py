"""The hierarchical fit: a model that all robots share, effects of each, and the variances of these; exact and linear in
the number of robots.

Robot r has the coordinates x_r = X μ + B u_r with the model's base parameters μ and its own effects u_r of variance
v (diagonal, one number a group); its logs leave E h_r = J_r x_r. The normal equations of all μ, u_1, u_2, … are an
arrow: a block for each robot, bordered by that of μ. Each block is eliminated by itself,

    P_r = (1/v + BᵀJ_rB)⁻¹,  Q_r = B P_r Bᵀ,  F_r = (1 − Q_rJ_r) X,

which leaves Σ XᵀJ_rF_r μ = Σ F_rᵀh_r for the model, and then x_r = F_r μ + Q_r h_r. The variances are those of the
largest restricted likelihood (Patterson & Thompson 1971), by Fisher's scoring on their logarithms, with a weak prior on
them that keeps a handful of robots from saying zero or infinity (Chung et al. 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.fleet._information import Information
from steelyard.ground.arrays import Array

# A combination of which the robots together show all but this part has a value.
_BLURRED = 1e-3
_UNSEEN = 1e-10
# The longest step of a logarithm of a variance.
_STEP = 1.5
# How badly a variance can be known: the variance of its logarithm.
_LEAST_KNOWN = 2.0


@dataclass(frozen=True, eq=False)
class Solved:
    """Model and robots for given variances.

    Attributes:
        mu: the model's base parameters.
        cov_mu: their covariance, as the working information says.
        seen: which of them any robot shows.
        x: every robot's coordinates, `(robots, coordinates)`.
        u: every robot's effects.
        P: the covariance of the effects, for a known model, `(robots, effects, effects)`.
        F: how a robot follows the model, `(robots, coordinates, base parameters)`.
        Q: the covariance of coordinates for a known model.
        variance_u: of each effect, the model's uncertainty in it, `(robots, effects)`.
    """

    mu: Array
    cov_mu: Array
    seen: NDArray[np.bool_]
    x: Array
    u: Array
    P: Array
    F: Array
    Q: Array
    variance_u: Array


@dataclass(frozen=True, eq=False)
class Arrow:
    """Robots of one model, ready to be solved for given variances.

    Attributes:
        J: working information of every robot, `(robots, coordinates, coordinates)`.
        h: scores.
        B: effects, scaled, `(coordinates, effects)`.
        group_of: the group of each effect.
        base: how many of the coordinates are base parameters.
        counts: whether a robot takes part in what is said of the model.
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
    ) -> Arrow:
        J, h = np.array([i.J for i in robots]), np.array([i.h for i in robots])
        return cls(J, h, B, group_of, base, np.array(counts, dtype=bool))

    def solved(self, v: Array) -> Solved:
        """For the variances `v` of the groups."""
        p, d = self.base, self.J.shape[1]
        root = np.sqrt(v[self.group_of])
        B = self.B * root
        JB = self.J @ B
        inner: Array = np.asarray(np.linalg.inv(np.eye(B.shape[1]) + B.T @ JB), dtype=float)
        Q = B @ inner @ B.T
        F = (np.eye(d) - Q @ self.J)[:, :, :p]
        whole = np.tensordot(self.counts.astype(float), self.J[:, :p] @ F, 1)
        whole = 0.5 * (whole + whole.T)
        cov, seen, _ = _shown_inverse(whole)
        score = self.counts @ (np.swapaxes(F, 1, 2) @ self.h[..., None])[..., 0]
        mu = cov @ score
        rest = self.h - self.J[:, :, :p] @ mu
        across = inner @ np.swapaxes(JB, 1, 2)[:, :, :p]  # (1 + BᵀJB)⁻¹BᵀJX
        u = (inner @ (rest @ B)[..., None])[..., 0] * root
        x = F @ mu + (Q @ self.h[..., None])[..., 0]
        model = np.sum((across @ cov) * across, axis=2)
        own = np.diagonal(inner, axis1=1, axis2=2)
        P = inner * root * root[:, None]
        return Solved(mu, cov, seen, x, u, P, F, Q, (own + model) * root**2)

    def evidence(self, v: Array) -> Array:
        """Twice the logarithm of the likelihood that each group's variance adds to one of zero.

        Without the effects g, (1 + BᵀJB)⁻¹ = R loses R_·g R_gg⁻¹ R_g·, and what is made of it changes by as little.
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
    """A step of Fisher's scoring of the logarithms of variances, and the degrees of freedom of each.

    Args:
        u: effects, `(units, effects)`, units being robots or logs.
        variance: of each, given all data.
        v: variances by group.
        group_of: the group of each effect.
        expected: standard deviations of the groups before anything was seen.
        avoid: by group, how much a variance of zero is avoided: 0 not at all, 0.5 as by a prior that grows with s.
    """
    mine = v[group_of]
    groups = len(v)
    score: Array = np.bincount(group_of, 0.5 * np.sum((u**2 + variance) / mine - 1.0, axis=0), groups).astype(float)
    told: Array = np.bincount(group_of, np.sum((1.0 - np.minimum(variance / mine, 1.0)) ** 2, axis=0), groups).astype(
        float
    )
    # The prior of v = s², per log v: v^avoid while s is small, 1/v beyond what is expected.
    part = v / (expected**2 + v)
    score = score + avoid - (1.0 + avoid) * part
    curve = 0.5 * told + (1.0 + avoid) * part * (1.0 - part) + 0.1
    return np.clip(score / curve, -_STEP, _STEP), told


def log_variance(told: Array) -> Array:
    """The variance of the logarithm of a variance with `told` degrees of freedom."""
    return np.asarray(1.0 / (0.5 * told + 1.0 / _LEAST_KNOWN))


def covariances(arrow: Arrow, found: Solved, K: Array, v: Array, told: Array) -> tuple[Array, Array]:
    """The covariances of all robots' coordinates and of the model's base parameters.

    To what the working information says is added what the scores vary more than it (or less): every robot's estimate
    is a linear function of all scores. And the variances of the effects are uncertain: with P their covariance,
    ∂u/∂log v = P u/v, and by the law of total variance P Pᵀ/v times half the variance of log v comes in on the average,
    more where an effect is larger than its kind (Kackar & Harville 1984; Prasad & Rao 1990).

    Args:
        arrow: the robots.
        found: their fit.
        K: covariances of the scores, `(robots, coordinates, coordinates)`.
        v: variances by group.
        told: degrees of freedom of these.
    """
    F, cov = found.F, found.cov_mu
    counts = arrow.counts[:, None, None]
    model = F @ cov
    V = found.Q + model @ np.swapaxes(F, 1, 2)
    more = K - arrow.J
    through = np.swapaxes(F, 1, 2) @ more @ F * counts
    others = through.sum(axis=0) - through
    out = V + V @ more @ V + model @ others @ np.swapaxes(model, 1, 2)
    # A robot that does not count in the model has its score in itself alone.
    alone = ~arrow.counts
    if alone.any():
        Q, m = found.Q[alone], model[alone]
        out[alone] = V[alone] + Q @ more[alone] @ Q + m @ through.sum(axis=0) @ np.swapaxes(m, 1, 2)
    mine = v[arrow.group_of]
    weight = log_variance(told)[arrow.group_of] * (0.5 + np.maximum(found.u**2 / mine - 1.0, 0.0)) / mine
    BP = arrow.B @ found.P
    out = out + (BP * weight[:, None, :]) @ np.swapaxes(BP, 1, 2)
    return out, cov + cov @ through.sum(axis=0) @ cov


def _restricted(whole: Array, score: Array) -> float:
    """What the model's own part adds to twice the logarithm of the restricted likelihood."""
    cov, _, size = _shown_inverse(0.5 * (whole + whole.T))
    return float(score @ cov @ score) - size


def _shown_inverse(S: Array) -> tuple[Array, NDArray[np.bool_], float]:
    """S⁻¹ over what S shows, which coordinates it shows by themselves, and the logarithm of its determinant there."""
    size = np.sqrt(np.maximum(np.diag(S), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(S * scale * scale[:, None])
    kept = values > _UNSEEN * max(float(values[-1]), 1e-300)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    seen = np.abs(np.sum(vectors[:, kept] ** 2, axis=1) - 1.0) < _BLURRED
    log_size = float(np.sum(np.log(values[kept])) + 2.0 * np.sum(np.log(size[size > 0.0])))
    return np.asarray(inverse * scale * scale[:, None]), np.asarray(seen & (size > 0.0)), log_size


def own_answer(info: Information, base: int) -> tuple[Array, Array]:
    """A robot's own base parameters and their covariance, gains as the model has them; not a number where unseen.

    Args:
        info: of the robot.
        base: how many of the coordinates are base parameters.
    """
    inverse, seen, _ = _shown_inverse(info.J[:base, :base])
    beta, V = inverse @ info.h[:base], inverse @ info.widened[:base, :base] @ inverse
    beta[~seen] = np.nan
    V[~seen], V[:, ~seen] = np.nan, np.nan
    return beta, V
