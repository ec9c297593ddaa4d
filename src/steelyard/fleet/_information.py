"""What a log says of the base parameters and of the torque's gains, and how far it is to be believed.

With N = Σ w²AᵀA and g = Σ w²Aᵀy over the equations, g = N x + s, and s, the score of the residuals, has the covariance
M, which their spectrum tells and what varies from stretch to stretch. White noise would have M = N. The best use of g
is by the information J = N M⁻¹ N; but M is known from few degrees of freedom, and its inverse looks for the directions
that happened to be quiet. So the weights are made with M drawn half way to a multiple of N, M̃, and J = N M̃⁻¹ N,
h = N M̃⁻¹ g are the working information and score. The covariance of h, K = N M̃⁻¹ M M̃⁻¹ N, is what the error bars are
made of (a sandwich): they hold whatever the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, drawn_to_mean, mean_ratio
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array

# Directions that a log shows less than this part of its largest (of squares, columns scaled) are not seen in it.
_UNSEEN = 1e-10
# How far M is drawn to a multiple of N: as far as the mean of a handful of stretches is believed.
_DRAWN = 0.5
_KEPT_BYTES = 300_000_000


@dataclass(frozen=True, eq=False)
class Information:
    """What a log, or several of a robot, say of the robot's coordinates x: E h = J x.

    Attributes:
        J: the working information, `(coordinates, coordinates)`.
        h: the score.
        K: the covariance of h given x.
        degrees: of freedom that K is known with.
    """

    J: Array
    h: Array
    K: Array
    degrees: float

    @property
    def widened(self) -> Array:
        """K as the variance of Student's t, so that twice a standard error is what it is taken for."""
        return self.K * (self.degrees / (self.degrees - 2.0) if self.degrees > 2.5 else 5.0)

    def __add__(self, other: Information) -> Information:
        return Information(self.J + other.J, self.h + other.h, self.K + other.K, self.degrees + other.degrees)

    def blurred(self, ways: Array, variances: Array) -> Information:
        """The same where x has, in this log alone, random effects along `ways` with these `variances`."""
        if not np.any(variances > 0.0):
            return self
        B = ways * np.sqrt(variances)
        JB = self.J @ B
        T = np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, JB.T)  # (1 + BᵀJB)⁻¹BᵀJ
        A = np.eye(len(self.J)) - JB @ np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, B.T)
        J = self.J - JB @ T
        return Information(0.5 * (J + J.T), A @ self.h, A @ self.K @ A.T + (A @ JB) @ (A @ JB).T, self.degrees)


class Informed:
    """Makes the information of logs of one model.

    Args:
        design: what is asked.
        logs: some or all of the model's logs, by which is known how much residuals vary beyond their spectrum, and the
            mean parameters that a gain scales.
    """

    def __init__(self, design: FleetDesign, logs: Sequence[LogFactors]) -> None:
        self.design = design
        p, E = design.rank, len(design.equations)
        total = np.zeros((E, p + 1, p + 1))  # per row
        ratios: list[list[float]] = [[] for _ in range(E)]
        redness, counted = np.zeros((2, E, p))
        for log in logs:
            grams = log.grams(design.independent)
            meats = log.meats(design.independent)
            total += grams / np.maximum(log.rows, 1.0)[:, None, None]
            red, known = self._redness(log, grams, meats)
            redness, counted = redness + red, counted + known
            for e, ratio in enumerate(self._ratios(log, meats)):
                if ratio > 0.0:
                    ratios[e].append(ratio)
        self.common = np.array([max(float(np.exp(np.mean(np.log(r)))), 1.0) if r else 1.0 for r in ratios])
        self.redness = redness / np.maximum(counted, 1.0)
        self.grams = total / max(len(logs), 1)
        self.scales = design.scales(total)
        self.beta = usual_parameters(design, logs)
        self._kept: dict[int, tuple[LogFactors, Information]] = {}

    def _ratios(self, log: LogFactors, meats: Array) -> list[float]:
        """How much more the scores of each equation scatter than the spectrum of its residuals says; 0: not known."""
        out = []
        for equation, scores, noise, count in zip(log.equations, log.scores, meats, log.stretches, strict=True):
            own, where = equation.among(self.design.independent)
            v, w = np.diag(noise)[where], np.sum(scores[:, own] ** 2, axis=0)
            known = v > 0.0
            out.append(mean_ratio(w[known] / v[known], count - 1.0) if known.any() and count > 1 else 0.0)
        return out

    @staticmethod
    def _redness(log: LogFactors, grams: Array, meats: Array) -> tuple[Array, Array]:
        """How much more of the noise each column feels than of white noise of the same size, as a logarithm; and where
        that is known. Both `(equations, columns)`."""
        own, noise = (np.diagonal(x, axis1=1, axis2=2)[:, : meats.shape[1]] for x in (grams, meats))
        white = own * (log.residual_std**2)[:, None]
        known = (white > 0.0) & (noise > 0.0)
        red = np.log(np.where(known, noise, 1.0) / np.where(known, white, 1.0))
        return red, known.astype(float)

    def _shortened(self, log: LogFactors, grams: Array, meats: Array, degrees: Array) -> Array:
        """By what the noise of each equation is taken for larger than the log itself says: a short log does not see how
        slow its noise is, which longer logs of the same model do."""
        red, known = self._redness(log, grams, meats)
        lacks = np.sum(known * (self.redness - red), axis=1) / np.maximum(known.sum(axis=1), 1.0)
        return np.asarray(np.exp(np.maximum(lacks, 0.0) * DEGREES_OF_MEAN / (DEGREES_OF_MEAN + degrees)))

    def of(self, log: LogFactors) -> Information:
        """The information of a `log`, which must have been usable; kept for who asks again, as far as there is room."""
        known = self._kept.get(id(log))
        if known is not None and known[0] is log:
            return known[1]
        made = self._made(log)
        if (len(self._kept) + 1) * 16 * self.design.size**2 < _KEPT_BYTES:
            self._kept[id(log)] = log, made
        return made

    def _made(self, log: LogFactors) -> Information:
        design = self.design
        p, d = design.rank, design.size
        grams, meats = log.grams(design.independent), log.meats(design.independent)
        w2 = _weights(grams, meats)
        degrees = np.maximum(log.stretches - 1.0, 1.0)
        own = np.array(self._ratios(log, meats))
        drawn = [drawn_to_mean(r if r > 0.0 else c, c, n) for r, c, n in zip(own, self.common, degrees, strict=True)]
        wider = np.maximum(drawn, 1.0) * self._shortened(log, grams, meats, degrees)
        N, M, g = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
        for out, parts in ((N, w2[:, None, None] * grams[:, :p, :p]), (M, (w2**2 * wider)[:, None, None] * meats)):
            out[:p, :p] = parts.sum(axis=0)
            across = parts @ self.beta
            out[:p, p:], out[p:, :p] = across.T, across
            out[range(p, d), range(p, d)] = across @ self.beta
        b = w2[:, None] * grams[:, :p, p]
        g[:p], g[p:] = b.sum(axis=0), b @ self.beta
        L, inverse = _root(N)
        white = inverse @ M @ inverse.T
        size = max(float(np.trace(white)) / max(len(white), 1), 1e-300)
        weighed = np.linalg.solve((1.0 - _DRAWN) * white + _DRAWN * size * np.eye(len(white)), L.T)  # M̃⁻¹Lᵀ
        J, K = L @ weighed, weighed.T @ white @ weighed
        believed = float(np.median(degrees)) + DEGREES_OF_MEAN
        return Information(0.5 * (J + J.T), weighed.T @ (inverse @ g), 0.5 * (K + K.T), believed)


def usual_parameters(design: FleetDesign, logs: Sequence[LogFactors]) -> Array:
    """The base parameters that fit all logs together, each joint weighted by its noise; zero where none shows them.

    Args:
        design: what is asked.
        logs: usable ones, of any robots of the model.
    """
    p = design.rank
    whole = np.zeros((p + 1, p + 1))
    for log in logs:
        grams = log.grams(design.independent)
        whole += np.einsum("e,epq->pq", _weights(grams, log.meats(design.independent)), grams)
    _, inverse = _root(whole[:p, :p])
    return np.asarray(inverse.T @ (inverse @ whole[:p, p]))


def _weights(grams: Array, meats: Array) -> Array:
    """w² of every equation: one over the variance of its noise, as its columns feel it."""
    own, noise = (np.diagonal(x, axis1=1, axis2=2)[:, : meats.shape[1]] for x in (grams, meats))
    known = (own > 0.0) & (noise > 0.0)
    ratio = np.where(known, noise / np.where(known, own, 1.0), 0.0).sum(axis=1)
    return np.where(ratio > 0.0, known.sum(axis=1) / np.where(ratio > 0.0, ratio, 1.0), 0.0)


def _root(N: Array) -> tuple[Array, Array]:
    """L with N = L Lᵀ over what N shows, and its left inverse."""
    size = np.sqrt(np.maximum(np.diag(N), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(N * scale * scale[:, None])
    kept = values > _UNSEEN * max(float(values[-1]), 1e-300)
    roots = np.sqrt(values[kept])
    return size[:, None] * vectors[:, kept] * roots, (vectors[:, kept] / roots).T * scale
