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

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN
from steelyard.fleet._redness import UsualRedness
from steelyard.fleet._stacks import LogStack, stacked
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
    """What a log, or several of a robot together, say of the robot's coordinates x: E h = J x. Or that of several logs
    each by itself: then all arrays have the logs first.

    Attributes:
        J: the working information, `(coordinates, coordinates)`.
        h: the score.
        K: the covariance of h given x.
        degrees: of freedom that K is known with.
    """

    J: Array
    h: Array
    K: Array
    degrees: Array

    @classmethod
    def none(cls, size: int) -> Information:
        """That of a robot without a log, of so many coordinates."""
        return cls(np.zeros((size, size)), np.zeros(size), np.zeros((size, size)), np.array(0.0))

    @property
    def widened(self) -> Array:
        """K as the variance of Student's t, so that twice a standard error is what it is taken for."""
        known = np.maximum(self.degrees, 2.5)
        return self.K * np.where(self.degrees > 2.5, known / (known - 2.0), 5.0)[..., None, None]

    @property
    def together(self) -> Information:
        """That of several logs of one robot, added up."""
        return Information(self.J.sum(axis=0), self.h.sum(axis=0), self.K.sum(axis=0), self.degrees.sum(axis=0))

    def blurred(self, ways: Array, variances: Array) -> Information:
        """The same where x has, in each log alone, random effects along `ways` with these `variances`."""
        if not np.any(variances > 0.0):
            return self
        B = ways * np.sqrt(variances)
        JB = self.J @ B
        T = np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, np.swapaxes(JB, -1, -2))  # (1 + BᵀJB)⁻¹BᵀJ
        A = np.eye(len(B)) - np.swapaxes(T, -1, -2) @ B.T
        J, AJB = self.J - JB @ T, A @ JB
        K = A @ self.K @ np.swapaxes(A, -1, -2) + AJB @ np.swapaxes(AJB, -1, -2)
        return Information(_even(J), (A @ self.h[..., None])[..., 0], K, self.degrees)


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
        total, whole = np.zeros((E, p + 1, p + 1)), np.zeros((p + 1, p + 1))
        ratios, redness = [np.zeros((0, E))], [np.zeros((0, E, p))]
        for stack in stacked(logs, design.independent):
            total += np.sum(stack.grams / np.maximum(stack.rows, 1.0)[..., None, None], axis=0)  # per row
            whole += stack.weighted.sum(axis=0)
            ratios.append(stack.ratios)
            redness.append(np.where(stack.redness[1] > 0.0, stack.redness[0], np.nan))
        self.common = np.array([max(float(np.exp(np.mean(np.log(r[r > 0.0])))), 1.0) if np.any(r > 0.0) else 1.0
                                for r in np.concatenate(ratios).T])  # fmt: skip
        self.redness = UsualRedness.of(np.concatenate(redness))
        self.grams = total / max(len(logs), 1)
        self.scales = design.scales(total)
        self.beta = _solved(whole)
        self._kept: dict[int, tuple[LogFactors, Array, Array, Array, float]] = {}

    def of(self, logs: Sequence[LogFactors]) -> Information:
        """The information of each of `logs`, which must have been usable; kept for who asks again, as far as there is
        room."""
        made = {id(log): self._kept[id(log)] for log in logs if id(log) in self._kept}
        for stack in stacked([log for log in logs if id(log) not in made], self.design.independent):
            info = self._made(stack)
            for k, log in enumerate(stack.logs):
                made[id(log)] = log, info.J[k], info.h[k], info.K[k], float(info.degrees[k])
        room = _KEPT_BYTES / (16 * self.design.size**2)
        if len(self._kept) + len(made) < room:
            self._kept |= made
        if not logs:
            d = self.design.size
            return Information(np.zeros((0, d, d)), np.zeros((0, d)), np.zeros((0, d, d)), np.zeros(0))
        J, h, K, degrees = (np.array([made[id(log)][k] for log in logs]) for k in (1, 2, 3, 4))
        return Information(J, h, K, degrees)

    def _made(self, stack: LogStack) -> Information:
        p, d = self.design.rank, self.design.size
        count = len(stack.logs)
        degrees = np.maximum(stack.stretches - 1.0, 1.0)
        ratios = np.where(stack.ratios > 0.0, stack.ratios, self.common)
        drawn = (degrees * ratios + DEGREES_OF_MEAN * self.common) / (degrees + DEGREES_OF_MEAN)
        w2 = stack.weights
        shifts, shortened = self.redness.corrected(*stack.redness, degrees)
        noisy = w2**2 * np.maximum(drawn, 1.0) * shortened
        meats = stack.meats * shifts[..., None, :] * shifts[..., :, None]
        gained = w2[..., None] * (stack.grams @ np.append(self.beta, 0.0))  # what a gain's column has to do with others
        N, M, g = np.zeros((count, d, d)), np.zeros((count, d, d)), np.zeros((count, d))
        N[:, :p, :p] = stack.weighted[:, :p, :p]
        M[:, :p, :p] = (noisy[:, None, :] @ meats.reshape(count, len(self.common), -1)).reshape(count, p, p)
        for out, across in ((N, gained[..., :p]), (M, noisy[..., None] * (meats @ self.beta))):
            out[:, p:, :p], out[:, :p, p:] = across, np.swapaxes(across, 1, 2)
            out[:, range(p, d), range(p, d)] = across @ self.beta
        g[:, :p], g[:, p:] = stack.weighted[:, :p, p], gained[..., p]
        L, inverse, seen = _roots(N)
        white = inverse @ M @ np.swapaxes(inverse, 1, 2)
        size = np.maximum(np.trace(white, axis1=1, axis2=2) / np.maximum(seen, 1), 1e-300)[:, None, None]
        weighed = np.linalg.solve((1.0 - _DRAWN) * white + _DRAWN * size * np.eye(d), np.swapaxes(L, 1, 2))  # M̃⁻¹Lᵀ
        back = np.swapaxes(weighed, 1, 2)
        h = (back @ (inverse @ g[..., None]))[..., 0]
        believed = np.median(degrees, axis=1) + DEGREES_OF_MEAN
        return Information(_even(L @ weighed), h, _even(back @ white @ weighed), believed)


def _even(M: Array) -> Array:
    """Symmetric to the last digit."""
    return np.asarray(0.5 * (M + np.swapaxes(M, -1, -2)))


def usual_parameters(weighted: Array) -> Array:
    """The base parameters that fit some logs together, each joint weighted by its noise; zero where none shows them.

    Args:
        weighted: `LogStack.weighted` of the logs, `(logs, base parameters + 1, base parameters + 1)`.
    """
    return _solved(weighted.sum(axis=0))


def _solved(whole: Array) -> Array:
    _, inverse, _ = _roots(whole[None, :-1, :-1])
    return np.asarray(inverse[0].T @ (inverse[0] @ whole[:-1, -1]))


def _roots(N: Array) -> tuple[Array, Array, Array]:
    """L with N = L Lᵀ over what each N of a stack shows, its left inverse (zero beyond), and how much that is."""
    size = np.sqrt(np.maximum(np.diagonal(N, axis1=1, axis2=2), 0.0))
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(N * scale[:, None, :] * scale[:, :, None])
    kept = values > _UNSEEN * np.maximum(values[:, -1:], 1e-300)
    roots = np.sqrt(np.where(kept, values, 0.0))
    backs = np.where(kept, 1.0 / np.where(kept, roots, 1.0), 0.0)
    L = size[:, :, None] * vectors * roots[:, None, :]
    return L, np.swapaxes(vectors * backs[:, None, :], 1, 2) * scale[:, None, :], kept.sum(axis=1)
