"""How red the noise of a model's logs is, column by column: what one log knows badly of its noise, its kin know well.

The redness of a column is the noise that it feels, over white noise of the same size, as a logarithm. An offset feels
the lowest frequencies alone, of which a log has a handful: by itself it may say that there is no noise at all, and then
its offset would be known to a hundredth of what it really is. Over all logs such a column scatters much more than the
others do, and so much of what is peculiar to a log is chance: it is drawn to the middle of all logs by that part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.linear.widening import DEGREES_OF_MEAN
from steelyard.ground.arrays import Array

# Fewer logs do not tell how much a column scatters.
_FEWEST = 8


@dataclass(frozen=True, eq=False)
class UsualRedness:
    """The redness of a model's logs, all `(equations, columns)`.

    Attributes:
        mean: over all logs; 0 where none knows it.
        middle: what a log is drawn to: the logarithm of the mean noise.
        chance: the part of what is peculiar to a log that is chance.
    """

    mean: Array
    middle: Array
    chance: Array

    @classmethod
    def of(cls, redness: Array) -> UsualRedness:
        """Of many logs' `redness`, `(logs, equations, columns)`, not a number where it is not known."""
        known = np.isfinite(redness)
        count = known.sum(axis=0)
        mean = np.where(known, redness, 0.0).sum(axis=0) / np.maximum(count, 1)
        middle, scatter = mean.copy(), np.zeros(mean.shape)
        for e, k in np.argwhere(count >= _FEWEST):
            own = redness[known[:, e, k], e, k]
            middle[e, k] = np.median(own)
            scatter[e, k] = (1.4826 * np.median(np.abs(own - middle[e, k]))) ** 2
        told = np.where(count >= _FEWEST, scatter, np.nan)
        usual = [float(np.nanmedian(row)) if np.isfinite(row).any() else np.inf for row in told]
        excess = np.maximum(scatter - np.array(usual)[:, None], 0.0)
        chance = np.where(scatter > 0.0, excess / np.where(scatter > 0.0, scatter, 1.0), 0.0)
        # Of ν degrees of freedom the logarithm of noise has the variance ψ'(ν/2) = 2/ν + 2/ν² + …, and its median lies
        # below the logarithm of the mean by 3 log(1 − 2/(9ν)) (Wilson & Hilferty 1931).
        freedom = (1.0 + np.sqrt(1.0 + 2.0 * excess)) / np.maximum(excess, 1e-9)
        below = 3.0 * np.log(np.maximum(1.0 - 2.0 / (9.0 * freedom), 0.3))
        return cls(mean, middle - below, chance)

    def corrected(self, redness: Array, known: Array, degrees: Array) -> tuple[Array, Array]:
        """Of some logs by what the noise that each column feels is to be multiplied (its standard deviation), and how
        much larger the noise of each equation is then still taken for: a short log does not see how slow its noise is,
        which longer logs of the same model do.

        Args:
            redness: of the logs, `(logs, equations, columns)`.
            known: 1 where it is known, else 0.
            degrees: of freedom that each equation's noise is known with, `(logs, equations)`.
        """
        # Of the noise, not of its logarithm, which may be anything where a log happened to have none.
        own, kin = np.log(np.maximum([1.0 - self.chance, self.chance], 1e-300))
        shift = np.where(self.chance > 0.0, known * np.logaddexp(own, kin + self.middle - redness), 0.0)
        lacks = np.sum(known * (self.mean - redness - shift), axis=-1) / np.maximum(known.sum(axis=-1), 1.0)
        wider = np.exp(np.maximum(lacks, 0.0) * DEGREES_OF_MEAN / (DEGREES_OF_MEAN + degrees))
        return np.asarray(np.exp(0.5 * shift)), np.asarray(wider)
