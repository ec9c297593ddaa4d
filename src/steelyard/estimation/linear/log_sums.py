"""`LogSums`: the information of single logs about base parameters, from one pass over their rows.

H = Σ w²AᵀA and the scores g = Σ w²Aᵀ(y − Aβ) are stored by log and equation. The covariance of the scores comes from
the residuals of each log's own fit, so that a log that disagrees does not inflate it. It combines the spectrum of
stationary noise with the variation of the scores between stretches, which covers model errors. Comparisons of logs and
the factors that fleets store both use these sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steelyard.estimation.linear.covariance import score_covariances
from steelyard.estimation.linear.widening import mean_ratio, widening_factor
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.normal_matrix import NormalMatrix

# Relative resolution of torques.
_RESOLUTION = 1e-6


class LogSums:
    """Sums of each log and equation over the base columns, with the fit of each log alone.

    Args:
        parts: Rows of each log.
        base: Base parameters of the columns.
        beta: Parameters of the fit to all logs.
        residual_std: Residual standard deviation of each equation in that fit; first guess of the weights.
    """

    def __init__(self, parts: Sequence[RegressionData], base: BaseParameters, beta: Array, residual_std: Array) -> None:
        self.base, self.beta, self.logs = base, beta, len(parts)
        p = base.rank
        reductions = [part.reduction() for part in parts]
        columns = [e.among(base.independent) for e in parts[0].equations]
        self.rows = np.array([r.factor.rows for r in reductions], dtype=float)
        # By log and equation: the Gram matrices of all stretches over [A y].
        self.stretches: list[list[Array]] = []
        for r in reductions:
            mine = []
            for growing, (own, where) in zip(r.stretches, columns, strict=True):
                grams = np.array([t.T @ t for t in growing])
                grams[1:] -= grams[:-1].copy()
                out, inner, outer = np.zeros((len(grams), p + 1, p + 1)), [*own, -1], [*where, p]
                out[np.ix_(range(len(grams)), outer, outer)] = grams[np.ix_(range(len(grams)), inner, inner)]
                mine.append(out)
            self.stretches.append(mine)
        self.grams = np.array([[g.sum(axis=0) for g in mine] for mine in self.stretches])
        self.H, self.b = self.grams[:, :, :p, :p], self.grams[:, :, :p, p]
        self.weights = 1.0 / np.maximum(residual_std, 1e-300)
        # Minimum noise power of torques with limited resolution.
        least = _RESOLUTION**2 * self.grams[:, :, p, p].sum(axis=0) / np.maximum(self.rows.sum(axis=0), 1.0)
        for _ in range(3):  # Residuals of each log's own fit, so that a log that disagrees does not inflate them.
            self.own = [self._own_fit(i) for i in range(self.logs)]
            squares = sum(self.squares(i, x) for i, (x, _) in enumerate(self.own))
            free = np.maximum(self.freedom.sum(axis=0), 1.0)
            self.weights = 1.0 / np.sqrt(np.maximum(squares / free, least + 1e-300))
        self.own = [self._own_fit(i) for i in range(self.logs)]
        # Covariances of the scores w²Aᵀu by log and equation, from the noise spectrum and from the scatter.
        self.noise = np.array([score_covariances(r.spectra, base, x, self.weights, own.inverse)
                               for r, (x, own) in zip(reductions, self.own, strict=True)])  # fmt: skip
        self.noise += (self.weights**4 * least)[:, None, None] * self.H
        self.scatter = np.array([[self._scatter(i, e) for e in range(len(columns))] for i in range(self.logs)])
        self.counts = np.array([[len(g) for g in mine] for mine in self.stretches])

    def normal(self, log: int) -> Array:
        """Return H of a `log` by its index."""
        return np.asarray(np.einsum("e,epq->pq", self.weights**2, self.H[log]))

    def squares(self, log: int, x: Array) -> Array:
        """Return the squared error of each equation.

        Args:
            log: Index of the log.
            x: Parameters.
        """
        way = np.append(-x, 1.0)
        return np.asarray(np.maximum(np.einsum("p,epq,q->e", way, self.grams[log], way), 0.0))

    def _own_fit(self, log: int) -> tuple[Array, NormalMatrix]:
        """Return a log's own parameters and its normal equations; unidentifiable directions keep `beta`."""
        H, b = self.normal(log), np.einsum("e,ep->p", self.weights**2, self.b[log])
        own = NormalMatrix.of(H)
        return self.beta + own.inverse @ (b - H @ self.beta), own

    @property
    def freedom(self) -> Array:
        """Residual degrees of freedom of the logs' own fits, by log and equation."""
        inverses = np.array([own.inverse for _, own in self.own])
        return np.asarray(self.rows - np.einsum("e,iepq,iqp->ie", self.weights**2, self.H, inverses))

    def stretch_scores(self, log: int, equation: int) -> Array:
        """Return the scores of each stretch minus their mean, at the log's own fit, shape (stretches, rank).

        The sum of their squares is the scatter.

        Args:
            log: Index of the log.
            equation: Index of the equation.
        """
        grams = self.stretches[log][equation]
        way = np.append(-self.own[log][0], 1.0)
        scores = self.weights[equation] ** 2 * (grams[:, :-1] @ way)
        scores = scores - scores.mean(axis=0)
        return np.asarray(scores * math.sqrt(len(grams) / max(len(grams) - 1, 1)))

    def _scatter(self, log: int, equation: int) -> Array:
        scores = self.stretch_scores(log, equation)
        return np.asarray(scores.T @ scores)

    def degrees(self, log: int) -> float:
        """Return the degrees of freedom of the scatter between stretches of a `log`."""
        return max(float(np.median(self.counts[log])) - 1.0, 1.0)

    def separate_estimates(self) -> tuple[Array, Array]:
        """Return the parameters of each log and their standard errors, both of shape (logs, rank).

        The errors include the variation between stretches. Values that a log cannot identify are NaN.
        """
        values, errors = np.full((2, self.logs, self.base.rank), np.nan)
        for i, (x, own) in enumerate(self.own):
            V, W = (np.diag(own.inverse @ C[i].sum(axis=0) @ own.inverse) for C in (self.noise, self.scatter))
            ok, degrees = own.identifiable, self.degrees(i)
            ratio = W[ok] / np.maximum(V[ok], 1e-300)
            values[i, ok] = x[ok]
            errors[i, ok] = np.sqrt(V[ok] * widening_factor(ratio, mean_ratio(ratio, degrees), degrees))
        return values, errors
