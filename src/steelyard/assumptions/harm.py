"""`Harm`: what a wrong assumption costs, as the change of predicted torques and of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.assumptions.estimates import Estimates, doubt_of
from steelyard.assumptions.rows import LedgerRows
from steelyard.ground.arrays import Array
from steelyard.regression.block_grams import Mask

# Harm: the torque error on the judging logs grows by more than this [%],
HARM_PERCENT = 20.0
# or a parameter moves by more than this [standard errors], beyond its stated 95 % interval.
HARM_SIGMAS = 2.0
# What changes a torque by less than this part of its error, per unit, changes nothing but rounding.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Harm:
    """Squared changes of the torque per unit of each suspect, relative to the squared error on the logs that judge.

    Attributes:
        repeated: On a log with the same mistake, shape (joints, suspects).
        clean: On a log without it, to which the parameters belong that the mistake has changed.
        shares: Part of each joint in the mean error.
        moved: Change of the parameters per unit of each suspect, in standard errors, of the one that changes most.
    """

    repeated: Array
    clean: Array
    shares: Array
    moved: Array

    @classmethod
    def of(cls, rows: LedgerRows, moves: Array, rmse: Array, nrmse: Array, errors: Array) -> Harm:
        """Compute the harm along some rows.

        Args:
            rows: Rows of the logs that judge.
            moves: Change of the parameters per unit of each suspect, with a minus; shape (parameters, suspects).
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
            seen = equation.columns[~own] - rank
            theta = gram[np.ix_(own, own)]
            clean[e] = np.sum(change * (theta @ change), axis=0)
            repeated[e] = clean[e]
            across = np.sum(change[:, seen] * gram[np.ix_(own, ~own)], axis=0)
            repeated[e, seen] += np.diag(gram)[~own] - 2.0 * across
            scale = equation.count * max(float(rmse[e]), 1e-12) ** 2
            repeated[e], clean[e] = np.maximum(repeated[e], 0.0) / scale, clean[e] / scale
        known = errors > 0.0
        moved = np.max(np.abs(moves[known]) / errors[known, None], axis=0, initial=0.0)
        return cls(repeated, clean, np.asarray(nrmse / max(float(np.sum(nrmse)), 1e-300)), np.asarray(moved))

    def percent(self, suspect: int, value: float, everywhere: bool) -> float:
        """By how many per cent the torque error grows, mean over joints, if a suspect has a value.

        Args:
            suspect: Its number.
            value: Its value, in its unit.
            everywhere: Whether every log has the mistake, as it has one of the description.
        """
        worse = self._grown(self.repeated[:, suspect], value)
        return worse if everywhere else max(worse, self._grown(self.clean[:, suspect], value))

    def sigmas(self, suspect: int, value: float) -> float:
        """By how many of its standard errors a value moves the parameter that it moves most.

        Args:
            suspect: Number of the suspect.
            value: Its value, in its unit.
        """
        return float(abs(value) * self.moved[suspect]) if self.moved[suspect] > _NOTHING else 0.0

    def _grown(self, squares: Array, value: float) -> float:
        if np.max(squares) < _NOTHING**2:
            return 0.0
        if not np.isfinite(value):
            return np.inf
        return float(100.0 * (self.shares @ np.sqrt(1.0 + value**2 * squares) - 1.0))


def judged_gains(
    rows: LedgerRows, now: Estimates, weights: Array, shared: Sequence[int] = ()
) -> tuple[Array, Array, Mask]:
    """Compute by how much the squared error on logs that judge falls for the estimate of every suspect.

    A mistake may be in those logs as well, or not: the suspect's column counts, or only what it does to the parameters;
    the better of the two is given.

    Args:
        rows: Rows of the logs that judge.
        now: Estimates from the rows of the fit.
        weights: 1/σ of every equation.
        shared: Accepted suspects that the logs that judge have, too.

    Returns:
        Relative gains, their standard errors over the blocks, and whether the logs have the mistake, too.
    """
    rank, blocks, count = rows.rank, rows.blocks, len(rows.suspects)
    before, gains = np.zeros(blocks), np.zeros((2, blocks, count))
    fit = np.zeros(rows.size)
    kept = np.concatenate([np.arange(rank), rank + np.asarray(shared, dtype=int)]).astype(int)
    fit[kept] = now.fit[kept]
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
    too = np.sum(gains[0], axis=0) > np.sum(gains[1], axis=0)
    better = np.where(too, gains[0], gains[1])
    return np.asarray(better.sum(axis=0)), doubt_of(better), too


def judged_errors(rows: LedgerRows, parameters: Array, weights: Array, turned: int = -1) -> Array:
    """Compute the squared error of parameters on each block of the logs that judge, weighted.

    Args:
        rows: Rows of the logs that judge.
        parameters: Base parameters.
        weights: 1/σ of every equation.
        turned: Equation whose torque has the other sign; −1: none.
    """
    out = np.zeros(rows.blocks)
    for e, (equation, weight) in enumerate(zip(rows.equations, weights, strict=True)):
        own = np.flatnonzero(equation.columns < rows.rank)
        x, sign = parameters[equation.columns[own]], -1.0 if e == turned else 1.0
        gram = weight**2 * equation.grams
        out += gram[:, -1, -1] - (2.0 * sign * gram[:, own, -1] - (gram[:, own][:, :, own] @ x)) @ x
    return out
