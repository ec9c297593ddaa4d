"""Noise colour of logs, column by column, pooled over the robot type because one log estimates it poorly.

The colour of a column is the log ratio of the noise that acts on its parameter to white noise of the same variance. An
offset depends on the lowest frequencies only, which one log hardly contains: it can suggest no noise at all, with an
error bar of the offset that is a hundred times too small. Over all logs such a column scatters much more than the
others. The excess is chance, so each log is shrunk by this part towards the typical log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN
from steelyard.ground.arrays import Array

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
