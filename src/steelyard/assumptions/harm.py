"""`Harm`: the effect of a wrong assumption on predicted torques and on parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.assumptions.ledger_rows import LedgerRows
from steelyard.assumptions.suspect_estimates import Estimates, doubt_of
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Mask

# Harm: the torque error on the validation logs grows by more than this [%].
HARM_PERCENT = 20.0
# An assumption is confirmed if no value in its interval moves a parameter by more than this [standard errors]. Then its
# own standard error is at most half of it, and error bars that include it would be at most √(1 + ½²), 12 %, longer.
SAFE_SIGMAS = 1.0
# From this growth of the torque error on [%], most of the error is due to an assumption.
MOST_OF_THE_ERROR = 100.0
# What changes a torque by less than this part of its error, per unit, changes nothing but rounding.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Harm:
    """Squared changes of the torque per unit of each suspect, relative to the squared error on the validation logs.

    Attributes:
        repeated: Change on a log with the same mistake, shape (joints, suspects).
        clean: Change on a log without the mistake.
        shares: Share of each joint in the mean error.
        moved: Largest change of a parameter per unit of each suspect, in standard errors.
    """

    repeated: Array
    clean: Array
    shares: Array
    moved: Array

    @classmethod
    def of(cls, rows: LedgerRows, moves: Array, rmse: Array, nrmse: Array, errors: Array) -> Harm:
        """Compute the harm along some rows.

        Args:
            rows: Rows of the validation logs.
            moves: Negative change of the parameters per unit of each suspect, shape (parameters, suspects).
            rmse: Torque error of every joint with a used torque [N m, N].
            nrmse: The same, relative to the torque's standard deviation.
            errors: Standard errors of the parameters.
        """
        rank, count = rows.rank, len(rows.suspects)
        repeated, clean = np.zeros((2, len(rows.equations), count))
        for e, equation in enumerate(rows.equations):
            own = equation.columns < rank
            change = moves[equation.columns[own]]
            gram = equation.total[:-1, :-1]
            suspects = equation.columns[~own] - rank
            theta = gram[np.ix_(own, own)]
            clean[e] = np.sum(change * (theta @ change), axis=0)
            repeated[e] = clean[e]
            across = np.sum(change[:, suspects] * gram[np.ix_(own, ~own)], axis=0)
            repeated[e, suspects] += np.diag(gram)[~own] - 2.0 * across
            scale = equation.count * max(float(rmse[e]), 1e-12) ** 2
            repeated[e], clean[e] = np.maximum(repeated[e], 0.0) / scale, clean[e] / scale
        estimated = errors > 0.0
        moved = np.max(np.abs(moves[estimated]) / errors[estimated, None], axis=0, initial=0.0)
        return cls(repeated, clean, np.asarray(nrmse / max(float(np.sum(nrmse)), 1e-300)), np.asarray(moved))

    def percent(self, suspect: int, value: float, everywhere: bool) -> float:
        """Return the growth of the mean torque error over joints if a suspect has a value [%].

        Args:
            suspect: Index of the suspect.
            value: Its value, in its unit.
            everywhere: Whether every log has the mistake, as for the description.
        """
        worse = self._grown(self.repeated[:, suspect], value)
        return worse if everywhere else max(worse, self._grown(self.clean[:, suspect], value))

    def sigmas(self, suspect: int, value: float) -> float:
        """Return the largest shift of a parameter due to a value, in standard errors.

        Args:
            suspect: Index of the suspect.
            value: Its value, in its unit.
        """
        return float(abs(value) * self.moved[suspect]) if self.moved[suspect] > _NOTHING else 0.0

    def _grown(self, squares: Array, value: float) -> float:
        if np.max(squares) < _NOTHING**2:
            return 0.0
        if not np.isfinite(value):
            return np.inf
        return float(100.0 * (self.shares @ np.sqrt(1.0 + value**2 * squares) - 1.0))


def validation_gains(
    rows: LedgerRows, now: Estimates, weights: Array, shared: Sequence[int] = ()
) -> tuple[Array, Array, Mask]:
    """Compute the reduction of the squared error on the validation logs by the estimate of every suspect.

    The validation logs may have the mistake or not. Both cases are computed, and the better one is returned.

    Args:
        rows: Rows of the validation logs.
        now: Estimates from the rows of the fit.
        weights: 1/σ of every equation.
        shared: Accepted mistakes that the validation logs also have.

    Returns:
        Relative gains, their standard errors over the blocks, and whether the validation logs have the mistake.
    """
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


def validation_errors(rows: LedgerRows, parameters: Array, weights: Array, inverted: int = -1) -> Array:
    """Compute the squared error of parameters on each block of the validation logs, weighted.

    Args:
        rows: Rows of the validation logs.
        parameters: Base parameters.
        weights: 1/σ of every equation.
        inverted: Equation whose torque sign is inverted; −1 for none.
    """
    out = np.zeros(rows.blocks)
    for e, (equation, weight) in enumerate(zip(rows.equations, weights, strict=True)):
        own = np.flatnonzero(equation.columns < rows.rank)
        x, sign = parameters[equation.columns[own]], -1.0 if e == inverted else 1.0
        gram = weight**2 * equation.grams
        out += gram[:, -1, -1] - (2.0 * sign * gram[:, own, -1] - (gram[:, own][:, :, own] @ x)) @ x
    return out
