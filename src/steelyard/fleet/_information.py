"""Information of a log about base parameters and torque gains, with a robust covariance.

With N = Σ w²AᵀA and g = Σ w²Aᵀy over the equations, g = N x + s. The score s of the residuals has the covariance M,
which follows from their spectrum and from the scatter between stretches of the log; white noise has M = N. The optimal
information is J = N M⁻¹ N. But M has few degrees of freedom, and its inverse overweights directions that happen to be
quiet. Hence M is shrunk half way to a multiple of N, M̃. The working information is J = N M̃⁻¹ N, the score
h = N M̃⁻¹ g, and error bars use the sandwich covariance of h, K = N M̃⁻¹ M M̃⁻¹ N, which holds for any weights.

The noise colour of a column is the log ratio of the noise that acts on its parameter to white noise of the same
variance. It is pooled over the robot type, because one log estimates it poorly. An offset depends on the lowest
frequencies only, which one log hardly contains: it can suggest no noise at all, with an error bar of the offset that is
a hundred times too small. Over all logs such a column scatters much more than the others. The excess is chance, so each
log is shrunk by this part towards the typical log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN, widening_factor
from steelyard.fleet._stacks import LogStack, stack_logs
from steelyard.fleet.effects import FleetDesign
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array
from steelyard.regression.normal_matrix import NormalMatrix

# Smallest number of logs that the scatter of a column is estimated from.
_MIN_LOGS = 8


@dataclass(frozen=True, eq=False)
class NoiseColour:
    """Typical noise colour of the logs of a robot type; all arrays have the shape (equations, columns).

    Attributes:
        mean: Mean over all logs; 0 if unknown.
        middle: Target of the shrinkage: the logarithm of the mean noise.
        chance: Part of a log's deviation that is chance.
    """

    mean: Array
    middle: Array
    chance: Array

    @classmethod
    def of(cls, colour: Array) -> NoiseColour:
        """Estimate it from the `colour` of many logs, shape (logs, equations, columns); NaN if unknown."""
        known = np.isfinite(colour)
        count = known.sum(axis=0)
        mean = np.where(known, colour, 0.0).sum(axis=0) / np.maximum(count, 1)
        middle, scatter = mean.copy(), np.zeros(mean.shape)
        for e, k in np.argwhere(count >= _MIN_LOGS):
            own = colour[known[:, e, k], e, k]
            middle[e, k] = np.median(own)
            scatter[e, k] = (1.4826 * np.median(np.abs(own - middle[e, k]))) ** 2
        reliable = np.where(count >= _MIN_LOGS, scatter, np.nan)
        usual = [float(np.nanmedian(row)) if np.isfinite(row).any() else np.inf for row in reliable]
        excess = np.maximum(scatter - np.array(usual)[:, None], 0.0)
        chance = np.where(scatter > 0.0, excess / np.where(scatter > 0.0, scatter, 1.0), 0.0)
        # With ν degrees of freedom log noise has the variance ψ'(ν/2) = 2/ν + 2/ν² + …, and its median is below the
        # logarithm of the mean by 3 log(1 − 2/(9ν)) (Wilson & Hilferty 1931).
        freedom = (1.0 + np.sqrt(1.0 + 2.0 * excess)) / np.maximum(excess, 1e-9)
        below = 3.0 * np.log(np.maximum(1.0 - 2.0 / (9.0 * freedom), 0.3))
        return cls(mean, middle - below, chance)

    def correct(self, colour: Array, known: Array, degrees: Array) -> tuple[Array, Array]:
        """Compute factors of the noise standard deviation by column, and additional factors of the noise by equation.

        The second ones are for short logs, which do not contain the slow noise that longer logs show.

        Args:
            colour: Noise colour of some logs, shape (logs, equations, columns).
            known: 1 where it is known, else 0.
            degrees: Degrees of freedom of each equation's noise, shape (logs, equations).
        """
        # Average noise, not log noise, which can be any negative number if a log happens to be noise-free.
        own, pooled = np.log(np.maximum([1.0 - self.chance, self.chance], 1e-300))
        shift = np.where(self.chance > 0.0, known * np.logaddexp(own, pooled + self.middle - colour), 0.0)
        lacks = np.sum(known * (self.mean - colour - shift), axis=-1) / np.maximum(known.sum(axis=-1), 1.0)
        wider = np.exp(np.maximum(lacks, 0.0) * DEGREES_OF_MEAN / (DEGREES_OF_MEAN + degrees))
        return np.asarray(np.exp(0.5 * shift)), np.asarray(wider)


# Shrinkage of M towards a multiple of N.
_SHRINKAGE = 0.5
_CACHE_BYTES = 300_000_000


@dataclass(frozen=True, eq=False)
class Information:
    """Information about a robot's coordinates x, E h = J x, of one log, of several logs together, or stacked by log.

    Attributes:
        J: Working information, shape (coordinates, coordinates).
        h: Score.
        K: Covariance of h given x.
        degrees: Degrees of freedom of K.
    """

    J: Array
    h: Array
    K: Array
    degrees: Array

    @classmethod
    def none(cls, size: int) -> Information:
        """Return the information of a robot without logs."""
        return cls(np.zeros((size, size)), np.zeros(size), np.zeros((size, size)), np.array(0.0))

    @property
    def widened(self) -> Array:
        """K scaled to the variance of Student's t, so that two standard errors keep their meaning."""
        known = np.maximum(self.degrees, 2.5)
        return self.K * np.where(self.degrees > 2.5, known / (known - 2.0), 5.0)[..., None, None]

    @property
    def together(self) -> Information:
        """The sum over several logs of one robot."""
        return Information(self.J.sum(axis=0), self.h.sum(axis=0), self.K.sum(axis=0), self.degrees.sum(axis=0))

    def with_log_effects(self, effects: Array, variances: Array) -> Information:
        """Marginalise random effects that x has in each log, along the columns of `effects` with these `variances`."""
        if not np.any(variances > 0.0):
            return self
        B = effects * np.sqrt(variances)
        JB = self.J @ B
        T = np.linalg.solve(np.eye(B.shape[1]) + B.T @ JB, np.swapaxes(JB, -1, -2))  # (1 + BᵀJB)⁻¹BᵀJ
        A = np.eye(len(B)) - np.swapaxes(T, -1, -2) @ B.T
        J, AJB = self.J - JB @ T, A @ JB
        K = A @ self.K @ np.swapaxes(A, -1, -2) + AJB @ np.swapaxes(AJB, -1, -2)
        return Information(_symmetric(J), (A @ self.h[..., None])[..., 0], K, self.degrees)


class InformationBuilder:
    """Computes the information of logs of one robot type.

    Args:
        design: Base parameters and effects.
        logs: Logs of the type, from which the usual noise and the mean parameters are estimated.
    """

    def __init__(self, design: FleetDesign, logs: Sequence[LogFactors]) -> None:
        self.design = design
        p, E = design.rank, len(design.equations)
        total, whole = np.zeros((E, p + 1, p + 1)), [np.zeros((p + 1, p + 1))]
        ratios, colour = [np.zeros((0, E))], [np.zeros((0, E, p))]
        for stack in stack_logs(logs, design.independent):
            total += np.sum(stack.grams / np.maximum(stack.rows, 1.0)[..., None, None], axis=0)  # per row
            whole.append(stack.weighted.sum(axis=0))
            ratios.append(stack.ratios)
            colour.append(np.where(stack.colour[1] > 0.0, stack.colour[0], np.nan))
        self.common = np.array([max(float(np.exp(np.mean(np.log(r[r > 0.0])))), 1.0) if np.any(r > 0.0) else 1.0
                                for r in np.concatenate(ratios).T])  # fmt: skip
        self.colour = NoiseColour.of(np.concatenate(colour))
        self.grams = total / max(len(logs), 1)
        self.scales = design.scales(total)
        self.beta = usual_parameters(np.array(whole))
        self._cache: dict[int, tuple[LogFactors, Array, Array, Array, float]] = {}

    def of(self, logs: Sequence[LogFactors]) -> Information:
        """Return the information of each of the usable `logs`, cached as far as memory allows."""
        made = {id(log): self._cache[id(log)] for log in logs if id(log) in self._cache}
        for stack in stack_logs([log for log in logs if id(log) not in made], self.design.independent):
            info = self._compute(stack)
            for k, log in enumerate(stack.logs):
                made[id(log)] = log, info.J[k], info.h[k], info.K[k], float(info.degrees[k])
        room = _CACHE_BYTES / (16 * self.design.size**2)
        if len(self._cache) + len(made) < room:
            self._cache |= made
        if not logs:
            d = self.design.size
            return Information(np.zeros((0, d, d)), np.zeros((0, d)), np.zeros((0, d, d)), np.zeros(0))
        J, h, K, degrees = (np.array([made[id(log)][k] for log in logs]) for k in (1, 2, 3, 4))
        return Information(J, h, K, degrees)

    def _compute(self, stack: LogStack) -> Information:
        p, d = self.design.rank, self.design.size
        count = len(stack.logs)
        degrees = np.maximum(stack.stretches - 1.0, 1.0)
        ratios = np.where(stack.ratios > 0.0, stack.ratios, self.common)
        w2 = stack.weights
        shifts, shortened = self.colour.correct(*stack.colour, degrees)
        noisy = w2**2 * widening_factor(ratios, self.common, degrees) * shortened
        meats = stack.meats * shifts[..., None, :] * shifts[..., :, None]
        gained = w2[..., None] * (stack.grams @ np.append(self.beta, 0.0))  # products of the gains' columns
        N, M, g = np.zeros((count, d, d)), np.zeros((count, d, d)), np.zeros((count, d))
        N[:, :p, :p] = stack.weighted[:, :p, :p]
        M[:, :p, :p] = (noisy[:, None, :] @ meats.reshape(count, len(self.common), -1)).reshape(count, p, p)
        for out, across in ((N, gained[..., :p]), (M, noisy[..., None] * (meats @ self.beta))):
            out[:, p:, :p], out[:, :p, p:] = across, np.swapaxes(across, 1, 2)
            out[:, range(p, d), range(p, d)] = across @ self.beta
        g[:, :p], g[:, p:] = stack.weighted[:, :p, p], gained[..., p]
        normal = NormalMatrix.of(N)
        L, inverse, rank = normal.root, normal.root_inverse, normal.rank
        white = inverse @ M @ np.swapaxes(inverse, 1, 2)
        size = np.maximum(np.trace(white, axis1=1, axis2=2) / np.maximum(rank, 1), 1e-300)[:, None, None]
        mixed = (1.0 - _SHRINKAGE) * white + _SHRINKAGE * size * np.eye(d)
        weighed = np.linalg.solve(mixed, np.swapaxes(L, 1, 2))  # M̃⁻¹Lᵀ
        back = np.swapaxes(weighed, 1, 2)
        h = (back @ (inverse @ g[..., None]))[..., 0]
        total_degrees = np.median(degrees, axis=1) + DEGREES_OF_MEAN
        return Information(_symmetric(L @ weighed), h, _symmetric(back @ white @ weighed), total_degrees)


def _symmetric(M: Array) -> Array:
    """Remove the asymmetry of rounding."""
    return np.asarray(0.5 * (M + np.swapaxes(M, -1, -2)))


def usual_parameters(weighted: Array) -> Array:
    """Fit base parameters to several logs, each joint weighted by its noise; zero where they are not identifiable.

    Args:
        weighted: `LogStack.weighted` of the logs, shape (logs, base parameters + 1, base parameters + 1).
    """
    whole = weighted.sum(axis=0)
    return np.asarray(NormalMatrix.of(whole[:-1, :-1]).inverse @ whole[:-1, -1])
