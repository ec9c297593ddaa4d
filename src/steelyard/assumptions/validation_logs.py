"""`ValidationLogs`: tests of the estimates from the fitted logs on the validation logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.assumptions.ledger_rows import LedgerRows
from steelyard.assumptions.suspect_estimates import Estimates, Normals, doubt_of
from steelyard.ground.arrays import Array
from steelyard.ground.student import each_two_sided
from steelyard.regression.block_grams import Mask

# p-value below which the validation logs exclude an estimate, and below which they show a suspect themselves.
_EXCLUDED, _SHOWN = 0.01, 0.05


@dataclass(frozen=True, eq=False)
class ValidationLogs:
    """Rows of the validation logs.

    Attributes:
        rows: The rows.
        weights: 1/σ of every equation.
    """

    rows: LedgerRows
    weights: Array

    def gains(self, now: Estimates, shared: Sequence[int] = ()) -> tuple[Array, Array, Mask]:
        """Compute the reduction of the squared error on the validation logs by the estimate of every suspect.

        The validation logs may have the mistake or not. Both cases are computed, and the better one is returned.

        Args:
            now: Estimates from the rows of the fit.
            shared: Accepted mistakes that the validation logs also have.

        Returns:
            Relative gains, their standard errors over the blocks, and whether the validation logs have the mistake.
        """
        rows, weights = self.rows, self.weights
        rank, blocks, count = rows.rank, rows.blocks, len(rows.suspects)
        before, gains = np.zeros(blocks), np.zeros((2, blocks, count))
        fit = np.zeros(rows.size)
        included = np.concatenate([np.arange(rank), rank + np.asarray(shared, dtype=int)]).astype(int)
        fit[included] = now.fit[included]
        for equation, weight in zip(rows.equations, weights, strict=True):
            c = equation.columns
            own, others = np.flatnonzero(c < rank), np.flatnonzero(c >= rank)
            places = c[others] - rank
            moved, value = -now.moves[c[own]] * now.value, now.value[places]
            for b in range(blocks):
                gram = weight**2 * equation.grams[b]
                rest = gram[:-1, -1] - gram[:-1, :-1] @ fit[c]
                before[b] += gram[-1, -1] - fit[c] @ (gram[:-1, -1] + rest)
                alone = 2.0 * rest[own] @ moved - np.sum(moved * (gram[np.ix_(own, own)] @ moved), axis=0)
                gains[:, b] += alone
                across = np.sum(moved[:, places] * gram[np.ix_(own, others)], axis=0)
                gains[0, b, places] += value * (2.0 * (rest[others] - across) - value * gram[others, others])
        gains /= max(float(before.sum()), 1e-300)
        repeated = np.sum(gains[0], axis=0) > np.sum(gains[1], axis=0)
        better = np.where(repeated, gains[0], gains[1])
        return np.asarray(better.sum(axis=0)), doubt_of(better), repeated

    def errors(self, parameters: Array, inverted: int = -1) -> Array:
        """Compute the squared error of parameters on each block of the validation logs, weighted.

        Args:
            parameters: Base parameters.
            inverted: Equation whose torque sign is inverted; −1 for none.
        """
        rows, weights = self.rows, self.weights
        out = np.zeros(rows.blocks)
        for e, (equation, weight) in enumerate(zip(rows.equations, weights, strict=True)):
            own = np.flatnonzero(equation.columns < rows.rank)
            x, sign = parameters[equation.columns[own]], -1.0 if e == inverted else 1.0
            gram = weight**2 * equation.grams
            out += gram[:, -1, -1] - (2.0 * sign * gram[:, own, -1] - (gram[:, own][:, :, own] @ x)) @ x
        return out

    @cached_property
    def _normals(self) -> Normals:
        return Normals(self.rows)

    def unrepeated(self, now: Estimates, shared: Sequence[int] = ()) -> Mask:
        """Return whether these logs, fitted alone, exclude the estimate of each suspect and show none of its sign.

        What friction or saturation feigns on one log, another one does not. A large estimate to first order depends on
        the motion; then the sign decides.

        Args:
            now: Estimates from the rows of the fit.
            shared: Accepted mistakes that the validation logs also have.
        """
        own = self._normals.estimates(shared)
        known = (own.error > 0.0) & (own.share > 0.0)
        error = np.where(known, own.error, 1.0)
        apart = each_two_sided((own.value - now.value) / np.hypot(error, now.error), own.freedom) < _EXCLUDED
        shown = (each_two_sided(own.value / error, own.freedom) < _SHOWN) & (own.value * now.value > 0.0)
        return np.asarray(known & apart & ~shown)
