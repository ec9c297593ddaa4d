"""`Harm`: the effect of a wrong assumption on predicted torques and on parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.assumptions.ledger_rows import LedgerRows
from steelyard.ground.arrays import Array

# Harm: the torque error on the validation logs grows by more than this [%].
HARM_PERCENT = 20.0
# An assumption is confirmed if no value in its interval moves a parameter by more than this [standard errors]. Then its
# own standard error is at most half of it, and error bars that include it would be at most √(1 + ½²), 12 %, longer.
SAFE_SIGMAS = 1.0
# From this growth of the torque error on [%], most of the error is due to an assumption.
MOST_OF_THE_ERROR = 100.0
# A change of the torque per unit that is smaller than this part of its error is rounding.
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
            gram = equation.everywhere[:-1, :-1]
            suspects = equation.columns[~own] - rank
            theta = gram[np.ix_(own, own)]
            clean[e] = np.sum(change * (theta @ change), axis=0)
            repeated[e] = clean[e]
            across = np.sum(change[:, suspects] * gram[np.ix_(own, ~own)], axis=0)
            repeated[e, suspects] += np.diag(gram)[~own] - 2.0 * across
            scale = max(float(rmse[e]), 1e-12) ** 2
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
